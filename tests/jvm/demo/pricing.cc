// Price tables: grown with realloc, as C code inside C++ does it.
#include "tests/jvm/demo/modules.h"

namespace pricing {
namespace {

demo::HeldBlocks held;
demo::MixedSizes sizes(0x9e3779b97f4a7c15);

[[gnu::noinline]] void* GrowTable(uint64_t size) {
  void* table = malloc(32);
  for (uint64_t room = 64; room < size; room *= 4) table = realloc(table, room);
  return realloc(table, size);
}

}  // namespace

[[gnu::noinline]] const demo::HeldBlocks& LoadTables(uint64_t goal) {
  while (held.bytes() < goal) {
    uint64_t size = sizes.Next();
    free(GrowTable(size));  // the old table is replaced at each load
    held.Keep(GrowTable(size), size);
  }
  return held;
}

}  // namespace pricing
