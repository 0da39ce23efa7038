// Somebody else's C code: its functions have no namespace and no rule, so its memory must come out as unattributed.
#include "tests/jvm/demo/modules.h"

extern "C" {
[[gnu::noinline]] void* vendor_blob(uint64_t size) {
  void* scratch = malloc(2 * size);
  void* blob = malloc(size);
  free(scratch);
  return blob;
}
}

const demo::HeldBlocks& VendorLoad(uint64_t goal) {
  static demo::HeldBlocks held;
  static demo::MixedSizes sizes(0xa0761d6478bd642f);
  while (held.bytes() < goal) {
    uint64_t size = sizes.Next();
    held.Keep(vendor_blob(size), size);
  }
  return held;
}
