// The name that the workers of one pool share: "http-nio-8080-exec-12" → "http-nio-8080-exec-*".
//
// Only a number that counts goes: one at the end, behind a separator or a word of four letters or more, or one between
// two separators. What is part of a name stays ("x86_64", "log4j", "utf8", "h08_new_family"), and so does what may be a
// port, which tells two pools apart. A thread that was never named is called as its program was ("python3"): that stays
// too. The kernel cuts names at 15 characters ("http-nio-8080-e").
//
// Errors: none. Thread-safety: pure.
//
// Example: ThreadPattern("pool-3-thread-12", UnnamedThreadName(profile))  → "pool-*-thread-*"
#ifndef CADASTRE_REPORT_THREAD_PATTERN_H_
#define CADASTRE_REPORT_THREAD_PATTERN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "symbolizer/profile.h"

namespace cadastre {

// `unnamed`: what a thread is called that nobody has named.
std::string ThreadPattern(absl::string_view name, absl::string_view unnamed);

// The first thread's name, which the others inherit; if it gave no sample, the program's.
std::string UnnamedThreadName(const Profile& profile);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_THREAD_PATTERN_H_
