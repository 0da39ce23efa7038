// The sources of a repository, with the package or namespace that each declares.
//
// Read by their first declaration: `package a.b.c` of Java, Kotlin, Scala and Groovy, `namespace a::b {` of C++. Files
// and directories whose name begins with a dot are passed over. Errors: a directory that cannot be read; a single file
// that cannot is a file that declares nothing. Thread-safety: pure.
//
// Example: ForEachSource("repo", [](const SourceFile& file) { ... });
#ifndef CADASTRE_REPORT_SOURCE_FILES_H_
#define CADASTRE_REPORT_SOURCE_FILES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "symbolizer/profile.h"

namespace cadastre {

struct SourceFile {
  std::string path;   // relative to the directory that was asked for
  bool java = false;  // of a language that runs on the JVM
  std::string scope;  // "com.acme.billing", "acme::billing"; empty = none declared

  std::string Directory() const;  // "a/b/"; empty at the top
  std::string Stem() const;       // "Invoice" of "a/b/Invoice.java"
  // A frame of it, as rules see it: of the class that is called as the file is, or of the namespace.
  Frame AsFrame() const;
};

absl::Status ForEachSource(const std::string& directory, const std::function<void(const SourceFile&)>& take);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SOURCE_FILES_H_
