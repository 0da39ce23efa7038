#include "interposer/jvm/jvm.h"

#include <string.h>

#include "interposer/elf_lookup.h"
#include "interposer/jvm/call_site_cache.h"
#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/frozen_stack.h"
#include "interposer/jvm/java_thread.h"
#include "interposer/jvm/method_names.h"
#include "interposer/jvm/thread_names.h"
#include "interposer/jvm/vm_flags.h"
#include "interposer/jvm/vm_structs.h"
#include "interposer/library_map.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"

namespace cadastre {
namespace {

enum JvmState : uint32_t { kNoJvm = 0, kReading = 1, kUnusable = 2, kReady = 3 };

uint32_t state;  // JvmState; the layout is constant once it is kUnusable or kReady
VmLayout layout;
uint32_t collector_known;

JvmState State() { return static_cast<JvmState>(__atomic_load_n(&state, __ATOMIC_ACQUIRE)); }

bool IsCallStub(uint64_t pc) { return pc == *layout.call_stub_return_pc; }

// Could a frame return to pc? Asked where a frame's size is not certain. at_barrier: also to compiled code that has no
// debug information there, as where it calls a barrier of the collector.
bool IsReturnAddress(uint64_t pc, bool at_barrier) {
  if (!JvmIsCode(pc)) {
    LibraryEntry library;
    return LookupLibrary(pc - 1, &library);
  }
  if (IsCallStub(pc) || IsInterpreterCode(layout, pc)) return true;
  CodeBlob blob;
  if (!FindCodeBlob(layout, pc, &blob)) return false;
  int32_t offset;
  InlinedScopes scopes;
  switch (blob.kind) {
    case BlobKind::kCompiled:
      return at_barrier || IsDeoptimised(layout, blob, pc, &offset) || scopes.Start(layout, blob, pc);
    case BlobKind::kNativeWrapper:
    case BlobKind::kContinuationStub:
      return true;
    case BlobKind::kOther:
      return blob.frame_bytes != 0;
  }
  return false;
}

// One walk through consecutive Java frames.
class JavaFrames {
 public:
  JavaFrames(StackMemory* memory, StackFrame* frame, FrameList* list, JavaWalk* walk)
      : memory_(memory), frame_(frame), list_(list), walk_(walk), youngest_pc_(frame->pc) {}

  JavaStep Run() {
    for (uint32_t steps = 0; steps < kMaxSteps; steps++) {
      const JavaStep step = frame_->exact ? StepOverInterrupted() : Step();
      if (step != JavaStep::kLeft) return step;
      if (left_ || !JvmIsCode(frame_->pc)) return JavaStep::kLeft;
    }
    return JavaStep::kLost;
  }

 private:
  static constexpr uint32_t kMaxSteps = 4096;

  // kLeft: *frame_ is the caller.
  JavaStep Step() {
    if (IsInterpreterCode(layout, frame_->pc)) return StepOverInterpreted();
    if (uint64_t frame_bytes; AddRememberedFrames(layout, frame_->pc, list_, &frame_bytes)) {
      named_ = true;
      after_stub_ = false;
      return ReturnFromFrame(frame_bytes, false) ? JavaStep::kLeft : JavaStep::kLost;
    }
    if (IsCallStub(frame_->pc)) return StepOverCallStub();
    CodeBlob blob;
    if (!FindCodeBlob(layout, frame_->pc, &blob)) return JavaStep::kLost;
    switch (blob.kind) {
      case BlobKind::kCompiled:
        return StepOverCompiled(blob);
      case BlobKind::kNativeWrapper:
        return StepOverNativeWrapper(blob);
      case BlobKind::kContinuationStub:
        return named_ || !ReturnFromReplacedStub() ? FinishFromHeap() : JavaStep::kLeft;
      case BlobKind::kOther:
        return StepOverStub(blob);
    }
    return JavaStep::kLost;
  }

  // A signal's handler runs above compiled code: the JVM's own, for a null pointer (then there is debug information) or
  // for the end of the stack (met by a method's first instruction: its frame is only the return address).
  JavaStep StepOverInterrupted() {
    CodeBlob blob;
    InlinedScopes scopes;
    if (!FindCodeBlob(layout, frame_->pc, &blob) || blob.kind != BlobKind::kCompiled) return JavaStep::kLost;
    if (scopes.Start(layout, blob, frame_->pc)) return StepOverCompiled(blob);
    uint64_t pc;
    if (!memory_->Read(frame_->sp, &pc) || !IsReturnAddress(pc, false)) return JavaStep::kLost;
    if (!AddMethod(MethodOfBlob(layout, blob), -1)) return JavaStep::kFull;
    return Move(pc, frame_->sp + 8, frame_->rbp, frame_->sp) ? JavaStep::kLeft : JavaStep::kLost;
  }

