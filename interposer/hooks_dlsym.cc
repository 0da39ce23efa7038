// dlsym: a program that asks a library by its handle for malloc would get the function behind us, and what it
// allocates would be seen by nobody (Java's foreign linker and JNA look their functions up in this way).
//
// RTLD_NEXT and every name that is not an allocator's are tail jumps, so the loader still sees who asks. For the others
// the real answer is compared with the function that we forward to: if it is that very one, the answer is our hook. If
// it is libc's although another library serves malloc, it is a hook that forwards to libc's; a third library's private
// malloc stays what it is. As all functions of a family come from one library, malloc and free are exchanged together
// or not at all. A library that defines malloc itself is an allocator that looks for the one behind it, and gets the
// truth.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "interposer/elf_lookup.h"
#include "interposer/hooks.h"
#include "interposer/optional_entries.h"
#include "interposer/real_allocator.h"

extern "C" {
__attribute__((visibility("hidden"), used)) void* cadastre_real_dlsym;
}

namespace cadastre {
namespace {

struct Exchanged {
  const char* name;
  void* hook;
};
const Exchanged kAlways[] = {
    {"malloc", reinterpret_cast<void*>(&malloc)},
    {"free", reinterpret_cast<void*>(&free)},
    {"calloc", reinterpret_cast<void*>(&calloc)},
    {"realloc", reinterpret_cast<void*>(&realloc)},
    {"reallocarray", reinterpret_cast<void*>(&reallocarray)},
    {"posix_memalign", reinterpret_cast<void*>(&posix_memalign)},
    {"aligned_alloc", reinterpret_cast<void*>(&aligned_alloc)},
    {"memalign", reinterpret_cast<void*>(&memalign)},
    {"valloc", reinterpret_cast<void*>(&valloc)},
    {"pvalloc", reinterpret_cast<void*>(&pvalloc)},
    {"malloc_usable_size", reinterpret_cast<void*>(&malloc_usable_size)},
};

// The hook for `name` and, in *real, what it stands before.
void* FindExchanged(const char* name, const void** real) {
  // Most look-ups end here.
  if (strchr("mfcrpavjtsdx_", name[0]) == nullptr) return nullptr;
  for (const Exchanged& exchanged : kAlways) {
    if (strcmp(exchanged.name, name) != 0) continue;
    *real = FindInLibrary(RealAllocatorLibrary(), name);
    return exchanged.hook;
  }
  const OptionalEntry* entry = AwakeEntry(name);
  if (entry == nullptr) return nullptr;
  *real = entry->stands_before;
  return entry->hook;
}

}  // namespace
}  // namespace cadastre

CADASTRE_HIDDEN void cadastre_resolve_dlsym() {
  void* real = cadastre::FindNextFunction("dlsym");
  if (real == nullptr) real = cadastre::FindLoadedFunction("dlsym");
  __atomic_store_n(&cadastre_real_dlsym, real, __ATOMIC_RELEASE);
}

// The answer for a name of the malloc family; nullptr: let the loader answer.
CADASTRE_HIDDEN void* cadastre_exchange_symbol(void* handle, const char* name, const void* caller) {
  using namespace cadastre;
  // Not before the loader has relocated us: the table below holds addresses.
  if (name == nullptr || !RealAllocatorIsReady()) return nullptr;
  const void* replaced = nullptr;
  void* hook = FindExchanged(name, &replaced);
  if (hook == nullptr) return nullptr;
  const link_map* asking = LibraryOf(caller);
  if (asking == nullptr || asking == RealAllocatorLibrary() || FindInLibrary(asking, "malloc") != nullptr) {
    return nullptr;
  }
  if (cadastre_real_dlsym == nullptr) cadastre_resolve_dlsym();
  auto* real = reinterpret_cast<void* (*)(void*, const char*)>(cadastre_real_dlsym);
  if (real == nullptr) return nullptr;
  // nullptr here makes the loader look again, for the caller and with its error message.
  void* found = real(handle, name);
  if (found == nullptr) return nullptr;
  if (found == replaced) return hook;  // (null: the library that serves malloc has no such function)
  const OptionalEntry* of_libc = LibcEntry(name, found);
  return of_libc != nullptr ? of_libc->hook : nullptr;
}

// dlsym(handle, name): everything stays where it is for the tail jump.
asm(".pushsection .text\n"
    ".globl dlsym\n.type dlsym, @function\n.p2align 4\n"
    "dlsym:\n.cfi_startproc\n"
    "cmpq $-1, %rdi\n"  // RTLD_NEXT
    "je 2f\n"
    "movq (%rsp), %rdx\n"
    "pushq %rdi\n .cfi_adjust_cfa_offset 8\n"
    "pushq %rsi\n .cfi_adjust_cfa_offset 8\n"
    "subq $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
    "call cadastre_exchange_symbol\n"
    "addq $8, %rsp\n .cfi_adjust_cfa_offset -8\n"
    "popq %rsi\n .cfi_adjust_cfa_offset -8\n"
    "popq %rdi\n .cfi_adjust_cfa_offset -8\n"
    "testq %rax, %rax\n"
    "je 2f\n"
    "ret\n"
    "2: movq cadastre_real_dlsym(%rip), %rax\n"
    "testq %rax, %rax\n"
    "jne 9f\n"
    "pushq %rdi\n .cfi_adjust_cfa_offset 8\n"
    "pushq %rsi\n .cfi_adjust_cfa_offset 8\n"
    "subq $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
    "call cadastre_resolve_dlsym\n"
    "addq $8, %rsp\n .cfi_adjust_cfa_offset -8\n"
    "popq %rsi\n .cfi_adjust_cfa_offset -8\n"
    "popq %rdi\n .cfi_adjust_cfa_offset -8\n"
    "movq cadastre_real_dlsym(%rip), %rax\n"
    "testq %rax, %rax\n"
    "jne 9f\n"
    "ret\n"  // no dlsym in the process: nobody could have got here
    "9: jmp *%rax\n"
    ".cfi_endproc\n.size dlsym, .-dlsym\n"
    ".popsection\n");
