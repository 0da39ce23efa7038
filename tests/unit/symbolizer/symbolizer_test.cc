// Real code, compiled and shipped as libraries are: with debug information, stripped, with a debug file, with mini
// debug information, compressed. The same addresses must get the same names wherever the names are, and no name at all
// from other code.
#include "symbolizer/symbolizer.h"

#include <dlfcn.h>
#include <link.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "interposer/profile_format.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/library_names.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using format::MakeLibraryFrame;
using testing::TemporaryDirectory;

// ELF addresses of places in the golden library: by running it once.
class Golden {
 public:
  Golden() : handle_(dlopen(GOLDEN_FULL, RTLD_NOW | RTLD_LOCAL)) {
    INFO(dlerror());
    REQUIRE(handle_ != nullptr);
    link_map* map;
    REQUIRE(dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0);
    base_ = map->l_addr;
  }
  uint64_t Symbol(const char* name) const { return reinterpret_cast<uint64_t>(dlsym(handle_, name)) - base_; }
  // The return address that one of the Golden* functions captures.
  uint64_t Captured(const char* name) const {
    auto function = reinterpret_cast<void* (*)()>(dlsym(handle_, name));
    REQUIRE(function != nullptr);
    return reinterpret_cast<uint64_t>(function()) - base_;
  }

 private:
  void* handle_;
  uint64_t base_;
};

int LineOf(const std::string& words) {
  std::ifstream source(GOLDEN_SOURCE);
  std::string line;
  for (int number = 1; std::getline(source, line); number++) {
    if (line.find("// " + words) != std::string::npos) return number;
  }
  FAIL("no line says " << words);
  return 0;
}

Profile ProfileWith(const std::string& path, const std::string& build_id) {
  Profile profile;
  profile.libraries.resize(2);
  profile.libraries[1].path = path;
  profile.libraries[1].build_id = build_id;
  return profile;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

std::string BuildId(const std::string& path) { return ElfFile::Open(path)->build_id(); }

uint64_t Return(uint64_t address) { return MakeLibraryFrame(format::kFrameReturn, 1, address); }
uint64_t Exact(uint64_t address) { return MakeLibraryFrame(format::kFrameExact, 1, address); }

// One question to a fresh symbolizer.
std::vector<Frame> Ask(const std::string& path, uint64_t raw, SymbolizerOptions options = {}) {
  Profile profile = ProfileWith(path, BuildId(GOLDEN_FULL));
  Symbolizer symbolizer(profile, options);
  return symbolizer.Resolve(raw);
}

void CheckInlineChain(const std::vector<Frame>& frames) {
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].function == "golden::Innermost");
  CHECK(frames[0].line == LineOf("line of Innermost"));
  CHECK(frames[0].inlined);
  CHECK(frames[1].function == "golden::Ledger::Book");
  CHECK(frames[1].line == LineOf("line of Book"));
  CHECK(frames[1].inlined);
  CHECK(frames[2].function == "golden::Ledger::Post");
  CHECK(frames[2].line == LineOf("line of Post"));
  CHECK_FALSE(frames[2].inlined);
  for (const Frame& frame : frames) {
    CHECK(frame.resolved);
    CHECK(std::filesystem::equivalent(frame.file, GOLDEN_SOURCE));
  }
}

TEST_CASE("Inlined functions come out innermost first, each with its own line", "[symbolizer]") {
  std::vector<Frame> frames = Ask(GOLDEN_FULL, Return(Golden().Captured("GoldenInlined")));
  CheckInlineChain(frames);
  CHECK(frames[0].library == GOLDEN_FULL);
}

