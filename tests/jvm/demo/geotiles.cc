// The C library of org.geotiles: no namespace and no rule, so its memory must come out as unattributed.
#include <jni.h>

#include "tests/jvm/demo/held_blocks.h"

extern "C" {

[[gnu::noinline]] void* geotiles_read(uint64_t size) {
  void* scratch = malloc(2 * size);
  void* tile = malloc(size);
  free(scratch);
  return tile;
}

JNIEXPORT jlong JNICALL Java_org_geotiles_TileCache_readTiles(JNIEnv*, jclass, jlong goal) {
  static demo::HeldBlocks held;
  static demo::MixedSizes sizes(0xa0761d6478bd642f);
  while (held.bytes() < static_cast<uint64_t>(goal)) {
    uint64_t size = sizes.Next();
    held.Keep(geotiles_read(size), size);
  }
  return static_cast<jlong>(held.bytes());
}

}  // extern "C"
