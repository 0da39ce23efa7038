// The entries of a jar (a ZIP archive). jar_file.cc is the one file that names libzip; jar_file_absent.cc stands in for
// it in a `cadastre` that is linked statically, since distributions have no static libzip.
//
// Errors: a Status with the path; what `visit` returns ends the walk. Thread-safety: pure.
//
// Example:
//   ForEachJarEntry("app.jar", [](const JarEntry& entry) { puts(entry.name.c_str()); return absl::OkStatus(); });
#ifndef CADASTRE_REPORT_JAR_FILE_H_
#define CADASTRE_REPORT_JAR_FILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace cadastre {

struct JarEntry {
  std::string name;
  uint64_t size_bytes = 0;
  std::function<std::string()> read;  // its bytes; fewer where the archive is damaged
};
using VisitJarEntry = std::function<absl::Status(const JarEntry&)>;

absl::Status ForEachJarEntry(const std::string& path, const VisitJarEntry& visit);
// The same of a jar in memory, which another one holds; `where` names it in errors.
absl::Status ForEachJarEntryIn(const std::string& bytes, const std::string& where, const VisitJarEntry& visit);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_JAR_FILE_H_