TEST_CASE("Templates, anonymous namespaces and lambdas have their names and lines", "[symbolizer]") {
  Golden golden;
  std::vector<Frame> typed = Ask(GOLDEN_FULL, Return(golden.Captured("GoldenTyped")));
  REQUIRE(typed.size() == 1);
  CHECK(typed[0].function == "golden::Typed<char const*>");
  CHECK(typed[0].line == LineOf("line of Typed"));
  std::vector<Frame> hidden = Ask(GOLDEN_FULL, Return(golden.Captured("GoldenHidden")));
  REQUIRE(hidden.size() == 1);
  CHECK(hidden[0].function == "golden::(anonymous namespace)::Hidden");
  CHECK(hidden[0].line == LineOf("line of Hidden"));
  std::vector<Frame> lambda = Ask(GOLDEN_FULL, Return(golden.Captured("GoldenLambda")));
  REQUIRE_FALSE(lambda.empty());
  CHECK(lambda[0].function == "GoldenLambda::{lambda(int)#1}::operator()");
  CHECK(lambda[0].line == LineOf("line of the lambda"));
}

TEST_CASE("Compressed debug sections and debug files found by debuglink say the same", "[symbolizer]") {
  uint64_t raw = Return(Golden().Captured("GoldenInlined"));
  CheckInlineChain(Ask(GOLDEN_FORMS "/compressed/libgolden.so", raw));
  CheckInlineChain(Ask(GOLDEN_FORMS "/linked/libgolden.so", raw));
}

TEST_CASE("A debug file under the build-id directory is found, below a root too", "[symbolizer]") {
  TemporaryDirectory root;
  std::string id = BuildId(GOLDEN_FULL);
  std::filesystem::create_directories(root / "usr/lib/debug/.build-id/" + id.substr(0, 2));
  std::filesystem::create_directories(root / "opt/app");
  std::filesystem::copy(GOLDEN_FORMS "/linked/.debug/golden.debug",
                        root / "usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  std::filesystem::copy(GOLDEN_FORMS "/stripped/libgolden.so", root / "opt/app/libgolden.so");
  SymbolizerOptions options;
  options.root = root.path() + "/";
  uint64_t raw = Return(Golden().Captured("GoldenInlined"));
  CheckInlineChain(Ask("/opt/app/libgolden.so", raw, options));
  // The library itself may be gone by now; its debug file still has the names.
  std::filesystem::remove(root / "opt/app/libgolden.so");
  CheckInlineChain(Ask("/opt/app/libgolden.so (deleted)", raw, options));
}

TEST_CASE("A debug file with the wrong checksum is not used", "[symbolizer]") {
  std::vector<Frame> frames = Ask(GOLDEN_FORMS "/wrong_crc/libgolden.so", Return(Golden().Captured("GoldenInlined")));
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].file.empty());
}

TEST_CASE("A debug file found by its link is known by its build id, and no other one is", "[symbolizer]") {
  uint64_t raw = Return(Golden().Captured("GoldenInlined"));
  CheckInlineChain(Ask(GOLDEN_FORMS "/same_id/libgolden.so", raw));
  TemporaryDirectory directory;
  std::filesystem::copy(GOLDEN_FORMS "/same_id/libgolden.so", directory / "libgolden.so");
  std::string debug = ReadFile(GOLDEN_FORMS "/same_id/golden.debug");
  const std::string id = absl::HexStringToBytes(BuildId(GOLDEN_FULL));
  debug[debug.find(id)] ^= 1;
  std::ofstream(directory / "golden.debug", std::ios::binary) << debug;
  CHECK(Ask(directory / "libgolden.so", raw)[0].file.empty());
}

TEST_CASE("A stripped library has the names of its dynamic symbols and offsets for the rest", "[symbolizer]") {
  Golden golden;
  std::vector<Frame> known = Ask(GOLDEN_FORMS "/stripped/libgolden.so", Exact(golden.Symbol("GoldenTyped")));
  REQUIRE(known.size() == 1);
  CHECK(known[0].function == "GoldenTyped");
  CHECK(known[0].resolved);
  Profile profile = ProfileWith(GOLDEN_FORMS "/stripped/libgolden.so", BuildId(GOLDEN_FULL));
  Symbolizer symbolizer(profile, {});
  uint64_t address = golden.Captured("GoldenHidden");
  const Frame& unknown = symbolizer.Resolve(Return(address))[0];
  char expected[64];
  snprintf(expected, sizeof(expected), "libgolden.so+0x%lx", address);
  CHECK(unknown.function == expected);
  CHECK_FALSE(unknown.resolved);
  CHECK(symbolizer.unresolved_frames() == 1);
  symbolizer.Resolve(Return(address));
  CHECK(symbolizer.unresolved_frames() == 1);  // each frame once
  CHECK(symbolizer.warnings().empty());
}

