// Which sites of two processes, or of two builds, are the same: by the names of their functions, without what differs
// from run to run or from build to build.
//
// No addresses, lines, files or library versions. Dropped of names: numbers and addresses of hidden classes and lambdas
// ("Shop$$Lambda/0x00007f.run", "lambda$add$3"), of generated classes (CGLIB, ByteBuddy, Hibernate, Mockito,
// "$Proxy17", "GeneratedMethodAccessor12"), compilers' clones ("f.part.0", "f [clone .cold]"), hashes of Rust and
// numbers of C++ lambdas. A frame without a name is its library's stem and offset, which a rebuild changes. A function
// that calls itself counts once. Errors: none. Thread-safety: functions are pure.
//
// Example: StableName("com.acme.Shop$$EnhancerBySpringCGLIB$$1f2e3d.add") == "com.acme.Shop$$CGLIB.add"
#ifndef CADASTRE_REPORT_SITE_IDENTITY_H_
#define CADASTRE_REPORT_SITE_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/attribution.h"
#include "symbolizer/profile.h"

namespace cadastre {

std::string StableName(absl::string_view function);

// 16 hex digits. From the leaf to the frame that owns the site, which tells the site apart; to the root where
// `owner_frame` is -1. What called the owner may change with any build.
std::string SiteIdentity(const std::vector<const Frame*>& frames, int owner_frame);

// The same for many sites of one profile, most of whose frames are those of others: each name is made once. Not
// thread-safe; the attribution must live as long as this.
class SiteIdentities {
 public:
  explicit SiteIdentities(Attribution* attribution) : attribution_(attribution) {}
  std::string Of(uint32_t site, int owner_frame);

 private:
  const std::string& NameOf(uint32_t number);

  Attribution* attribution_;
  std::vector<std::string> names_;  // by number of the frame; "" = not made yet
  std::vector<uint32_t> numbers_;   // of the stack at hand
};

// The same for any text: FNV-1a of 64 bits, the same on every machine.
std::string StableHash(absl::string_view text);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SITE_IDENTITY_H_
