#include "interposer/jvm/code_cache.h"

#include <string.h>

namespace cadastre {
namespace {

constexpr uint32_t kMaxCodeHeaps = 8;
constexpr uint32_t kMaxInlining = 64;  // MaxInlineLevel is 15, recursion and forced inlining add some
constexpr uint8_t kFreeSegment = 0xff;

// All compiled methods share one name; once it has been compared its address is enough.
const char* compiled_name;

BlobKind KindOf(const VmLayout& layout, uint64_t blob) {
  const char* name = LoadField<const char*>(blob, layout.blob_name);
  if (name == nullptr) return BlobKind::kOther;
  if (name == __atomic_load_n(&compiled_name, __ATOMIC_RELAXED)) return BlobKind::kCompiled;
  // The names are literals of HotSpot's; a version that names them otherwise has native frames only.
  if (strcmp(name, "nmethod") == 0) {
    __atomic_store_n(&compiled_name, name, __ATOMIC_RELAXED);
    return BlobKind::kCompiled;
  }
  if (strcmp(name, "native nmethod") == 0) return BlobKind::kNativeWrapper;
  if (strstr(name, "ontinuation") != nullptr) return BlobKind::kContinuationStub;
  return BlobKind::kOther;
}

bool FindInHeap(const VmLayout& layout, uint64_t heap, uint64_t pc, CodeBlob* blob) {
  const uint64_t low = LoadField<uint64_t>(heap, layout.heap_memory + layout.space_low);
  const uint32_t shift = LoadField<uint32_t>(heap, layout.heap_log2_segment_bytes);
  const uint64_t map = LoadField<uint64_t>(heap, layout.heap_segmap + layout.space_low);
  const uint64_t map_end = LoadField<uint64_t>(heap, layout.heap_segmap + layout.space_high);
  if (shift < 4 || shift > 20 || map == 0) return false;
  uint64_t segment = (pc - low) >> shift;
  if (map + segment >= map_end) return false;
  // Each entry says how far back to go, at most to the segment where the block begins (0).
  uint8_t back = LoadField<uint8_t>(map + segment, 0);
  if (back == kFreeSegment) return false;
  while (back != 0) {
    if (back > segment) return false;
    segment -= back;
    back = LoadField<uint8_t>(map + segment, 0);
    if (back == kFreeSegment) return false;
  }
  const uint64_t block = low + (segment << shift);
  if (LoadField<uint8_t>(block, layout.block_used) == 0) return false;
  blob->start = block + static_cast<uint64_t>(layout.block_bytes);
  if (pc < blob->start || pc - blob->start >= LoadField<uint32_t>(blob->start, layout.blob_bytes)) return false;
  const int32_t words = LoadField<int32_t>(blob->start, layout.blob_frame_words);
  blob->frame_bytes = words > 0 ? static_cast<uint64_t>(words) * 8 : 0;
  blob->kind = KindOf(layout, blob->start);
  return true;
}

uint64_t CodeBegin(const VmLayout& layout, uint64_t blob) {
  if (layout.blob_code_begin >= 0) return LoadField<uint64_t>(blob, layout.blob_code_begin);
  return blob + LoadField<uint32_t>(blob, layout.blob_code_offset);
}

uint64_t MetadataBegin(const VmLayout& layout, uint64_t blob) {
  if (layout.blob_mutable_data >= 0) {
    return LoadField<uint64_t>(blob, layout.blob_mutable_data) +
           LoadField<uint32_t>(blob, layout.blob_relocation_bytes);
  }
  const uint32_t offset = layout.nmethod_metadata_width == 2 ? LoadField<uint16_t>(blob, layout.nmethod_metadata)
                                                             : LoadField<uint32_t>(blob, layout.nmethod_metadata);
  // Since 23 it counts from the blob's data, before from the blob.
  const bool from_data = layout.nmethod_immutable_data >= 0;
  return blob + offset + (from_data ? LoadField<uint32_t>(blob, layout.blob_data_offset) : 0);
}

// The table of call sites is sorted by offset from the code's begin; its ends hold sentinels.
uint64_t FindPcDesc(const VmLayout& layout, uint64_t first, uint64_t end, int64_t offset) {
  const auto bytes = static_cast<uint64_t>(layout.pc_desc_bytes);
  uint64_t low = 0, high = (end - first) / bytes;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    const uint64_t entry = first + middle * bytes;
    const int32_t found = LoadField<int32_t>(entry, layout.pc_desc_pc);
    if (found == offset) return entry;
    if (found < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return 0;
}

}  // namespace

bool FindCodeBlob(const VmLayout& layout, uint64_t pc, CodeBlob* blob) {
  if (layout.code_heaps == nullptr) return FindInHeap(layout, *layout.code_heap, pc, blob);
  const uint64_t array = *layout.code_heaps;
  if (array == 0) return false;
  const uint32_t count = LoadField<uint32_t>(array, layout.array_length);
  const uint64_t heaps = LoadField<uint64_t>(array, layout.array_data);
  for (uint32_t i = 0; i < count && i < kMaxCodeHeaps; i++) {
    const uint64_t heap = LoadField<uint64_t>(heaps + i * 8, 0);
    if (pc < LoadField<uint64_t>(heap, layout.heap_memory + layout.space_low) ||
        pc >= LoadField<uint64_t>(heap, layout.heap_memory + layout.space_high)) {
      continue;
    }
    return FindInHeap(layout, heap, pc, blob);
  }
  return false;
}

bool IsDeoptimised(const VmLayout& layout, const CodeBlob& compiled, uint64_t pc, int32_t* original_pc_offset) {
  uint64_t handler, method_handle_handler = 0;
  if (layout.nmethod_deopt_begin >= 0) {
    handler = LoadField<uint64_t>(compiled.start, layout.nmethod_deopt_begin);
    if (layout.nmethod_deopt_mh_begin >= 0) {
      method_handle_handler = LoadField<uint64_t>(compiled.start, layout.nmethod_deopt_mh_begin);
    }
  } else {
    handler = compiled.start + LoadField<uint32_t>(compiled.start, layout.nmethod_deopt_offset);
    if (layout.nmethod_deopt_mh_offset >= 0) {
      method_handle_handler = compiled.start + LoadField<uint32_t>(compiled.start, layout.nmethod_deopt_mh_offset);
    }
  }
  if (pc != handler && pc != method_handle_handler) return false;
  *original_pc_offset = LoadField<int32_t>(compiled.start, layout.nmethod_original_pc);
  return true;
}

uint64_t MethodOfBlob(const VmLayout& layout, const CodeBlob& compiled) {
  return LoadField<uint64_t>(compiled.start, layout.nmethod_method);
}

bool InlinedScopes::Start(const VmLayout& layout, const CodeBlob& compiled, uint64_t pc) {
  layout_ = &layout;
  const uint64_t blob = compiled.start;
  const bool immutable = layout.nmethod_immutable_data >= 0;
  const uint64_t base = immutable ? LoadField<uint64_t>(blob, layout.nmethod_immutable_data) : blob;
  const int32_t end = immutable ? layout.nmethod_scopes_offset : layout.nmethod_pcs_end;
  const uint64_t first = base + LoadField<uint32_t>(blob, layout.nmethod_pcs);
  const uint64_t last = base + LoadField<uint32_t>(blob, end);
  if (first >= last) return false;
  const uint64_t entry = FindPcDesc(layout, first, last, static_cast<int64_t>(pc - CodeBegin(layout, blob)));
  if (entry == 0) return false;
  scopes_ = layout.nmethod_scopes_begin >= 0 ? LoadField<uint64_t>(blob, layout.nmethod_scopes_begin)
                                             : base + LoadField<uint32_t>(blob, layout.nmethod_scopes_offset);
  metadata_ = MetadataBegin(layout, blob);
  next_ = LoadField<uint32_t>(entry, layout.pc_desc_scope);
  left_ = kMaxInlining;
  return next_ != 0;
}

uint32_t InlinedScopes::ReadNumber() { return ReadUnsigned5(&at_, layout_->unsigned5_excluded); }

bool InlinedScopes::Next(uint64_t* method, int32_t* bytecode) {
  if (next_ == 0 || left_-- == 0) return false;
  at_ = scopes_ + next_;
  next_ = ReadNumber();
  const uint32_t index = ReadNumber();  // into the metadata, from 1; 0 = none
  *method = index == 0 ? 0 : LoadField<uint64_t>(metadata_ + (index - 1) * 8ull, 0);
  *bytecode = static_cast<int32_t>(ReadNumber()) - 1;
  return *method != 0;
}

uint32_t ReadUnsigned5(uint64_t* at, uint32_t excluded) {
  // 64 high codes say "more follows"; five bytes at most.
  const uint32_t low_codes = 256 - 64 - excluded;
  uint32_t byte = LoadField<uint8_t>((*at)++, 0);
  uint32_t sum = byte - excluded;
  for (uint32_t shift = 6; byte >= low_codes + excluded && shift <= 24; shift += 6) {
    byte = LoadField<uint8_t>((*at)++, 0);
    sum += (byte - excluded) << shift;
  }
  return sum;
}

}  // namespace cadastre
