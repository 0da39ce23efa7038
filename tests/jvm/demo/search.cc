// The index: cleared and aligned blocks, built by a template, so that demangled names with parameters are matched too.
#include "tests/jvm/demo/modules.h"

namespace search {
namespace {

demo::HeldBlocks held;
demo::MixedSizes sizes(0xd1342543de82ef95);

template <uint64_t kAlignment>
[[gnu::noinline]] void* AllocatePostings(uint64_t size) {
  if (size < 1000) return calloc(1, size);
  void* postings = nullptr;
  return posix_memalign(&postings, kAlignment, size) == 0 ? postings : nullptr;
}

}  // namespace

[[gnu::noinline]] const demo::HeldBlocks& BuildIndex(uint64_t goal) {
  while (held.bytes() < goal) {
    uint64_t size = sizes.Next();
    for (int pass = 0; pass < 2; pass++) free(AllocatePostings<64>(size));  // segments that are merged away
    held.Keep(AllocatePostings<64>(size), size);
  }
  return held;
}

}  // namespace search
