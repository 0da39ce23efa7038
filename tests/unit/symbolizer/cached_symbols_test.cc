// With the cache frames have the names that they have without it, from files that are not read for them; and names that
// could be others by now are not taken from it.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "interposer/profile_format.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/symbolizer.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using testing::TemporaryDirectory;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

// A copy of the golden library below a root of its own, and a cache.
struct Case {
  TemporaryDirectory root;
  std::string library = root / "opt/libgolden.so";
  std::string id = ElfFile::Open(GOLDEN_FULL)->build_id();
  SymbolizerOptions options{.root = root.path(), .cache = root / "cache"};
  Profile profile;
  uint64_t address = 0;  // in golden::Ledger::Post, where two functions are inlined

  Case() {
    std::filesystem::create_directory(root / "opt");
    Install(ReadFile(GOLDEN_FULL));
    profile.libraries.resize(2);
    profile.libraries[1].path = "/opt/libgolden.so";
    profile.libraries[1].build_id = id;
    SymbolizerOptions uncached{.root = root.path()};
    Symbolizer symbolizer(profile, uncached);
    for (const AddressRange& range : ElfFile::Open(library)->ExecutableRanges()) {
      for (address = range.begin; address < range.end; address++) {
        if (symbolizer.Resolve(Raw(address)).size() == 3) return;
      }
    }
    FAIL("nothing is inlined");
  }

  static uint64_t Raw(uint64_t at) { return format::MakeLibraryFrame(format::kFrameExact, 1, at); }

  // All files have one time: what is written anew is another file by its size alone, where `seconds` is not another.
  void Install(const std::string& bytes, time_t seconds = 1'700'000'000) {
    std::ofstream(library, std::ios::binary) << bytes;
    const timespec times[] = {{seconds, 0}, {seconds, 0}};
    REQUIRE(utimensat(AT_FDCWD, library.c_str(), times, 0) == 0);
  }

  std::vector<Frame> Ask() {
    Symbolizer symbolizer(profile, options);
    std::vector<Frame> frames = symbolizer.Resolve(Raw(address));
    symbolizer.Resolve(Raw(0xffff'0000));  // nobody's
    warnings = symbolizer.warnings();
    return frames;
  }
  std::vector<std::string> warnings;

  // The library with a mistake in each name, as nobody could tell without reading it.
  std::string Misspelt() const {
    std::string bytes = ReadFile(GOLDEN_FULL);
    for (const char* name : {"Innermost", "Ledger", "Post"}) {
      for (size_t at = 0; (at = bytes.find(name, at)) != std::string::npos; at++) bytes[at] = 'X';
    }
    return bytes;
  }
  size_t CachedFiles() const {
    if (!std::filesystem::exists(root / "cache")) return 0;
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root / "cache"), {}));
  }
};

void CheckSame(const std::vector<Frame>& frames, const std::vector<Frame>& expected) {
  REQUIRE(frames.size() == expected.size());
  for (size_t i = 0; i < frames.size(); i++) {
    CHECK(frames[i].function == expected[i].function);
    CHECK(frames[i].library == expected[i].library);
    CHECK(frames[i].soname == expected[i].soname);
    CHECK(frames[i].file == expected[i].file);
    CHECK(frames[i].line == expected[i].line);
    CHECK(frames[i].inlined == expected[i].inlined);
    CHECK(frames[i].resolved == expected[i].resolved);
  }
}

TEST_CASE("Names come from the cache, and the file is not read for them", "[cached_symbols]") {
  Case c;
  const std::vector<Frame> cold = c.Ask();
  REQUIRE(cold.size() == 3);
  CHECK(cold[2].function == "golden::Ledger::Post");
  CHECK(c.CachedFiles() == 1);
  c.Install(c.Misspelt());
  CheckSame(c.Ask(), cold);
  // What the cache has not seen is read from the file and added.
  c.Install(ReadFile(GOLDEN_FULL));
  c.address++;
  const std::vector<Frame> next = c.Ask();
  c.Install(c.Misspelt());
  CheckSame(c.Ask(), next);
  c.address--;
  CheckSame(c.Ask(), cold);
}

