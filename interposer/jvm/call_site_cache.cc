#include "interposer/jvm/call_site_cache.h"

#include "interposer/word_cache.h"

namespace cadastre {
namespace {

// One entry for each inlined method: frame word; blob and size of its frames; compilation.
WordCache g_calls;

constexpr uint32_t kMaxCachedInlining = 32;
constexpr uint64_t kMoreFrames = 1ull << 32;
constexpr uint64_t kBlobBits = 48;
constexpr uint64_t kMaxCachedFrameBytes = (1ull << (64 - kBlobBits)) * 8;

uint64_t CallKey(uint64_t pc, uint32_t depth) { return pc << 5 | depth; }

uint64_t CompilationOf(const VmLayout& layout, uint64_t blob) {
  return LoadField<uint32_t>(blob, layout.nmethod_compile_id);
}

bool IsBlockInUse(const VmLayout& layout, uint64_t blob) {
  return LoadField<uint8_t>(blob - static_cast<uint64_t>(layout.block_bytes), layout.block_used) != 0;
}

}  // namespace

bool AddRememberedFrames(const VmLayout& layout, uint64_t pc, FrameList* list, uint64_t* frame_bytes) {
  CachedWords words;
  if (!g_calls.Find(CallKey(pc, 0), &words)) return false;
  const uint64_t blob_and_size = words.second, compilation = words.third & ~kMoreFrames;
  const uint64_t blob = blob_and_size & ((1ull << kBlobBits) - 1);
  if (!IsBlockInUse(layout, blob) || CompilationOf(layout, blob) != compilation) return false;
  const uint32_t before = list->count;
  for (uint32_t depth = 1; list->Add(words.first); depth++) {
    if ((words.third & kMoreFrames) == 0) {
      *frame_bytes = (blob_and_size >> kBlobBits) * 8;
      return true;
    }
    if (!g_calls.Find(CallKey(pc, depth), &words) || words.second != blob_and_size ||
        (words.third & ~kMoreFrames) != compilation) {
      break;
    }
  }
  list->count = before;
  return false;
}

void RememberFrames(const VmLayout& layout, uint64_t pc, const CodeBlob& blob, const uint64_t* frames, uint32_t count) {
  if (layout.nmethod_compile_id < 0 || count == 0 || count > kMaxCachedInlining ||
      blob.frame_bytes >= kMaxCachedFrameBytes) {
    return;
  }
  const uint64_t blob_and_size = blob.start | blob.frame_bytes / 8 << kBlobBits;
  const uint64_t compilation = CompilationOf(layout, blob.start);
  for (uint32_t depth = 0; depth < count; depth++) {
    const uint64_t more = depth + 1 < count ? kMoreFrames : 0;
    g_calls.Insert(CallKey(pc, depth), {frames[depth], blob_and_size, compilation | more});
  }
}

}  // namespace cadastre
