#include "interposer/jvm/java_thread.h"

#include <string.h>
#include <sys/prctl.h>

#include "interposer/elf_lookup.h"
#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/lasting_memory.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"
#include "interposer/thread_state.h"

namespace cadastre {
namespace {

using GetSpecific = void* (*)(uint32_t);

GetSpecific get_specific;  // set before key_plus_one
uint32_t key_plus_one;

// JavaThread and those of its subclasses that run Java code.
constexpr uint32_t kMaxTables = 8;
uint64_t java_tables[kMaxTables];

uint64_t VirtualTable(uint64_t thread) { return LoadField<uint64_t>(thread, 0); }

bool IsJavaTable(uint64_t table) {
  for (const uint64_t& known : java_tables) {
    const uint64_t value = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (value == table) return true;
    if (value == 0) return false;
  }
  return false;
}

// Once for each class of threads: the thread says about itself what the kernel says about it.
bool IsOwnThread(const VmLayout& layout, uint64_t thread) {
  if (layout.thread_os_thread < 0 || layout.os_thread_id < 0 || IsSandboxed()) return false;
  const uint64_t os_thread = LoadField<uint64_t>(thread, layout.thread_os_thread);
  return os_thread != 0 && (os_thread & 7) == 0 &&
         LoadField<int32_t>(os_thread, layout.os_thread_id) == static_cast<int32_t>(RawSyscall(SYS_gettid));
}

}  // namespace

void SetThreadKey(uint32_t key) {
  if (__atomic_load_n(&key_plus_one, __ATOMIC_ACQUIRE) != 0) return;
  get_specific = reinterpret_cast<GetSpecific>(FindLoadedFunction("pthread_getspecific"));
  if (get_specific != nullptr) __atomic_store_n(&key_plus_one, key + 1, __ATOMIC_RELEASE);
}

uint64_t CurrentVmThread() {
  const uint32_t key = __atomic_load_n(&key_plus_one, __ATOMIC_ACQUIRE);
  return key == 0 ? 0 : reinterpret_cast<uint64_t>(get_specific(key - 1));
}

void NoteJavaThread(const VmLayout& layout) {
  const uint64_t thread = CurrentVmThread();
  if (thread == 0 || layout.thread_anchor < 0) return;
  const uint64_t table = VirtualTable(thread);
  if (IsJavaTable(table) || !IsOwnThread(layout, thread)) return;
  for (uint64_t& slot : java_tables) {
    uint64_t empty = 0;
    if (__atomic_compare_exchange_n(&slot, &empty, table, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
    if (empty == table) return;
  }
}

uint64_t CurrentJavaThread() {
  const uint64_t thread = CurrentVmThread();
  return thread != 0 && IsJavaTable(VirtualTable(thread)) ? thread : 0;
}

uint64_t CurrentAnchor(const VmLayout& layout) {
  if (layout.thread_anchor < 0 || layout.anchor_sp < 0 || layout.anchor_pc < 0 || layout.anchor_fp < 0) return 0;
  const uint64_t thread = CurrentJavaThread();
  if (thread == 0) return 0;
  return thread + static_cast<uint64_t>(layout.thread_anchor);
}

uint64_t ThreadObjectSlot(const VmLayout& layout, uint64_t thread) {
  if (thread == 0) return 0;
  if (layout.thread_object >= 0) return thread + static_cast<uint64_t>(layout.thread_object);
  // A thread that is no JavaThread is a smaller object, and may end before it.
  LastingMemory own;
  uint64_t slot;
  return layout.thread_object_handle >= 0 &&
                 own.Load(thread + static_cast<uint64_t>(layout.thread_object_handle), &slot)
             ? slot
             : 0;
}

bool IsUnpackingFrames(const VmLayout& layout) {
  if (layout.thread_unpacking < 0) return true;  // cannot be told: be careful
  const uint64_t thread = CurrentJavaThread();
  if (thread == 0) return true;
  return LoadField<uint64_t>(thread, layout.thread_unpacking) != 0;
}

uint64_t CompiledNow(const VmLayout& layout) {
  if (layout.compiler_env < 0 || layout.env_task < 0 || layout.task_method < 0) return 0;
  const uint64_t thread = CurrentVmThread();
  if (thread == 0) return 0;
  const uint64_t env = LoadField<uint64_t>(thread, layout.compiler_env);
  if (env == 0) return 0;
  const uint64_t task = LoadField<uint64_t>(env, layout.env_task);
  return task == 0 ? 0 : LoadField<uint64_t>(task, layout.task_method);
}

}  // namespace cadastre
