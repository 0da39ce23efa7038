// The part of a virtual thread's stack that lies on the Java heap.
//
// A virtual thread that waits is frozen: its frames are copied into objects of the class jdk.internal.vm.StackChunk, of
// which its Continuation knows the youngest (tail) and each the next older one (parent). When the thread goes on, its
// youngest frames are put back on a stack; the oldest of these returns not to its caller but into a stub, the return
// barrier, which fetches the next frames. So a walk that arrives at the barrier goes on here:
//
//   stack of the carrier                      Java heap
//   malloc                                    java.lang.Thread (the carrier)
//   Deflater.init                               └ cont → Continuation
//   Job.compress   (returns to the barrier)              └ tail → StackChunk { sp, pc, bottom, parent }
//   Continuation.enterSpecial                                       │ Job.run           ← sp, at pc
//   frames of the carrier: not ours                                 │ Continuation.enter
//                                                         bottom →
//
// In a chunk links between frames are relative to where they lie, where one of the interpreter's frames is involved;
// those of compiled frames follow from their sizes. Which fields the objects have is learnt from their classes, at the
// first barrier that is met. Source: OpenJDK, src/hotspot/share/oops/stackChunkOop.hpp,
// runtime/{continuationFreezeThaw.cpp,stackChunkFrameStream.inline.hpp}, cpu/x86/stackChunkFrameStream_x86.inline.hpp.
//
// A stack counts only if all of it is consistent: each pc in code that is known, call sites with debug information,
// sizes that end exactly at the bottom, and Continuation.enter as the oldest method. Thread- and signal-safety: as
// heap_path.h; one object a walk, about 1 KiB on its stack. Errors: kLost.
#ifndef CADASTRE_INTERPOSER_JVM_FROZEN_STACK_H_
#define CADASTRE_INTERPOSER_JVM_FROZEN_STACK_H_

#include <stdint.h>

#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/heap_path.h"
#include "interposer/jvm/vm_structs.h"

namespace cadastre {

struct FrozenFrame {
  bool interpreted;
  uint64_t method;            // Method* of the interpreter's, and of the root
  uint64_t bytecode_address;  // of the interpreter's
  CodeBlob blob;              // of compiled ones
  uint64_t pc;
};

enum class FrozenStep {
  kFrame,
  kRoot,  // all frames were given; frame->method is Continuation.enterSpecial
  kLost,  // nothing of what was given counts
};

class FrozenStack {
 public:
  explicit FrozenStack(const VmLayout& vm);

  // Of the calling thread's innermost continuation. youngest_pc: of the youngest frame on the stack: if it is
  // also the chunk's then the thread is just being frozen, and nothing is missing on its stack.
  bool Start(uint64_t youngest_pc);

  // From the youngest to the oldest.
  FrozenStep Next(FrozenFrame* frame);

 private:
  static constexpr uint64_t kWindowWords = 64;  // read at a time; the hook's stack is small
  static constexpr uint32_t kMaxChunks = 8;

  bool OpenChunk(uint64_t chunk, bool* found);
  FrozenStep StepOverInterpreted(FrozenFrame* frame);
  FrozenStep StepOverCompiled(FrozenFrame* frame);
  bool Return(uint64_t pc, uint64_t sp, uint64_t unextended_sp);
  bool Word(uint64_t address, uint64_t* value);

  const VmLayout& vm_;
  HeapPath path_;
  uint64_t method_ = 0;                          // of the frame that was given last, not of what is inlined into it
  uint64_t chunk_ = 0, begin_ = 0, bottom_ = 0;  // the chunk, and its part that may hold frames
  uint64_t pc_ = 0, sp_ = 0;
  uint64_t unextended_sp_ = 0;  // sp without what an interpreted callee's arguments took
  uint32_t chunks_ = 0;
  bool at_bottom_ = false;
  uint64_t window_at_ = 0, window_words_ = 0;
  uint64_t window_[kWindowWords];
};

// Is this the native method that the JVM calls at the bottom of a virtual thread's stack? What lies behind it belongs
// to the thread that carries it.
bool IsVirtualThreadRoot(const VmLayout& vm, uint64_t method);

// Is this the native method by which a virtual thread is frozen? Below it the chunks may be half written.
bool IsFreezing(const VmLayout& vm, uint64_t method);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_FROZEN_STACK_H_
