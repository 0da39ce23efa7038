#include "symbolizer/jit_symbols.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using cadastre::JitSymbols;
using cadastre::testing::TemporaryDirectory;

namespace {

std::string NameAt(const JitSymbols& symbols, uint64_t pc) {
  const std::string* name = symbols.Find(pc);
  return name == nullptr ? "" : *name;
}

}  // namespace

TEST_CASE("A pc is named by the code that covers it", "[jit_symbols]") {
  JitSymbols symbols = JitSymbols::Parse("1000 100 LazyCompile:*render app.js:12\n2000 10 Builtin:Add\r\n");
  CHECK(NameAt(symbols, 0xfff).empty());
  CHECK(NameAt(symbols, 0x1000) == "LazyCompile:*render app.js:12");
  CHECK(NameAt(symbols, 0x10ff) == "LazyCompile:*render app.js:12");
  CHECK(NameAt(symbols, 0x1100).empty());
  CHECK(NameAt(symbols, 0x2008) == "Builtin:Add");
}

TEST_CASE("Later code counts where memory was used again", "[jit_symbols]") {
  JitSymbols symbols =
      JitSymbols::Parse("1000 100 old\n1040 20 inner\n2000 10 a\n2010 10 b\n1ff8 20 over\n3000 8 x\n3000 8 y\n");
  CHECK(NameAt(symbols, 0x1010) == "old");
  CHECK(NameAt(symbols, 0x1050) == "inner");
  CHECK(NameAt(symbols, 0x1070) == "old");
  CHECK(NameAt(symbols, 0x2000) == "over");
  CHECK(NameAt(symbols, 0x2017) == "over");
  CHECK(NameAt(symbols, 0x2018) == "b");
  CHECK(NameAt(symbols, 0x3000) == "y");
}

TEST_CASE("Lines that are none are passed over", "[jit_symbols]") {
  JitSymbols symbols = JitSymbols::Parse(
      "\n# comment\nzz 10 bad\n1000 bad\n1000 0 empty\nffffffffffffff00 fff beyond\n4000 10\n5000 10 good");
  for (uint64_t pc : {0x1000ull, 0x4000ull, 0xffffffffffffff00ull}) CHECK(NameAt(symbols, pc).empty());
  CHECK(NameAt(symbols, 0x5000) == "good");
}

TEST_CASE("A map that another user, an earlier process or a link could have left is not read", "[jit_symbols]") {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/perf-1.map";
  std::ofstream(path) << "1000 10 code\n";
  const auto now = static_cast<uint64_t>(time(nullptr)) * 1000000000;
  CHECK(NameAt(JitSymbols::Read(path, now, getuid()), 0x1000) == "code");
  CHECK(NameAt(JitSymbols::Read(path, now, getuid() + 1), 0x1000).empty());
  CHECK(NameAt(JitSymbols::Read(path, now + 60000000000, getuid()), 0x1000).empty());
  const std::string link = directory.path() + "/perf-2.map";
  REQUIRE(symlink(path.c_str(), link.c_str()) == 0);
  CHECK(NameAt(JitSymbols::Read(link, now, getuid()), 0x1000).empty());
  CHECK(NameAt(JitSymbols::Read(directory.path() + "/none.map", now, getuid()), 0x1000).empty());
}
