// Frame -> rule: which rule owns one frame. Longest matching prefix wins within a key kind; function beats source path
// beats library; a user's rule beats a built-in one of the same length; among equal prefixes the first in the file
// wins.
//
// Matching:
//   function   prefix of the demangled function ("billing::", "com.acme.billing.", "billing_"). Leading return types,
//   "(anonymous
//              namespace)::" inside a name, template arguments and parameter lists are part of the name as demanglers
//              print it.
//   src:       prefix of the source path at any directory boundary
//   lib:       prefix of the library's file name, SONAME, stem without a random part (librocksdbjni123.so =
//   librocksdbjni.so), or path
// Thread-safety: const after construction.
#ifndef CADASTRE_SYMBOLIZER_FRAME_OWNER_H_
#define CADASTRE_SYMBOLIZER_FRAME_OWNER_H_

#include <memory>
#include <string>

#include "symbolizer/owner_rules.h"
#include "symbolizer/profile.h"

namespace cadastre {

class FrameOwner {
 public:
  explicit FrameOwner(const OwnerRules& rules);
  ~FrameOwner();

  // The winning rule, or nullptr. The pointer stays valid while this object lives.
  const Rule* Find(const Frame& frame) const;
  const Rule* FindThread(const std::string& thread_name) const;  // `thread:` rules

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True where a rule is walked past while an owner is looked for: kind transparent, or module "platform" or
// "platform/...".
bool IsTransparentInStacks(const Rule& rule);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_FRAME_OWNER_H_
