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

// By the names that the JVM and its library give, as the kernel has them: "C1 CompilerThread0"; "Reference Handler" is
// cut to "Reference Handl", since JDK 21 to "Referen..andler"; java.lang.ref.Cleaner numbers its threads, "Cleaner-0".
ThreadWork WorkOf(const char* kernel_name) {
  if (strstr(kernel_name, "Compiler") != nullptr || strstr(kernel_name, "omp..") != nullptr) return kThreadWorkCompiler;
  if (strcmp(kernel_name, "Finalizer") == 0 || strcmp(kernel_name, "Common-Cleaner") == 0 ||
      strncmp(kernel_name, "Cleaner-", 8) == 0 || strncmp(kernel_name, "Referen", 7) == 0)
    return kThreadWorkReaper;
  return kThreadWorkAny;
}

// What the kernel calls it.
struct KernelName {
  char text[kKernelNameBytes] = {};
  KernelName() { RawSyscall(SYS_prctl, PR_GET_NAME, reinterpret_cast<long>(text)); }
};

void StoreWholeName(format::ThreadRecord* record, const char* kernel_name, const ThreadName& name) {
  const bool is_kernels = name.length == strlen(kernel_name) && memcmp(name.bytes, kernel_name, name.length) == 0;
  __atomic_store_n(&record->full_name, is_kernels ? 0 : InternThreadName(name), __ATOMIC_RELEASE);
}

// A name that the thread gave to the kernel, and that the kernel did not have to cut, is whole. (One that it inherited
// may be another's: HotSpot leaves the main thread with the launcher's.) What is no plain text HotSpot writes for the
// kernel in a way of its own.
bool IsWhole(const ThreadState& state, const KernelName& kernel) {
  size_t length = 0;
  while (kernel.text[length] >= ' ' && kernel.text[length] <= '~') length++;
  return (state.notes & kHasGivenName) != 0 && kernel.text[length] == '\0' && length + 1 < kKernelNameBytes;
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
  const KernelName kernel;
  state->work = WorkOf(kernel.text);
  state->name_wait = kNameSettled;
  format::ThreadRecord* record = RecordOf(state);
  if (record == nullptr || IsWhole(*state, kernel)) return;
  ThreadName name;
  const ThreadNameAnswer answer = JvmThreadName(kernel.text, &name);
  if (answer == ThreadNameAnswer::kWhole) StoreWholeName(record, kernel.text, name);
  if (answer != ThreadNameAnswer::kLater) return;
  state->name_wait = static_cast<uint16_t>(1u << state->name_tries);
  if (state->name_tries < kMostDoublings) state->name_tries++;
}

__attribute__((noinline)) bool ThreadIsReaperSlow(ThreadState* state) {
  if (IsSandboxed() || !JvmIsThread()) return false;
  const KernelName kernel;
  state->work = WorkOf(kernel.text);
  return state->work == kThreadWorkReaper;
}

void ThreadNameChanged(ThreadState* state, const char* name) {
  if (state == nullptr) return;
  state->notes |= kHasGivenName;
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
