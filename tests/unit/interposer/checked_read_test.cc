// A read beside the JVM meets memory that has gone: the kernel says so, and nothing faults.
#include "interposer/jvm/checked_read.h"

#include <string.h>
#include <sys/mman.h>

#include <string>

#include "tests/support/catch.h"

using namespace cadastre;

TEST_CASE("memory that is not there is refused, not touched") {
  auto* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(munmap(pages + 4096, 4096) == 0);
  char* gone = pages + 4096;
  memcpy(gone - 8, "the end", 8);
  const auto end = reinterpret_cast<uint64_t>(gone);
  uint64_t word = 0;
  char text[64] = {};
  CHECK(CheckedLoad(end - 8, &word));
  CHECK(memcmp(&word, "the end", 8) == 0);
  CHECK_FALSE(CheckedLoad(end - 4, &word));
  CHECK_FALSE(CheckedLoad(0, &word));
  SECTION("of several pieces all or none count") {
    const iovec to[] = {{&word, 8}, {text, 4}};
    const iovec there[] = {{gone - 8, 8}, {gone - 4, 4}}, half[] = {{gone - 8, 8}, {gone, 4}};
    CHECK(CheckedReadPieces(to, there, 2));
    CHECK(std::string(text) == "end");
    CHECK_FALSE(CheckedReadPieces(to, half, 2));
  }
  SECTION("a read that takes what there is ends where memory does") {
    CHECK(CheckedReadSome(end - 8, text, sizeof(text)) == 8);
    CHECK(std::string(text) == "the end");
    CHECK(CheckedReadSome(end, text, sizeof(text)) == 0);
  }
  munmap(pages, 4096);
}
