#include "interposer/jvm/checked_read.h"

#include <errno.h>

#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {

bool g_refused;  // by a filter, or by a kernel that does not have the call

// Asked once: a child after vfork has another one and the same memory; in a child after fork nothing is recorded.
long OwnPid() {
  static uint32_t known;
  uint32_t pid = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (pid == 0) {
    pid = static_cast<uint32_t>(RawSyscall(SYS_getpid));
    __atomic_store_n(&known, pid, __ATOMIC_RELAXED);
  }
  return pid;
}

// Bytes copied; 0 = none.
size_t ReadOwnMemory(const iovec* to, const iovec* from, size_t count) {
  if (IsSandboxed() || __atomic_load_n(&g_refused, __ATOMIC_RELAXED)) return 0;
  const long result = RawSyscall(SYS_process_vm_readv, OwnPid(), reinterpret_cast<long>(to), static_cast<long>(count),
                                 reinterpret_cast<long>(from), static_cast<long>(count), 0);
  if (result == -EPERM || result == -ENOSYS) __atomic_store_n(&g_refused, true, __ATOMIC_RELAXED);
  return IsSyscallError(result) ? 0 : static_cast<size_t>(result);
}

}  // namespace

bool CheckedReadPieces(const iovec* to, const iovec* from, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += from[i].iov_len;
  return ReadOwnMemory(to, from, count) == bytes;
}

bool CheckedRead(uint64_t address, void* out, size_t bytes) {
  const iovec to = {out, bytes}, from = {reinterpret_cast<void*>(address), bytes};
  return CheckedReadPieces(&to, &from, 1);
}

size_t CheckedReadSome(uint64_t address, void* out, size_t bytes) {
  // In two pieces, for the kernel copies a piece that lies in two pages only if it can have both.
  const uint64_t in_page = 4096 - (address & 4095);
  const size_t first = bytes < in_page ? bytes : in_page;
  const iovec to[] = {{out, first}, {static_cast<char*>(out) + first, bytes - first}};
  const iovec from[] = {{reinterpret_cast<void*>(address), first},
                        {reinterpret_cast<void*>(address + first), bytes - first}};
  return ReadOwnMemory(to, from, first == bytes ? 1 : 2);
}

}  // namespace cadastre
