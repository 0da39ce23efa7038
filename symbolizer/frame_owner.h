// Frame -> rule: which rule owns one frame. Longest matching prefix wins within a key kind; function beats source path
// beats library; a user's rule beats a built-in one of the same length; among equal prefixes the first in the file
// wins.
//
// Matching:
//   function   prefix of the demangled function ("billing::", "com.acme.billing.", "billing_"), which has neither
//   return
//              type nor parameters; template arguments and "(anonymous namespace)::" are part of it
//   src:       prefix of the source path at any directory boundary
//   lib:       prefix of the library's path, file name or SONAME, or of its file name without a random part
//              (librocksdbjni123.so is librocksdbjni.so). NAME$ is the whole name, NAME!PREFIX functions of that
//              library alone; a user's rule for a whole library beats built-in rules about its functions
// Rust's "<acme::Index as core::fmt::Display>::fmt" is matched by its type, then by its trait.
//   class:     prefix of a heap class's name; so are prefixes of functions. Names are understood in every spelling:
//              "[B" is "byte[]", "a/b/C$1" is "a.b.C$1"; "com.acme.Foo." (the methods of a class) owns its objects too
// An unresolved frame ("libfoo.so+0x12") matches no function rule.
// Thread-safety: const after construction; Find may be called from many threads.
//
// Example:
//   FrameOwner owner(*FindOwnerRules(""));
//   const Rule* rule = owner.Find(frame);
//   if (rule != nullptr && !IsTransparentInStacks(*rule)) Charge(rule->module, rule->team);
#ifndef CADASTRE_SYMBOLIZER_FRAME_OWNER_H_
#define CADASTRE_SYMBOLIZER_FRAME_OWNER_H_

#include <memory>
#include <string>
#include <string_view>

#include "symbolizer/owner_rules.h"
#include "symbolizer/profile.h"

namespace cadastre {

class FrameOwner {
 public:
  explicit FrameOwner(const OwnerRules& rules);
  ~FrameOwner();

  // The winning rule, or nullptr. The pointer stays valid while this object lives.
  const Rule* Find(const Frame& frame) const;
  // The rule for a library as a whole, whatever function is called.
  const Rule* FindLibrary(const std::string& path) const;
  const Rule* FindThread(const std::string& thread_name) const;  // `thread:` rules
  const Rule* FindClass(std::string_view class_name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True where a rule is walked past while an owner is looked for: kind transparent, container or pool, or without a kind
// a platform module.
bool IsTransparentInStacks(const Rule& rule);

// A heap class's name as the source spells it: "[B" is "byte[]", "a/b/C$1" is "a.b.C$1".
std::string SourceClassName(std::string_view class_name);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_FRAME_OWNER_H_
