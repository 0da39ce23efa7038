// _exit and _Exit: a program that ends that way runs no destructors, and is noted as ended all the same. exit() and
// quick_exit() come to the kernel inside libc, past us; they call what was registered before (session.cc).
#include "interposer/elf_lookup.h"
#include "interposer/hooks.h"
#include "interposer/raw_syscall.h"
#include "interposer/session.h"

namespace {

[[noreturn]] void End(const char* name, int status) {
  cadastre::SessionNoteEnd();
  void* real = cadastre::FindNextFunction(name);
  if (real != nullptr) reinterpret_cast<void (*)(int)>(real)(status);
  for (;;) cadastre::RawSyscall(SYS_exit_group, status);
}

}  // namespace

CADASTRE_EXPORT void _exit(int status) { End("_exit", status); }
CADASTRE_EXPORT void _Exit(int status) { End("_Exit", status); }
