// Linked in place of jar_file.cc into the `cadastre` that needs no library.
#include "absl/strings/str_cat.h"
#include "report/jar_file.h"

namespace cadastre {
namespace {
absl::Status CannotRead(const std::string& path) {
  return absl::UnimplementedError(
      absl::StrCat(path, ": this cadastre is linked without libzip and reads no jars: unpack it and use --dir"));
}
}  // namespace

absl::Status ForEachJarEntry(const std::string& path, const VisitJarEntry&) { return CannotRead(path); }
absl::Status ForEachJarEntryIn(const std::string&, const std::string& where, const VisitJarEntry&) {
  return CannotRead(where);
}

}  // namespace cadastre