#if GOLDEN_HAS_MINI
TEST_CASE("Mini debug information names local functions", "[symbolizer]") {
  std::vector<Frame> frames = Ask(GOLDEN_FORMS "/mini/libgolden.so", Return(Golden().Captured("GoldenHidden")));
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function == "golden::(anonymous namespace)::Hidden");
}
#endif

TEST_CASE("Without source lines there are functions alone", "[symbolizer]") {
  SymbolizerOptions options;
  options.source_lines = false;
  std::vector<Frame> frames = Ask(GOLDEN_FULL, Return(Golden().Captured("GoldenInlined")), options);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].function == "golden::Ledger::Post");
  CHECK(frames[0].file.empty());
}

TEST_CASE("Sizes of symbols are honoured, unsized ones reach to the next, labels inside are none", "[symbolizer]") {
  uint64_t unsized = Golden().Symbol("golden_unsized");
  auto name = [&](uint64_t raw) { return Ask(GOLDEN_FULL, raw)[0].function; };
  CHECK(name(Exact(unsized)) == "golden_unsized");
  CHECK(name(Exact(unsized + 2)) == "golden_unsized");
  CHECK(name(Exact(unsized + 3)) == "golden_sized");
  CHECK(name(Exact(unsized + 4)) == "golden_sized");
  CHECK(name(Exact(unsized + 5)) == "golden_sized");
  CHECK_FALSE(Ask(GOLDEN_FULL, Exact(unsized + 6))[0].resolved);  // beyond the end: nobody's
  CHECK_FALSE(Ask(GOLDEN_FULL, Exact(unsized + 60))[0].resolved);
}

TEST_CASE("A return address is looked up in the call before it, an exact one where it is", "[symbolizer]") {
  uint64_t next = Golden().Symbol("golden_sized");
  CHECK(Ask(GOLDEN_FULL, Return(next))[0].function == "golden_unsized");
  CHECK(Ask(GOLDEN_FULL, Exact(next))[0].function == "golden_sized");
}

TEST_CASE("An address in the procedure linkage table is named after its function", "[symbolizer]") {
  // GoldenReturnAddress is called through the table: the first call in Post's captured place goes there. Found by its
  // jump instead of by guessing the layout: every 16 bytes of the table are asked.
  std::unique_ptr<ElfFile> file = ElfFile::Open(GOLDEN_FULL);
  bool found = false;
  for (const AddressRange& range : file->ExecutableRanges()) {
    for (uint64_t address = range.begin; address < range.end && !found; address += 16) {
      found = Ask(GOLDEN_FULL, Exact(address))[0].function == "GoldenReturnAddress@plt";
    }
  }
  CHECK(found);
}

TEST_CASE("A file with another build id is not used and is named once", "[symbolizer]") {
  for (std::string id : {std::string(40, 'a'), std::string()}) {
    Profile profile = ProfileWith(GOLDEN_FULL, id);
    Symbolizer symbolizer(profile, {});
    uint64_t address = Golden().Captured("GoldenHidden");
    CHECK_FALSE(symbolizer.Resolve(Return(address))[0].resolved);
    CHECK_FALSE(symbolizer.Resolve(Return(address + 1))[0].resolved);
    REQUIRE(symbolizer.warnings().size() == 1);
    CHECK(symbolizer.warnings()[0].find("is not the file that was recorded") != std::string::npos);
    CHECK(symbolizer.unresolved_frames() == 2);
  }
}

