// A JVM unpacks libraries under names that are never the same twice; a `lib:` rule must know them all the same.
#include "symbolizer/library_names.h"

#include <algorithm>
#include <string>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

bool Knows(const std::string& path, const std::string& name, const std::string& soname = "") {
  std::vector<std::string> names = LibraryNames(path, soname);
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST_CASE("A library is known by path, file name and SONAME", "[library_names]") {
  CHECK(Knows("/usr/lib/libfoo.so.1.2", "/usr/lib/libfoo.so.1.2"));
  CHECK(Knows("/usr/lib/libfoo.so.1.2", "libfoo.so.1.2"));
  CHECK(Knows("/lib/libc-2.31.so", "libc.so.6", "libc.so.6"));
  CHECK(Knows("/tmp/libfoo.so (deleted)", "libfoo.so"));
}

TEST_CASE("Random parts of unpacked libraries are left out", "[library_names]") {
  CHECK(Knows("/tmp/librocksdbjni1234567.so", "librocksdbjni.so"));
  CHECK(Knows("/tmp/jna8588255081773605818.tmp", "jna.tmp"));
  CHECK(Knows("/tmp/libzstd-jni-1.5.5-5-16470613984735930839.so", "libzstd-jni-1.5.5-5.so"));
  CHECK(Knows("/tmp/liblz4-java-8927349872394.so", "liblz4-java.so"));
  CHECK(Knows("/tmp/snappy-1.1.10-5f0b2d7e-7a52-4d5c-9a35-0d4e3b6a1c2f-libsnappyjava.so", "libsnappyjava.so"));
  CHECK(Knows("/tmp/libfoo-5f0b2d7e-7a52-4d5c-9a35-0d4e3b6a1c2f.so", "libfoo.so"));
  CHECK(Knows("/tmp/libfoo_3f2a9c7712bd.so", "libfoo.so"));
  CHECK(Knows("/tmp/libnetty_tcnative_linux_x86_64123456789.so", "libnetty_tcnative_linux_x86_64.so"));
}

TEST_CASE("Names that merely have digits or hex letters keep them", "[library_names]") {
  CHECK(LibraryNames("/usr/lib/libcudart11.so", "").size() == 2);
  CHECK(LibraryNames("/usr/lib/libfacade.so", "").size() == 2);
  CHECK(LibraryNames("/usr/lib/libdeadbeef.so", "").size() == 2);
  CHECK(LibraryNames("/usr/lib/libz3.so.4", "").size() == 2);
  CHECK(LibraryNames("12345678", "").size() == 1);
  CHECK(LibraryNames("", "").empty());
}

}  // namespace
}  // namespace cadastre
