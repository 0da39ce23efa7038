// What a build consists of, as rules would name it: classes of jars and directories, libraries and their functions,
// sources.
//
// Errors: a Status with the path. Thread-safety: pure.
//
// Example: ReadJar("app.jar", [](const CodeMember& member) { ... });
#ifndef CADASTRE_REPORT_CODE_INVENTORY_H_
#define CADASTRE_REPORT_CODE_INVENTORY_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "symbolizer/profile.h"

namespace cadastre {

struct CodeMember {
  Frame frame;  // that a call of it would have
  std::string
      prefix;        // what a rule for its package, namespace or library begins with: "com.acme.shop.", "lib:libfoo.so"
  const char* what;  // "class", "function", "library", "source"
  std::string where;  // the file that holds it
};
using TakeMember = std::function<void(const CodeMember&)>;

// Classes and native libraries of a jar, and of jars in it (Spring Boot, WAR). Nested classes are their outer class.
absl::Status ReadJar(const std::string& path, const TakeMember& take);

// Jars, libraries and class files below a directory. Class files lie below a root of packages: the directory itself, or
// the last "classes/" (with Gradle's "java/main/") on the way.
absl::Status ReadBuildDirectory(const std::string& path, const TakeMember& take);

// Sources below a directory (source_files.h).
absl::Status ReadSourceDirectory(const std::string& path, const TakeMember& take);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CODE_INVENTORY_H_