TEST_CASE("A file of another time or size is read again", "[cached_symbols]") {
  Case c;
  c.Ask();
  c.Install(c.Misspelt(), 1'700'000'001);
  CHECK(c.Ask()[2].function == "golden::Xedger::Xost");
  c.Install(c.Misspelt() + "x");
  CHECK(c.Ask()[2].function == "golden::Xedger::Xost");
  CHECK(c.CachedFiles() == 3);
}

TEST_CASE("A debug file that is installed later is used", "[cached_symbols]") {
  Case c;
  c.Install(ReadFile(GOLDEN_FORMS "/stripped/libgolden.so"));
  CHECK(c.Ask().size() == 1);
  const std::string directory = c.root / "usr/lib/debug/.build-id/" + c.id.substr(0, 2);
  std::filesystem::create_directories(directory);
  std::filesystem::copy(GOLDEN_FORMS "/linked/.debug/golden.debug", directory + "/" + c.id.substr(2) + ".debug");
  CHECK(c.Ask().size() == 3);
  // And it alone, without the library, from the cache as well as before.
  std::filesystem::remove(c.library);
  const std::vector<Frame> alone = c.Ask();
  CHECK(alone.size() == 3);
  CheckSame(c.Ask(), alone);
  CHECK(c.warnings.empty());
}

TEST_CASE("A library that is another one has no names from the cache, and is named as without it", "[cached_symbols]") {
  Case c;
  c.Ask();
  std::string other = ReadFile(GOLDEN_FULL);
  other[other.find(absl::HexStringToBytes(c.id))] ^= 1;
  for (int i = 0; i < 2; i++) {
    c.Install(other);
    CHECK_FALSE(c.Ask()[0].resolved);
    REQUIRE(c.warnings.size() == 1);
    CHECK(c.warnings[0].find("is not the file that was recorded") != std::string::npos);
  }
  std::filesystem::remove(c.library);
  CHECK_FALSE(c.Ask()[0].resolved);
  REQUIRE(c.warnings.size() == 1);
  CHECK(c.warnings[0].find("cannot be read") != std::string::npos);
}

TEST_CASE("The name of a library's file decides whether its soname is told, from the cache too", "[cached_symbols]") {
  Case c;
  c.Ask();
  const std::string soname = ElfFile::Open(GOLDEN_FULL)->soname();
  REQUIRE(soname == "libgolden.so");
  CHECK(c.Ask()[0].soname.empty());
  std::filesystem::rename(c.library, c.root / "opt/renamed.so");
  c.profile.libraries[1].path = "/opt/renamed.so";
  CHECK(c.Ask()[0].soname == soname);
}

TEST_CASE("Without lines names are others than with them", "[cached_symbols]") {
  Case c;
  c.Ask();
  c.options.source_lines = false;
  CHECK(c.Ask().size() == 1);
  CHECK(c.Ask().size() == 1);
  c.options.source_lines = true;
  CHECK(c.Ask().size() == 3);
}

TEST_CASE("Names that lack what debug files share are not kept", "[cached_symbols]") {
  Case c;
  c.Install(ReadFile(GOLDEN_FORMS "/no_shared/libgolden.so"));
  CHECK(c.Ask().size() == 3);
  CHECK(c.CachedFiles() == 0);
}

TEST_CASE("Names are stored when it is asked for, for who comes while we still live", "[cached_symbols]") {
  Case c;
  Symbolizer first(c.profile, c.options);
  first.Resolve(Case::Raw(c.address));
  CHECK(c.CachedFiles() == 0);
  first.StoreNames();
  CHECK(c.CachedFiles() == 1);
}

}  // namespace
}  // namespace cadastre
