// Price tables of com.acme.pricing: grown with realloc, as C code inside C++ does it.
#include <jni.h>

#include "tests/jvm/demo/held_blocks.h"

namespace acme::pricing {
namespace {

demo::HeldBlocks held;
demo::MixedSizes sizes(0x9e3779b97f4a7c15);

[[gnu::noinline]] void* GrowTable(uint64_t size) {
  void* table = malloc(32);
  for (uint64_t room = 64; room < size; room *= 4) table = realloc(table, room);
  return realloc(table, size);
}

// Holds up to `goal` bytes, or a little above.
[[gnu::noinline]] uint64_t LoadTables(uint64_t goal) {
  while (held.bytes() < goal) {
    uint64_t size = sizes.Next();
    free(GrowTable(size));  // the old table is replaced at each load
    held.Keep(GrowTable(size), size);
  }
  return held.bytes();
}

}  // namespace
}  // namespace acme::pricing

extern "C" JNIEXPORT jlong JNICALL Java_com_acme_pricing_PriceTables_loadTables(JNIEnv*, jclass, jlong goal) {
  return static_cast<jlong>(acme::pricing::LoadTables(static_cast<uint64_t>(goal)));
}
