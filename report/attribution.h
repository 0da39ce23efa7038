// Stack → owner: charges each site, or where it has no owned frame each (site, thread), to a module and a team.
//
// The walk is stack_walk's. Frames of libcadastre itself are ignored. With no owned frame a `thread:` rule of the
// thread that allocated decides, then the first owned frame of the stack that created that thread, or of the one that
// created its creator, before the walk's own answer. Without a rules file owners are guessed from Java
// packages (three parts) and library names, and marked as guesses. Memory in a shared structure (rules of kind
// container and pool) is charged to who created it; ContainerOf says where it lies. Errors: none. Thread-safety: not
// thread-safe (names are resolved on demand).
//
// Example:
//   Attribution attribution(profile, rules, &symbolizer);
//   const Charge& charge = attribution.ChargeOf(sample.site, sample.thread);
#ifndef CADASTRE_REPORT_ATTRIBUTION_H_
#define CADASTRE_REPORT_ATTRIBUTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/stack_walk.h"
#include "symbolizer/frame_owner.h"
#include "symbolizer/owner_rules.h"
#include "symbolizer/profile.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {

struct Charge {
  ChargeKind kind = ChargeKind::kUnattributed;
  std::string module;  // "unattributed" where nobody owns it
  std::string team;    // empty: not known
  bool guessed = false;
  std::string rule;        // "owners.csv:14 com.acme.billing.", "guess: lib:libfoo.so"; empty = none
  std::string via;         // empty = none
  std::string created_by;  // the owned function that created the thread, where that decides; else empty
  int owner_frame = -1, telling_frame = -1;  // WalkOutcome's, indices into FramesOf(site)
};

// Where a site's memory lies, whoever created it.
struct Container {
  const Rule* rule = nullptr;  // of kind container or pool; nullptr = in no shared structure
  bool pooled = false;
};

class Attribution {
 public:
  // All three must outlive the attribution.
  Attribution(const Profile& profile, const OwnerRules& rules, Symbolizer* symbolizer);
  ~Attribution();

  // `site` and `thread` are indices into Profile::sites and Profile::threads; thread 0 = not known.
  const Charge& ChargeOf(uint32_t site, uint32_t thread);
  // The same without the thread's part.
  const Charge& ChargeOfStack(uint32_t site);

  Container ContainerOf(uint32_t site);

  // The site's frames, leaf first, without libcadastre's own. Pointers stay valid while the Symbolizer lives.
  std::vector<const Frame*> FramesOf(uint32_t site);

  // The same by number, for who keeps something of each frame: stacks share most of theirs. Numbers are small and in no
  // order; those of a site's frames are put into `numbers` in the place of what it has.
  void FrameNumbersOf(uint32_t site, std::vector<uint32_t>* numbers);
  const Frame& FrameNumbered(uint32_t number) const;

  // A rule prefix that would give an unattributed site an owner: of its leaf-most frame that no rule matches. Empty if
  // there is none to name (a stack of unknown addresses).
  std::string SuggestedPrefix(uint32_t site);

  const FrameOwner& frame_owner() const;

  // File name of the library that asked for the memory: the leaf-most frame's that is not plumbing; empty = not known.
  // Lives as long as the Symbolizer.
  absl::string_view LibraryOf(uint32_t site);

  // Every raw frame that a site has, once.
  const std::vector<uint64_t>& DistinctFrames() const;

  bool guesses() const;  // no rules file was given

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "libfoo.so.1.2" → "libfoo.so", "/opt/app/bin/server" → "server": what a `lib:` rule would be written with.
std::string LibraryStem(const std::string& path);

// The rule text (marker included) that matches this frame and its neighbours: a Java package, a C++ namespace, else
// `lib:`. Empty when the frame names nothing.
std::string PrefixForFrame(const Frame& frame);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ATTRIBUTION_H_
