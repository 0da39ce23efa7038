// HotSpot's code cache: from a pc to the blob that holds it, and what a compiled method says about itself.
//
// A blob that a frame of our own stack returns into cannot go away while we look at it, so its header, its debug
// information and its entry in the segment map may be read without a lock. Source of the formulas: OpenJDK,
// src/hotspot/share/memory/heap.cpp (segment map), code/nmethod.hpp, code/pcDesc.hpp, code/scopeDesc.cpp,
// utilities/unsigned5.hpp. Thread- and signal-safety: reads only; safe in hooks. Errors: false, or an empty scope.
#ifndef CADASTRE_INTERPOSER_JVM_CODE_CACHE_H_
#define CADASTRE_INTERPOSER_JVM_CODE_CACHE_H_

#include <stdint.h>

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// A field of HotSpot's, by address.
template <typename Type>
__attribute__((always_inline, no_sanitize("address", "thread"))) inline Type LoadField(uint64_t base, int32_t offset) {
  return *reinterpret_cast<const volatile Type*>(base + static_cast<int64_t>(offset));
}

enum class BlobKind : uint8_t { kOther, kCompiled, kNativeWrapper, kContinuationStub };

struct CodeBlob {
  uint64_t start;
  uint64_t frame_bytes;  // of its frames, return address included; 0 = has none, or not known
  BlobKind kind;
};

// The blob that covers pc; false if none does.
bool FindCodeBlob(const VmLayout& layout, uint64_t pc, CodeBlob* blob);

// Bounds of the whole code cache now.
inline bool IsInCodeCache(const VmLayout& layout, uint64_t pc) {
  if (layout.code_low != nullptr) return pc >= *layout.code_low && pc < *layout.code_high;
  const uint64_t heap = *layout.code_heap;
  return heap != 0 && pc >= LoadField<uint64_t>(heap, layout.heap_memory + layout.space_low) &&
         pc < LoadField<uint64_t>(heap, layout.heap_memory + layout.space_high);
}

// The interpreter is one block of code, no blob of its own.
inline bool IsInterpreterCode(const VmLayout& layout, uint64_t pc) {
  const uint64_t stubs = *layout.interpreter;
  return stubs != 0 &&
         pc - LoadField<uint64_t>(stubs, layout.stubs_begin) < LoadField<uint32_t>(stubs, layout.stubs_bytes);
}

// Is pc where a deoptimised frame returns to? Then the pc it stood at lies in its frame, this many bytes above sp.
bool IsDeoptimised(const VmLayout& layout, const CodeBlob& compiled, uint64_t pc, int32_t* original_pc_offset);

// The Method* of a compiled method or native wrapper.
uint64_t MethodOfBlob(const VmLayout& layout, const CodeBlob& compiled);

// The methods at one call site, from the innermost inlined one to the compiled method itself.
class InlinedScopes {
 public:
  // False if the pc is no call site with debug information (return addresses of calls into Java or the VM are).
  bool Start(const VmLayout& layout, const CodeBlob& compiled, uint64_t pc);

  // False after the last. bytecode: index of the call in the method's bytecode, -1 = at its entry.
  bool Next(uint64_t* method, int32_t* bytecode);

 private:
  uint32_t ReadNumber();

  const VmLayout* layout_;
  uint64_t scopes_, metadata_;
  uint64_t at_;
  uint32_t next_;  // offset of the next scope; 0 = no more
  uint32_t left_;  // no chain is longer: ends whatever it reads
};

// A number as HotSpot compresses them; moves *at behind it. excluded: VmLayout::unsigned5_excluded.
uint32_t ReadUnsigned5(uint64_t* at, uint32_t excluded);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_CODE_CACHE_H_
