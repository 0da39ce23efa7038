// The names under which a `lib:` rule may know a library.
//
// Libraries that a JVM unpacks carry something random: librocksdbjni1234567.so, snappy-1.1.10-<uuid>-libsnappyjava.so,
// jna58812.tmp. Errors: none. Thread-safety: pure functions.
//
// Example: LibraryNames("/tmp/librocksdbjni1234567.so", "") gives
//   "/tmp/librocksdbjni1234567.so", "librocksdbjni1234567.so", "librocksdbjni.so"
#ifndef CADASTRE_SYMBOLIZER_LIBRARY_NAMES_H_
#define CADASTRE_SYMBOLIZER_LIBRARY_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

namespace cadastre {

// Path, file name, SONAME, and the file name without each random part. "(deleted)" at the end of a path is dropped.
std::vector<std::string> LibraryNames(std::string_view path, std::string_view soname);

// "/a/libfoo.so (deleted)" -> "/a/libfoo.so": what the kernel appends to the name of a file that is gone.
std::string_view WithoutDeleted(std::string_view path);

std::string_view FileNameOf(std::string_view path);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_LIBRARY_NAMES_H_