  // Java was called from native code: an ordinary frame with rbp, and the note of the Java frames before it.
  JavaStep StepOverCallStub() {
    uint64_t wrapper;
    const uint64_t slot = frame_->rbp + static_cast<uint64_t>(static_cast<int64_t>(layout.call_wrapper_slot) * 8);
    walk_->started = true;
    walk_->anchor = 0;
    if (layout.call_wrapper_anchor >= 0 && memory_->Read(slot, &wrapper)) {
      walk_->anchor = wrapper + static_cast<uint64_t>(layout.call_wrapper_anchor);
    }
    left_ = true;
    return ReturnThroughRbp() ? JavaStep::kLeft : JavaStep::kLost;
  }

  JavaStep StepOverInterpreted() {
    const uint64_t rbp = frame_->rbp;
    uint64_t method, bytecode, sender_sp, caller_rbp, caller_pc;
    if (rbp < frame_->sp || !memory_->Read(rbp + 8, &caller_pc) || !memory_->Read(rbp, &caller_rbp) ||
        !memory_->Read(rbp - 8, &sender_sp) || !memory_->Read(rbp - 24, &method) ||
        !memory_->Read(rbp + static_cast<uint64_t>(static_cast<int64_t>(layout.interpreter_bytecode_slot) * 8),
                       &bytecode)) {
      return JavaStep::kLost;
    }
    // Frames that a deoptimisation is just building have their links, but perhaps not yet their method.
    const uint64_t word = JavaFrameAtAddress(layout, method, bytecode, after_stub_ && IsUnpackingFrames(layout));
    if (word == 0 && !after_stub_) return JavaStep::kLost;
    named_ = true;
    if (word != 0 && !list_->Add(word)) return JavaStep::kFull;
    return Move(caller_pc, sender_sp, caller_rbp, rbp) ? JavaStep::kLeft : JavaStep::kLost;
  }

  JavaStep StepOverCompiled(const CodeBlob& blob) {
    after_stub_ = false;
    uint64_t pc = frame_->pc;
    int32_t original_pc_offset;
    if (IsDeoptimised(layout, blob, pc, &original_pc_offset) &&
        !memory_->Read(frame_->sp + static_cast<uint64_t>(static_cast<int64_t>(original_pc_offset)), &pc)) {
      return JavaStep::kLost;
    }
    InlinedScopes scopes;
    const bool known = scopes.Start(layout, blob, pc);
    // Only the first method, which called native code or a stub, may stand where there is no debug information.
    if (!known && named_) return JavaStep::kLost;
    if (!known) {
      if (!AddMethod(MethodOfBlob(layout, blob), -1)) return JavaStep::kFull;
      return ReturnFromFrame(blob.frame_bytes, true) ? JavaStep::kLeft : JavaStep::kLost;
    }
    const uint32_t first = list_->count;
    uint32_t methods;
    if (!AddMethods(&scopes, &methods)) return JavaStep::kFull;
    if (list_->count - first == methods) RememberFrames(layout, pc, blob, list_->frames + first, methods);
    return ReturnFromFrame(blob.frame_bytes, false) ? JavaStep::kLeft : JavaStep::kLost;
  }

  JavaStep StepOverNativeWrapper(const CodeBlob& blob) {
    after_stub_ = false;
    const uint64_t method = MethodOfBlob(layout, blob);
    if (method != 0 && !AddMethod(method, -1)) return JavaStep::kFull;
    if (method != 0 && IsVirtualThreadRoot(layout, method)) return JavaStep::kEnded;
    freezing_ |= method != 0 && IsFreezing(layout, method);
    return ReturnFromFrame(blob.frame_bytes, false) ? JavaStep::kLeft : JavaStep::kLost;
  }

  // Code of the JVM's own between Java frames and native ones. It is not recorded: whether a call goes through a stub
  // depends on which compiler has seen it.
  JavaStep StepOverStub(const CodeBlob& blob) {
    after_stub_ = true;
    const StackFrame before = *frame_;
    if (blob.frame_bytes != 0 && ReturnFromFrame(blob.frame_bytes, true)) return JavaStep::kLeft;
    *frame_ = before;
    if (!named_ && ReturnFromEntryBarrier()) return JavaStep::kLeft;
    return ReturnThroughRbp() && IsReturnAddress(frame_->pc, !named_) ? JavaStep::kLeft : JavaStep::kLost;
  }

  // A compiled method whose own references a collector has not seen yet calls a stub before anything else, with its
  // frame made. That pushes a word, -1, to be a stack pointer if the method turns out to be invalid, and then makes its
  // frame with rbp (OpenJDK, src/hotspot/cpu/x86/stubGenerator_x86_64.cpp, generate_method_entry_barrier).
  bool ReturnFromEntryBarrier() {
    uint64_t pc, rbp, pushed;
    const uint64_t at = frame_->rbp;
    if (at < frame_->sp || !memory_->Read(at, &rbp) || !memory_->Read(at + 8, &pushed) || pushed != ~0ull ||
        !memory_->Read(at + 16, &pc) || !JvmIsCode(pc) || !IsReturnAddress(pc, true)) {
      return false;
    }
    return Move(pc, at + 24, rbp, at);
  }

