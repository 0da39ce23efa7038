// libunwind is mapped and relocated by us alone: it must work, stay unknown to the loader, and a file that is not what
// it should be must be refused and not run.
#include "interposer/unwind_image.h"

#include <link.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/catch.h"

using namespace cadastre;

namespace {

std::string ImageBytes() {
  std::ifstream file(CADASTRE_PRIVATE_UNWIND, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// As Map and Prepare find it.
bool IsUsable(const std::string& bytes) {
  char path[] = "/tmp/unwind_image_test.XXXXXX";
  close(mkstemp(path));
  std::ofstream(path, std::ios::binary) << bytes;
  UnwindImage image;
  const bool is_usable = image.Map(path) && image.Prepare();
  unlink(path);
  return is_usable;
}

int CountInLoader(dl_phdr_info* info, size_t, void* count) {
  *static_cast<int*>(count) += strstr(info->dlpi_name, "unwind.so") != nullptr;
  return 0;
}

}  // namespace

TEST_CASE("What the image offers can be called, and the loader knows nothing of it") {
  UnwindImage image;
  CHECK(image.Find("_Ux86_64_regname") == nullptr);
  REQUIRE(image.Map(CADASTRE_PRIVATE_UNWIND));
  CHECK(image.Find("_Ux86_64_regname") == nullptr);  // not before it is prepared
  REQUIRE(image.Prepare());
  CHECK(image.Prepare());
  auto* name_of = reinterpret_cast<const char* (*)(int)>(image.Find("_Ux86_64_regname"));
  REQUIRE(name_of != nullptr);
  CHECK(std::string(name_of(6)) == "RBP");  // from a table of pointers, each of them relocated
  CHECK(image.Find("no such function") == nullptr);
  int listed = 0;
  dl_iterate_phdr(CountInLoader, &listed);
  CHECK(listed == 0);
}

TEST_CASE("A file that is missing, cut or no shared library is refused") {
  const std::string whole = ImageBytes();
  REQUIRE(IsUsable(whole));
  CHECK_FALSE(UnwindImage().Map("/nowhere/libcadastre-unwind.so"));
  CHECK_FALSE(UnwindImage().Prepare());
  CHECK_FALSE(IsUsable(""));
  CHECK_FALSE(IsUsable(std::string(100000, 'x')));
  for (size_t bytes = 4096; bytes < whole.size() - 4096; bytes += 4096) CHECK_FALSE(IsUsable(whole.substr(0, bytes)));
  std::string other = whole;
  other[18] = 3;  // e_machine: i386
  CHECK_FALSE(IsUsable(other));
  other = whole;
  other[16] = 2;  // e_type: an executable with addresses of its own
  CHECK_FALSE(IsUsable(other));
}
