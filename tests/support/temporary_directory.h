// A directory of a test's own, removed with what is in it.
//
// Example: TemporaryDirectory directory; builder.WriteTo(directory / "x.cad");
#ifndef CADASTRE_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
#define CADASTRE_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace cadastre::testing {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "cadastre-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace cadastre::testing

#endif  // CADASTRE_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
