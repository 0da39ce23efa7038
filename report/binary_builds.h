// Which builds of its binaries a process had, and which of them two processes had in different builds.
//
// What was rebuilt or upgraded in between may be why memory has changed: an allocator's library, the program itself.
// By file name, as two builds may lie in different directories. Errors: none; a binary without a build id is in no
// comparison. Thread-safety: pure.
//
// Example: if (std::string names = ReplacedBinaries(before, now); !names.empty()) Warn(names + " were replaced");
#ifndef CADASTRE_REPORT_BINARY_BUILDS_H_
#define CADASTRE_REPORT_BINARY_BUILDS_H_

#include <map>
#include <set>
#include <string>

#include "symbolizer/profile.h"

namespace cadastre {

using BinaryBuilds = std::map<std::string, std::set<std::string>>;  // file name → build ids, in lower-case hex

// Without the kernel's own and Cadastre.
BinaryBuilds BuildsOf(const Profile& profile);

// "libz.so.1, pay and 3 more"; empty: what both have is the same.
std::string ReplacedBinaries(const BinaryBuilds& a, const BinaryBuilds& b);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_BINARY_BUILDS_H_
