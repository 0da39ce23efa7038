// `cadastre symbolize` makes a profile that another machine reports in full: here the library is taken away between the
// two.
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "interposer/profile_format.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/symbolizer.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using testing::ProfileBuilder;
using testing::TemporaryDirectory;

uint64_t AddressOfSymbol(const std::string& library_path, const std::string& build_id, const std::string& function) {
  Profile profile;
  profile.libraries.resize(2);
  profile.libraries[1].path = library_path;
  profile.libraries[1].build_id = build_id;
  Symbolizer symbolizer(profile, {});
  for (const AddressRange& range : ElfFile::Open(library_path)->ExecutableRanges()) {
    for (uint64_t address = range.begin; address < range.end; address++) {
      if (symbolizer.Resolve(format::MakeLibraryFrame(format::kFrameExact, 1, address)).back().function == function)
        return address;
    }
  }
  FAIL("no " << function);
  return 0;
}

struct Case {
  TemporaryDirectory directory;
  std::string library = directory / "libgolden.so";
  std::string in = directory / "in.cad", out = directory / "out.cad";
  ProfileBuilder builder;
  uint64_t raw = 0;

  Case() {
    std::filesystem::copy(GOLDEN_FULL, library);
    std::string id = ElfFile::Open(library)->build_id();
    uint32_t index = builder.AddLibrary(library, id);
    uint64_t address = AddressOfSymbol(library, id, "golden::Ledger::Post");
    raw = format::MakeLibraryFrame(format::kFrameExact, index, address);
    uint32_t site = builder.AddSite({raw, builder.JavaFrame("com.acme.A.b", 3)});
    builder.AddSample(site, 0x1000, 100, 1000);
    builder.set_spare_pages(1000);
    REQUIRE(builder.WriteTo(in));
  }
};

TEST_CASE("A symbolized profile is reported in full without the binaries", "[symbolized_profile]") {
  Case c;
  REQUIRE(WriteSymbolizedProfile(c.in, c.out, {}).ok());
  std::filesystem::remove(c.library);
  absl::StatusOr<Profile> profile = ReadProfile(c.out);
  REQUIRE(profile.ok());
  CHECK(profile->warnings.empty());
  CHECK(profile->incomplete.empty());
  CHECK(profile->live.size() == 1);
  Symbolizer symbolizer(*profile, {});
  const std::vector<Frame>& frames = symbolizer.Resolve(c.raw);
  CHECK(frames.back().function == "golden::Ledger::Post");
  CHECK(frames.back().line > 0);
  CHECK(symbolizer.unresolved_frames() == 0);
  CHECK(symbolizer.warnings().empty());

  struct stat status;
  REQUIRE(stat(c.out.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(status.st_blocks * 512 < 1 << 20);  // 28 MiB of capacity stay holes
  CHECK(std::distance(std::filesystem::directory_iterator(c.directory.path()), {}) == 2);  // no temporary file is left

  // Again, from the copy, onto itself: names are kept and not stored twice.
  uint64_t size = profile->file_bytes;
  REQUIRE(WriteSymbolizedProfile(c.out, c.out, {}).ok());
  profile = ReadProfile(c.out);
  REQUIRE(profile.ok());
  CHECK(profile->file_bytes == size);
  CHECK(Symbolizer(*profile, {}).Resolve(c.raw).back().function == "golden::Ledger::Post");
}

TEST_CASE("What was wrong where the binaries are is still said where they are not", "[symbolized_profile]") {
  Case c;
  std::filesystem::remove(c.library);
  REQUIRE(WriteSymbolizedProfile(c.in, c.out, {}).ok());
  absl::StatusOr<Profile> profile = ReadProfile(c.out);
  REQUIRE(profile.ok());
  REQUIRE(profile->warnings.size() == 1);
  CHECK(profile->warnings[0].find("libgolden.so cannot be read") != std::string::npos);
  Symbolizer symbolizer(*profile, {});
  CHECK_FALSE(symbolizer.Resolve(c.raw)[0].resolved);
  CHECK(symbolizer.unresolved_frames() == 1);
}

TEST_CASE("A cut profile keeps its warning when it is symbolized", "[symbolized_profile]") {
  Case c;
  std::string bytes = c.builder.Build();
  for (uint64_t cut : {bytes.size() - 4096 * 500, bytes.size() - 4096 * 4000}) {
    std::filesystem::resize_file(c.in, cut);
    absl::StatusOr<Profile> before = ReadProfile(c.in);
    REQUIRE(before.ok());
    REQUIRE(WriteSymbolizedProfile(c.in, c.out, {}).ok());
    absl::StatusOr<Profile> after = ReadProfile(c.out);
    REQUIRE(after.ok());
    CHECK(after->warnings == before->warnings);
    CHECK(after->incomplete == "the file was made from one that is cut or damaged");
    CHECK(after->live.size() == before->live.size());
    CHECK(after->sites.size() == before->sites.size());
  }
}

TEST_CASE("A failure leaves nothing behind and names the place", "[symbolized_profile]") {
  Case c;
  CHECK(WriteSymbolizedProfile(c.directory / "none.cad", c.out, {}).message() ==
        (c.directory / "none.cad") + ": cannot open: No such file or directory");
  CHECK_FALSE(std::filesystem::exists(c.out));
  CHECK(WriteSymbolizedProfile(c.in, "/nowhere/out.cad", {}).message() ==
        "/nowhere/out.cad: cannot write: No such file or directory");
}

}  // namespace
}  // namespace cadastre