TEST_CASE("Frames without a library, with a bad one, and special ones have names", "[symbolizer]") {
  Profile profile = ProfileWith("", "");
  profile.libraries.push_back({});
  profile.libraries[2].vdso = true;
  profile.java_names = {{7, "com.acme.Index.add"}};
  Symbolizer symbolizer(profile, {});
  auto name = [&](uint64_t raw) { return symbolizer.Resolve(raw)[0].function; };
  CHECK(name(format::MakeUnknownFrame(format::kFrameUnknown, 0x7f1234567890)) == "0x7f1234567890");
  CHECK(name(Return(0x1234)) == "[unknown]+0x1234");
  CHECK(name(MakeLibraryFrame(format::kFrameReturn, 99, 0x10)) == "[library 99]+0x10");
  CHECK(name(MakeLibraryFrame(format::kFrameReturn, 2, 0x99)) == "[vdso]+0x99");
  CHECK(name(kStackTableFullFrame) == "[stack table full]");
  CHECK(name(0) == "[frame 0x0]");
  uint64_t java = (static_cast<uint64_t>(format::kFrameJava) << 60) | (7ull << 28) | 42;
  CHECK(name(java) == "com.acme.Index.add");
  CHECK(symbolizer.Resolve(java)[0].line == 42);
  CHECK(symbolizer.Resolve(java)[0].java);
}

TEST_CASE("Names stored in the profile are preferred", "[symbolizer]") {
  Profile profile = ProfileWith("/nowhere/libgone.so", "aabb");
  Frame frame;
  frame.function = "acme::Stored";
  frame.resolved = true;
  profile.stored_symbols = {{Return(0x1234), {frame}}};
  Symbolizer symbolizer(profile, {});
  CHECK(symbolizer.Resolve(Return(0x1234))[0].function == "acme::Stored");
  CHECK(symbolizer.warnings().empty());
}

TEST_CASE("Damaged libraries cost names and nothing else", "[symbolizer]") {
  TemporaryDirectory directory;
  std::string bytes = ReadFile(GOLDEN_FULL);
  std::string id = BuildId(GOLDEN_FULL);
  uint64_t raw = Return(Golden().Captured("GoldenInlined"));
  std::string path = directory / "libgolden.so";
  auto ask = [&](const std::string& content) {
    { std::ofstream(path, std::ios::binary) << content; }
    Profile profile = ProfileWith(path, id);
    Symbolizer symbolizer(profile, {});
    REQUIRE_FALSE(symbolizer.Resolve(raw).empty());
    REQUIRE_FALSE(symbolizer.Resolve(Exact(0x1000)).empty());
  };
  for (size_t size = 0; size < bytes.size(); size += 997) ask(bytes.substr(0, size));
  uint64_t state = 88172645463325252;
  for (int i = 0; i < 300; i++) {
    std::string damaged = bytes;
    for (int flip = 0; flip < 8; flip++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      damaged[state % damaged.size()] ^= static_cast<char>(1 << (state >> 60 & 7));
    }
    ask(damaged);
  }
}

TEST_CASE("A large library is ready in a fraction of a second", "[symbolizer]") {
  std::string jvm;
  for (const char* path : {"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
                           "/usr/lib/jvm/java-21-openjdk-amd64/lib/server/libjvm.so"}) {
    if (std::filesystem::exists(path)) jvm = path;
  }
  if (jvm.empty()) return;  // no JVM here; the golden library has told the rest
  Profile profile = ProfileWith(jvm, BuildId(jvm));
  auto begin = std::chrono::steady_clock::now();
  Symbolizer symbolizer(profile, {});
  std::vector<Frame> frames = symbolizer.Resolve(Exact(ElfFile::Open(jvm)->ExecutableRanges()[0].begin + 0x100000));
  auto took = std::chrono::steady_clock::now() - begin;
  CHECK(frames[0].resolved);
  INFO(std::chrono::duration<double>(took).count() << " s");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
  CHECK(took < std::chrono::milliseconds(1000));  // 60 ms alone on the machine; the rest is for its neighbours
#endif
}

}  // namespace
}  // namespace cadastre
