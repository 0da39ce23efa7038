// The sources of a repository, with what each declares (source_declarations.h): package and classes, or namespace.
//
// Files and directories whose name begins with a dot are passed over. Errors: a directory that cannot be read; a single
// file that cannot is a file that declares nothing. Thread-safety: pure.
//
// Example: ForEachSource("repo", [](const SourceFile& file) { ... });
#ifndef CADASTRE_REPORT_SOURCE_FILES_H_
#define CADASTRE_REPORT_SOURCE_FILES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "symbolizer/profile.h"

namespace cadastre {

struct SourceFile {
  std::string path;   // relative to the directory that was asked for
  bool java = false;  // of a language that runs on the JVM
  std::string scope;  // "com.acme.billing", "acme::billing"; empty = none declared
  // Java's alone: the classes at its top, that which is called as the file is first; never empty.
  std::vector<std::string> types;

  std::string Directory() const;  // "a/b/"; empty at the top
  // Frames of it, as rules see them: one of each class, or of the namespace. Never empty.
  std::vector<Frame> AsFrames() const;
};

absl::Status ForEachSource(const std::string& directory, const std::function<void(const SourceFile&)>& take);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SOURCE_FILES_H_