  // A virtual thread that has to wait for a monitor is put away while it is inside the VM: its frames are copied to the
  // heap, and the VM will return to a continuation stub instead of the one that compiled code had called (OpenJDK 24,
  // continuationFreezeThaw_x86.inline.hpp, patch_return_pc_with_preempt_stub). Below that place nothing has changed:
  // the stub's frame ends with a return address behind a direct call of that stub, whose size it has.
  __attribute__((noinline)) bool ReturnFromReplacedStub() {
    constexpr uint64_t kMaxStubWords = 512;  // the largest have room for every register there is
    constexpr uint64_t kCallBytes = 5;       // call rel32
    for (uint64_t bytes = 16; bytes <= kMaxStubWords * 8; bytes += 8) {
      uint64_t pc;
      if (!memory_->Read(frame_->sp + bytes - 8, &pc)) return false;
      // Any word of the stack may come by: between the segments of the code cache there is memory that cannot be read.
      CodeBlob caller;
      if (!JvmIsCode(pc) || !FindCodeBlob(layout, pc - 1, &caller) || pc - kCallBytes < caller.start ||
          LoadField<uint8_t>(pc - kCallBytes, 0) != 0xe8) {
        continue;
      }
      const uint64_t target = pc + static_cast<uint64_t>(static_cast<int64_t>(LoadField<int32_t>(pc - 4, 0)));
      CodeBlob stub;
      if (!JvmIsCode(target) || !FindCodeBlob(layout, target, &stub) || stub.kind != BlobKind::kOther ||
          stub.frame_bytes != bytes) {
        continue;
      }
      after_stub_ = true;
      return ReturnFromFrame(bytes, true);
    }
    return false;
  }

  // False: the list is full.
  bool AddMethod(uint64_t method, int32_t bytecode) {
    const uint64_t word = method != 0 ? JavaFrameAtIndex(layout, method, bytecode) : 0;
    named_ = true;
    return word == 0 || list_->Add(word);
  }

  // All methods of a call site. False: the list is full.
  bool AddMethods(InlinedScopes* scopes, uint32_t* methods) {
    uint64_t method;
    int32_t bytecode;
    for (*methods = 0; scopes->Next(&method, &bytecode); ++*methods) {
      if (!AddMethod(method, bytecode)) return false;
    }
    return true;
  }

  // *frame_ is where a virtual thread's oldest frame on the stack returns to: the others follow from the heap.
  __attribute__((noinline)) JavaStep FinishFromHeap() {
    const uint32_t before = list_->count;
    FrozenStack frozen(layout);
    if (!named_ || freezing_ || !frozen.Start(youngest_pc_)) return JavaStep::kContinuation;
    FrozenFrame frame;
    FrozenStep step = FrozenStep::kLost;
    bool full = false;
    for (uint32_t i = 0; i < kMaxSteps; i++) {
      step = frozen.Next(&frame);
      if (step == FrozenStep::kRoot) {
        full = full || !AddMethod(frame.method, -1);
        return full ? JavaStep::kFull : JavaStep::kEnded;
      }
      if (step == FrozenStep::kLost || !AddFrozen(frame, &full)) break;
    }
    list_->count = before;
    return JavaStep::kContinuation;
  }

  // False if the frame cannot be one. *full: it and what follows it finds no room, but is looked at all the same.
  bool AddFrozen(const FrozenFrame& frame, bool* full) {
    if (frame.interpreted) {
      const uint64_t word = JavaFrameAtAddress(layout, frame.method, frame.bytecode_address, false);
      if (word == 0) return false;
      *full = *full || !list_->Add(word);
      return true;
    }
    InlinedScopes scopes;
    uint32_t methods;
    if (!scopes.Start(layout, frame.blob, frame.pc)) return false;
    *full = *full || !AddMethods(&scopes, &methods);
    return true;
  }

  // Compiled code and most stubs: a frame of fixed size, the return address at its top, the caller's rbp below that.
  bool ReturnFromFrame(uint64_t frame_bytes, bool uncertain) {
    if (frame_bytes < 16) return false;
    const uint64_t top = frame_->sp + frame_bytes;
    uint64_t pc, rbp;
    if (!memory_->Read(top - 8, &pc) || !memory_->Read(top - 16, &rbp)) return false;
    if (uncertain && !IsReturnAddress(pc, false)) return false;
    return Move(pc, top, rbp, frame_->sp);
  }

