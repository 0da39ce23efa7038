#include "interposer/jvm/checked_read.h"

#include <sys/uio.h>

#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {

constexpr size_t kMostPieces = 3;

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

long ReadOwnMemory(const iovec* local, const iovec* remote, size_t count) {
  if (IsSandboxed()) return 0;
  const long result = RawSyscall(SYS_process_vm_readv, OwnPid(), reinterpret_cast<long>(local),
                                 static_cast<long>(count), reinterpret_cast<long>(remote), static_cast<long>(count), 0);
  return IsSyscallError(result) ? 0 : result;
}

}  // namespace

bool CheckedRead(const CheckedPiece* pieces, size_t count) {
  iovec local[kMostPieces], remote[kMostPieces];
  if (count > kMostPieces) return false;
  size_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    local[i] = {pieces[i].out, pieces[i].bytes};
    remote[i] = {reinterpret_cast<void*>(pieces[i].address), pieces[i].bytes};
    bytes += pieces[i].bytes;
  }
  return ReadOwnMemory(local, remote, count) == static_cast<long>(bytes);
}

size_t CheckedReadSome(uint64_t address, void* out, size_t bytes) {
  // In two pieces, for the kernel copies a piece that lies in two pages only if it can have both.
  const uint64_t in_page = 4096 - (address & 4095);
  const size_t first = bytes < in_page ? bytes : in_page;
  const iovec local[] = {{out, first}, {static_cast<char*>(out) + first, bytes - first}};
  const iovec remote[] = {{reinterpret_cast<void*>(address), first},
                          {reinterpret_cast<void*>(address + first), bytes - first}};
  return static_cast<size_t>(ReadOwnMemory(local, remote, first == bytes ? 1 : 2));
}

}  // namespace cadastre
