// smaps is the one input that the ledger's sum rests on.
#include "report/smaps.h"

#include "tests/support/catch.h"

namespace cadastre {
namespace {

constexpr char kText[] =
    "55f49d29b000-55f49d29c000 r--p 00001000 fe:00 18500                      /opt/a b/python3 (deleted)\n"
    "Size:                  4 kB\n"
    "Rss:                   4 kB\n"
    "Pss:                   2 kB\n"
    "Shared_Clean:          1 kB\n"
    "Shared_Dirty:          1 kB\n"
    "Private_Clean:         2 kB\n"
    "Private_Dirty:         0 kB\n"
    "Anonymous:             0 kB\n"
    "AnonHugePages:         0 kB\n"
    "NewInAKernelToCome:    what?\n"
    "VmFlags: rd mr mw me \n"
    "7f1180000000-7f1180021000 rw-s 00000000 00:00 0 \n"
    "Rss:                   8 kB\n"
    "Anonymous:             8 kB\n"
    "AnonHugePages:      2048 kB\n"
    "Swap:                 12 kB\n"
    "VmFlags: rd wr mr mw me nr sd \n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

TEST_CASE("Each field of smaps goes to its place, and others are passed over", "[smaps]") {
  auto areas = ParseSmaps(kText, "smaps");
  REQUIRE(areas.ok());
  REQUIRE(areas->size() == 3);
  const MemoryArea& file = (*areas)[0];
  CHECK(file.start == 0x55f49d29b000);
  CHECK(file.end == 0x55f49d29c000);
  CHECK(file.offset == 0x1000);
  CHECK(file.inode == 18500);
  CHECK(file.name == "/opt/a b/python3 (deleted)");
  CHECK((file.readable && !file.writable && !file.executable && !file.shared));
  CHECK(file.rss_bytes == 4096);
  CHECK(file.pss_bytes == 2048);
  CHECK(file.shared_bytes == 2048);
  CHECK(file.private_bytes == 2048);
  const MemoryArea& anonymous = (*areas)[1];
  CHECK(anonymous.name.empty());
  CHECK((anonymous.writable && anonymous.shared));
  CHECK(anonymous.huge_bytes == 2048 * 1024);
  CHECK(anonymous.swap_bytes == 12 * 1024);
  CHECK((anonymous.noreserve && !file.noreserve));
  CHECK((*areas)[2].name == "[vsyscall]");
}

TEST_CASE("What is not smaps is refused with its line", "[smaps]") {
  auto message = [](const std::string& text) { return std::string(ParseSmaps(text, "smaps").status().message()); };
  CHECK(ParseSmaps("", "smaps")->empty());
  CHECK(message("Rss: 4 kB\n") == "smaps:1: a field before the first mapping");
  CHECK(message("hello\n") == "smaps:1: not a mapping");
  CHECK(message("2000-1000 rw-p 0 0:0 0\n") == "smaps:1: not a mapping");
  CHECK(message("1000-2000 rw-p 0 0:0 0\nRss: many kB\n") == "smaps:2: not a number of kB");
  CHECK(message("1000-2000 rw-p 0 0:0 0\nRss: 99999999999999999999 kB\n") == "smaps:2: not a number of kB");
  CHECK(message("2000-3000 rw-p 0 0:0 0\n1000-2000 rw-p 0 0:0 0\n") == "smaps:2: mappings are out of order");
  CHECK(message("1000-2000 rw-p 0 0:0 0\nRss: 8 kB\n") == "smaps: more is resident than is mapped at 1000");
}

}  // namespace
}  // namespace cadastre