  bool ReturnThroughRbp() {
    uint64_t pc, rbp;
    if (frame_->rbp < frame_->sp || !memory_->Read(frame_->rbp + 8, &pc) || !memory_->Read(frame_->rbp, &rbp)) {
      return false;
    }
    return Move(pc, frame_->rbp + 16, rbp, frame_->rbp);
  }

  // Each frame lies above the one it called.
  bool Move(uint64_t pc, uint64_t sp, uint64_t rbp, uint64_t above) {
    if (sp <= above || sp <= frame_->sp || pc == 0) return false;
    memory_->Ascend(sp);
    *frame_ = {pc, sp, rbp, false};
    return true;
  }

  StackMemory* memory_;
  StackFrame* frame_;
  FrameList* list_;
  JavaWalk* walk_;
  const uint64_t youngest_pc_;
  bool freezing_ = false;    // the thread is about to wait
  bool named_ = false;       // a method was passed
  bool left_ = false;        // native code called the frames so far
  bool after_stub_ = false;  // the frames that follow may be just being rebuilt
};

// Once Java code has run the JVM has decided.
__attribute__((noinline)) void PublishCollector() {
  if (!ProfileIsOpen() || __atomic_exchange_n(&collector_known, 1, __ATOMIC_RELAXED) != 0) return;
  const char* name = CollectorInUse(layout);
  if (name == nullptr) return;
  __atomic_store_n(&g_profile.header->jvm.collector, ProfileAddString(name, strlen(name)), __ATOMIC_RELEASE);
}

}  // namespace

void JvmNoteThreadKey(const void* caller, uint32_t key) {
  if (State() != kNoJvm) return;
  const link_map* library = LibraryOf(caller);
  if (!IsHotSpot(library)) return;
  uint32_t expected = kNoJvm;
  if (!__atomic_compare_exchange_n(&state, &expected, kReading, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  const bool usable = ReadVmStructs(library, &layout);
  SetThreadKey(key);
  __atomic_store_n(&state, usable ? kReady : kUnusable, __ATOMIC_RELEASE);
  if (ProfileIsOpen()) JvmPublish();
}

void JvmPublish() {
  const JvmState now = State();
  if (now != kReady && now != kUnusable) return;
  format::JvmFacts* facts = &g_profile.header->jvm;
  facts->feature = static_cast<uint32_t>(layout.feature);
  if (layout.version != nullptr) facts->version = ProfileAddString(layout.version, strlen(layout.version));
  if (layout.missing != nullptr) facts->missing = ProfileAddString(layout.missing, strlen(layout.missing));
  __atomic_store_n(&facts->walker, now == kReady ? format::kWalkerActive : format::kWalkerUnusable, __ATOMIC_RELEASE);
}

bool JvmIsCode(uint64_t pc) { return State() == kReady && IsInCodeCache(layout, pc); }

JavaStep WalkJavaFrames(StackMemory* memory, StackFrame* frame, FrameList* list, JavaWalk* walk) {
  const uint32_t before = list->count;
  const JavaStep step = JavaFrames(memory, frame, list, walk).Run();
  if (list->count != before) {
    NoteJavaThread(layout);
    if (__atomic_load_n(&collector_known, __ATOMIC_RELAXED) == 0) PublishCollector();
  }
  return step;
}

bool SkipToJavaFrames(StackMemory* memory, StackFrame* frame, JavaWalk* walk) {
  if (State() != kReady) return false;
  if (!walk->started) {
    walk->started = true;
    walk->anchor = CurrentAnchor(layout);
  }
  if (walk->anchor == 0) return false;
  const uint64_t anchor = walk->anchor;
  walk->anchor = 0;
  const uint64_t sp = LoadField<uint64_t>(anchor, layout.anchor_sp);
  const uint64_t rbp = LoadField<uint64_t>(anchor, layout.anchor_fp);
  uint64_t pc = LoadField<uint64_t>(anchor, layout.anchor_pc);
  if (sp <= frame->sp) return false;
  // Code that entered the JVM from the interpreter notes no pc: the call left it below sp.
  if (pc == 0 && !memory->Read(sp - 8, &pc)) return false;
  if (!JvmIsCode(pc)) return false;
  uint64_t probe;
  if (!memory->Read(sp, &probe)) return false;
  memory->Ascend(sp);
  *frame = {pc, sp, rbp, false};
  return true;
}

bool JvmIsReady() { return State() == kReady; }

bool JvmIsThread() { return JvmIsReady() && CurrentVmThread() != 0; }

ThreadNameAnswer JvmThreadName(const char* kernel_name, ThreadName* name) {
  return ReadThreadName(layout, CurrentVmThread(), kernel_name, name);
}

uint32_t JvmThreadContext() {
  if (State() != kReady) return 0;
  const uint64_t method = CompiledNow(layout);
  return method == 0 ? 0 : JavaMethodName(layout, method);
}

}  // namespace cadastre
