// Which language runtime a recorded process is, from its list of libraries.
//
// Errors: none; what is not known is empty. Thread-safety: reads files, otherwise pure.
//
// Example: RuntimeOf(profile)  →  "java 21", "python 3.11", "node", or "" for a native program.
#ifndef CADASTRE_REPORT_RUNTIME_FACTS_H_
#define CADASTRE_REPORT_RUNTIME_FACTS_H_

#include <string>

#include "symbolizer/profile.h"

namespace cadastre {

std::string RuntimeOf(const Profile& profile);

// JAVA_VERSION from the `release` file of the JDK that this libjvm.so belongs to; empty = not known.
std::string JavaVersionOf(const std::string& libjvm_path);

// "libc.so.6" → "glibc"; other allocators by their file name.
std::string AllocatorName(const Profile& profile);

// What a reader would call the program: the file name of its executable, else of its first argument.
std::string ProgramName(const Profile& profile);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_RUNTIME_FACTS_H_
