#include "interposer/jvm/frozen_stack.h"

#include <string.h>

#include "interposer/jvm/class_fields.h"
#include "interposer/jvm/heap_references.h"
#include "interposer/jvm/java_thread.h"
#include "interposer/jvm/learn_once.h"
#include "interposer/jvm/method_names.h"

namespace cadastre {
namespace {

// Names of classes and fields are OpenJDK's:
// src/java.base/share/classes/jdk/internal/vm/{Continuation,StackChunk}.java; pc and cont are added by HotSpot.
constexpr char kContinuation[] = "jdk/internal/vm/Continuation";
constexpr char kStackChunk[] = "jdk/internal/vm/StackChunk";

constexpr uint64_t kMaxHeaderBytes = 128;
constexpr uint32_t kMaxSuperclasses = 16;
constexpr uint32_t kMostMethods = 1000;
// Words of an interpreter frame from rbp, as in jvm.cc.
constexpr int64_t kSenderSpSlot = -1, kMethodSlot = -3, kReturnSlot = 1;

struct FrozenForm {
  HeapForm heap;
  int32_t thread_continuation;
  int32_t continuation_tail;
  uint64_t root_method;    // Method* of Continuation.enterSpecial
  uint64_t oldest_method;  // and of what that calls, Continuation.enter
  uint64_t chunk_class;
  int32_t parent, size, sp, pc;
  int32_t bottom;          // first word behind the frames; or
  int32_t argument_words;  // bottom = size - this
  uint64_t header_bytes;   // frames begin behind the fields
};

// Constant once it has been learnt.
FrozenForm g_form;
LearnOnce g_learnt;

int32_t FieldOffset(const VmLayout& vm, uint64_t class_address, const char* name) {
  ClassField field;
  return FindClassField(vm, class_address, name, &field) ? field.offset : kNoField;
}

// The class of this name among a class and its superclasses; 0 = none.
uint64_t FindClass(const VmLayout& vm, uint64_t class_address, const char* name) {
  for (uint32_t i = 0; i < kMaxSuperclasses && class_address != 0; i++) {
    if (IsSymbol(vm, LoadField<uint64_t>(class_address, vm.klass_name), name)) return class_address;
    class_address = LoadField<uint64_t>(class_address, vm.class_super);
  }
  return 0;
}

uint64_t FindMethod(const VmLayout& vm, uint64_t class_address, const char* name) {
  const uint64_t methods = LoadField<uint64_t>(class_address, vm.class_methods);
  const uint32_t count = LoadField<uint32_t>(methods, vm.vm_array_length);
  for (uint32_t i = 0; i < count && i < kMostMethods; i++) {
    const uint64_t method = LoadField<uint64_t>(methods + i * 8ull, vm.method_array_data);
    if (IsMethod(vm, method, kContinuation, name)) return method;
  }
  return 0;
}

bool LearnChunk(const VmLayout& vm, uint64_t chunk_class, FrozenForm* form) {
  form->chunk_class = FindClass(vm, chunk_class, kStackChunk);
  if (form->chunk_class == 0) return false;
  form->parent = FieldOffset(vm, chunk_class, "parent");
  form->size = FieldOffset(vm, chunk_class, "size");
  form->sp = FieldOffset(vm, chunk_class, "sp");
  form->pc = FieldOffset(vm, chunk_class, "pc");
  form->bottom = FieldOffset(vm, chunk_class, "bottom");
  form->argument_words = FieldOffset(vm, chunk_class, "argsize");
  // The lowest bit of an instance's layout helper says something else (OpenJDK, src/hotspot/share/oops/klass.hpp).
  form->header_bytes = LoadField<uint32_t>(chunk_class, vm.class_instance_bytes) & ~1u;
  const uint64_t last = form->header_bytes - 8;
  const bool inside = form->header_bytes <= kMaxHeaderBytes && form->header_bytes % 8 == 0;
  if (!inside || (form->bottom < 0 && form->argument_words < 0)) return false;
  const int32_t found[] = {form->parent, form->size, form->sp, form->pc};
  for (const int32_t field : found) {
    if (field < 0 || static_cast<uint64_t>(field) > last + 4) return false;
  }
  return static_cast<uint64_t>(form->pc) <= last;
}

// Not yet: an object could not be read just now.
__attribute__((noinline)) Learnt Learn(const VmLayout& vm, FrozenForm* form) {
  if (vm.thread_class == nullptr || vm.class_super < 0 || vm.class_instance_bytes < 0 || vm.class_methods < 0 ||
      vm.method_array_data < 0 || vm.vm_array_length < 0 || !KnowsPauses(vm) || !ReadHeapForm(vm, &form->heap)) {
    return Learnt::kCannot;
  }
  form->thread_continuation = FieldOffset(vm, *vm.thread_class, "cont");
  if (form->thread_continuation < 0) return Learnt::kCannot;
  HeapPath path(vm, form->heap);
  uint64_t thread, continuation, chunk, class_address, word;
  if (!path.Start(ThreadObjectSlot(vm, CurrentJavaThread()), &thread) ||
      !path.Follow(&thread, form->thread_continuation, &continuation) || continuation == 0 ||
      !path.Copy(&continuation, 0, &word, sizeof(word), &class_address)) {
    return Learnt::kNotYet;
  }
  class_address = FindClass(vm, class_address, kContinuation);
  if (class_address == 0) return Learnt::kCannot;
  form->continuation_tail = FieldOffset(vm, class_address, "tail");
  form->root_method = FindMethod(vm, class_address, "enterSpecial");
  form->oldest_method = FindMethod(vm, class_address, "enter");
  if (form->continuation_tail < 0 || form->root_method == 0 || form->oldest_method == 0) return Learnt::kCannot;
  if (!path.Follow(&continuation, form->continuation_tail, &chunk) || chunk == 0 ||
      !path.Copy(&chunk, 0, &word, sizeof(word), &class_address)) {
    return Learnt::kNotYet;
  }
  return LearnChunk(vm, class_address, form) ? Learnt::kKnown : Learnt::kCannot;
}

bool IsLearnt(const VmLayout& vm) {
  return g_learnt.Ask([&vm] { return Learn(vm, &g_form); }) == Learnt::kKnown;
}

template <typename Type>
Type FieldOf(const uint8_t* object, int32_t offset) {
  Type value;
  memcpy(&value, object + offset, sizeof(value));
  return value;
}

uint64_t Words(int64_t words) { return static_cast<uint64_t>(words * 8); }

}  // namespace

bool IsVirtualThreadRoot(const VmLayout& vm, uint64_t method) {
  return IsMethod(vm, method, kContinuation, "enterSpecial");
}

bool IsFreezing(const VmLayout& vm, uint64_t method) { return IsMethod(vm, method, kContinuation, "doYield"); }

FrozenStack::FrozenStack(const VmLayout& vm) : vm_(vm), path_(vm, g_form.heap) {}

bool FrozenStack::Start(uint64_t youngest_pc) {
  if (!IsLearnt(vm_)) return false;
  uint64_t thread, continuation, chunk;
  bool found;
  return path_.Start(ThreadObjectSlot(vm_, CurrentJavaThread()), &thread) &&
         path_.Follow(&thread, g_form.thread_continuation, &continuation) && continuation != 0 &&
         path_.Follow(&continuation, g_form.continuation_tail, &chunk) && OpenChunk(chunk, &found) && found &&
         pc_ != youngest_pc;
}

// Goes on to an older one where the chunk holds no frames. *found: there was one that does.
bool FrozenStack::OpenChunk(uint64_t chunk, bool* found) {
  alignas(8) uint8_t header[kMaxHeaderBytes];
  *found = false;
  while (chunk != 0) {
    uint64_t class_address;
    if (chunks_++ == kMaxChunks || !path_.Copy(&chunk, 0, header, g_form.header_bytes, &class_address) ||
        class_address != g_form.chunk_class) {
      return false;
    }
    const auto size = FieldOf<int32_t>(header, g_form.size), sp = FieldOf<int32_t>(header, g_form.sp);
    const int32_t bottom = g_form.bottom >= 0 ? FieldOf<int32_t>(header, g_form.bottom)
                                              : size - FieldOf<int32_t>(header, g_form.argument_words);
    if (sp < 0 || bottom < 0 || bottom > size) return false;
    if (sp < bottom) {
      chunk_ = chunk;
      begin_ = chunk + g_form.header_bytes;
      bottom_ = begin_ + Words(bottom);
      sp_ = unextended_sp_ = begin_ + Words(sp);
      pc_ = FieldOf<uint64_t>(header, g_form.pc);
      at_bottom_ = false;
      window_words_ = 0;
      *found = true;
      return true;
    }
    if (!path_.Follow(&chunk, g_form.parent, &chunk)) return false;
  }
  return true;
}

FrozenStep FrozenStack::Next(FrozenFrame* frame) {
  *frame = {};
  if (at_bottom_) {
    // What the oldest frame of a chunk returns to says nothing: where a chunk is used again it is left from before.
    uint64_t older;
    bool found;
    if (!path_.Follow(&chunk_, g_form.parent, &older) || !OpenChunk(older, &found)) return FrozenStep::kLost;
    if (!found) {
      frame->method = g_form.root_method;
      return method_ == g_form.oldest_method ? FrozenStep::kRoot : FrozenStep::kLost;
    }
  }
  if (!IsInCodeCache(vm_, pc_)) return FrozenStep::kLost;
  return IsInterpreterCode(vm_, pc_) ? StepOverInterpreted(frame) : StepOverCompiled(frame);
}

FrozenStep FrozenStack::StepOverInterpreted(FrozenFrame* frame) {
  uint64_t link, sender_sp, pc;
  const uint64_t link_at = sp_ - 16;
  if (!Word(link_at, &link)) return FrozenStep::kLost;
  const uint64_t rbp = link_at + Words(static_cast<int64_t>(link));
  if (rbp < sp_ || rbp >= bottom_ || !Word(rbp + Words(vm_.interpreter_bytecode_slot), &frame->bytecode_address) ||
      !Word(rbp + Words(kMethodSlot), &frame->method) || !Word(rbp + Words(kSenderSpSlot), &sender_sp) ||
      !Word(rbp + Words(kReturnSlot), &pc)) {
    return FrozenStep::kLost;
  }
  frame->interpreted = true;
  method_ = frame->method;
  frame->pc = pc_;
  const uint64_t top = rbp + Words(static_cast<int64_t>(sender_sp));
  return Return(pc, rbp + 16, top) ? FrozenStep::kFrame : FrozenStep::kLost;
}

FrozenStep FrozenStack::StepOverCompiled(FrozenFrame* frame) {
  if (!FindCodeBlob(vm_, pc_, &frame->blob) || frame->blob.kind != BlobKind::kCompiled ||
      frame->blob.frame_bytes < 16) {
    return FrozenStep::kLost;
  }
  frame->pc = pc_;
  method_ = MethodOfBlob(vm_, frame->blob);
  int32_t original_pc_offset;
  if (IsDeoptimised(vm_, frame->blob, pc_, &original_pc_offset) &&
      !Word(unextended_sp_ + static_cast<uint64_t>(static_cast<int64_t>(original_pc_offset)), &frame->pc)) {
    return FrozenStep::kLost;
  }
  const uint64_t top = unextended_sp_ + frame->blob.frame_bytes;
  uint64_t pc;
  if (!Word(top - 8, &pc)) return FrozenStep::kLost;
  return Return(pc, top, top) ? FrozenStep::kFrame : FrozenStep::kLost;
}

bool FrozenStack::Return(uint64_t pc, uint64_t sp, uint64_t unextended_sp) {
  if (sp <= sp_ || unextended_sp < unextended_sp_ || sp > bottom_ || unextended_sp > bottom_) return false;
  pc_ = pc;
  sp_ = sp;
  unextended_sp_ = unextended_sp;
  at_bottom_ = unextended_sp == bottom_;
  return true;
}

// A window begins a little below what was asked for: the slots of one interpreter frame are asked for from both sides.
bool FrozenStack::Word(uint64_t address, uint64_t* value) {
  constexpr uint64_t kBelow = 10 * 8;
  if ((address & 7) != 0 || address < begin_ || address >= bottom_) return false;
  if (window_words_ == 0 || address < window_at_ || address >= window_at_ + window_words_ * 8) {
    window_at_ = address - begin_ < kBelow ? begin_ : address - kBelow;
    const uint64_t left = (bottom_ - window_at_) / 8;
    window_words_ = left < kWindowWords ? left : kWindowWords;
    if (!path_.CopyInside(window_at_, window_, window_words_ * 8)) {
      window_words_ = 0;
      return false;
    }
  }
  *value = window_[(address - window_at_) / 8];
  return true;
}

}  // namespace cadastre
