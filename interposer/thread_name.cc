#include "interposer/thread_name.h"

#include <string.h>
#include <sys/prctl.h>

#include "interposer/interned_strings.h"
#include "interposer/jvm/jvm.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"
#include "interposer/raw_syscall.h"
#include "interposer/stack_memory.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {

constexpr size_t kKernelNameBytes = sizeof(format::ThreadRecord::name);
constexpr uint64_t kStringsShare = 8;
constexpr uint8_t kMostDoublings = 10;

uint64_t name_units;  // of the strings region, taken by names of threads so far

uint32_t InternThreadName(const ThreadName& name) {
  if (const uint32_t known = FindInternedString(name.bytes, name.length); known != 0) return known;
  const uint64_t units = (sizeof(format::StringHeader) + name.length + 7) / 8;
  if (__atomic_add_fetch(&name_units, units, __ATOMIC_RELAXED) > g_profile.string_units / kStringsShare) {
    __atomic_fetch_sub(&name_units, units, __ATOMIC_RELAXED);
    return 0;
  }
  return InternString(name.bytes, name.length);
}

format::ThreadRecord* RecordOf(const ThreadState* state) {
  return state->thread != 0 && state->thread < g_profile.thread_capacity ? &g_profile.threads[state->thread] : nullptr;
}

// Compiler threads are known by the names that the JVM gives them: "C1 CompilerThread0", as the kernel has it.
ThreadWork WorkOf(const char* kernel_name) {
  const bool compiles = strstr(kernel_name, "Compiler") != nullptr || strstr(kernel_name, "omp..") != nullptr;
  return compiles ? kThreadWorkCompiler : kThreadWorkAny;
}

void StoreWholeName(format::ThreadRecord* record, const char* kernel_name, const ThreadName& name) {
  const bool is_kernels = name.length == strlen(kernel_name) && memcmp(name.bytes, kernel_name, name.length) == 0;
  __atomic_store_n(&record->full_name, is_kernels ? 0 : InternThreadName(name), __ATOMIC_RELEASE);
}

// Not on an alternate stack, nor at the end of its own: this needs less than a capture, which asks for the same.
bool HasRoom(const StackBounds& stack) {
  const auto sp = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return stack.low != 0 && sp < stack.high && sp >= stack.low + kMinimumStackBytes;
}

}  // namespace

__attribute__((noinline)) void ThreadNameUpdateSlow(ThreadState* state) {
  if (state->name_wait > 0) {
    state->name_wait--;
    return;
  }
  if (IsSandboxed() || !JvmIsThread() || !HasRoom(state->thread_stack)) return;
  char kernel_name[kKernelNameBytes] = {};
  RawSyscall(SYS_prctl, PR_GET_NAME, reinterpret_cast<long>(kernel_name));
  state->work = WorkOf(kernel_name);
  state->name_wait = kNameSettled;
  format::ThreadRecord* record = RecordOf(state);
  if (record == nullptr) return;
  ThreadName name;
  const ThreadNameAnswer answer = JvmThreadName(kernel_name, &name);
  if (answer == ThreadNameAnswer::kWhole) StoreWholeName(record, kernel_name, name);
  if (answer != ThreadNameAnswer::kLater) return;
  state->name_wait = static_cast<uint16_t>(1u << state->name_tries);
  if (state->name_tries < kMostDoublings) state->name_tries++;
}

void ThreadNameChanged(ThreadState* state, const char* name) {
  if (state == nullptr) return;
  state->work = kThreadWorkUnknown;
  state->name_tries = 0;
  state->name_wait = 0;
  format::ThreadRecord* record = RecordOf(state);
  if (record == nullptr) return;
  char padded[kKernelNameBytes] = {};
  for (size_t i = 0; i + 1 < sizeof(padded) && name[i] != '\0'; i++) padded[i] = name[i];
  // First this: the old whole name is none of the new short one.
  __atomic_store_n(&record->full_name, 0, __ATOMIC_RELEASE);
  memcpy(record->name, padded, sizeof(padded));
}

}  // namespace cadastre
