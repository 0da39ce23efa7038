#include "interposer/aligned_new.h"

#include <stddef.h>

#include "interposer/early_text.h"
#include "interposer/elf_lookup.h"
#include "interposer/real_allocator.h"

namespace cadastre {
namespace {

using NewFunction = void* (*)(size_t, size_t, size_t);

constexpr int kForms = 4;
constexpr const char* kNames[kForms] = {"_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
                                        "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"};
NewFunction runtime_form[kForms];
using NewHandler = void (*)();
NewHandler (*get_new_handler)();
// What libstdc++ answers with bad_alloc, or null, without asking the allocator again.
constexpr size_t kNoAlignment = 3;

template <int kForm>
void* AlignedNew(size_t bytes, size_t alignment, size_t tag) {
  constexpr bool kNothrow = kForm >= 2;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || get_new_handler == nullptr ||
      (kNothrow && get_new_handler() != nullptr))  // only libstdc++ can catch what a handler throws
    return runtime_form[kForm](bytes, alignment, tag);
  for (;;) {
    void* block = g_real.memalign(alignment, bytes == 0 ? 1 : bytes);
    if (block != nullptr) return block;
    const NewHandler handler = get_new_handler();
    if (handler == nullptr) return kNothrow ? nullptr : runtime_form[kForm](bytes, kNoAlignment, tag);
    handler();  // finds memory, or leaves by an exception or a jump
  }
}
constexpr NewFunction kForm[kForms] = {&AlignedNew<0>, &AlignedNew<1>, &AlignedNew<2>, &AlignedNew<3>};

bool IsLibstdcxx(const link_map* library) {
  if (library->l_name == nullptr) return false;
  const char* file = library->l_name;
  for (const char* c = file; *c != '\0'; c++) {
    if (*c == '/') file = c + 1;
  }
  return TextStartsWith(file, "libstdc++.so");
}

}  // namespace

void* AlignedNewInsteadOf(const char* name, const link_map* library, void* function) {
  for (int i = 0; i < kForms; i++) {
    if (!TextEquals(name, kNames[i]) || !IsLibstdcxx(library)) continue;
    runtime_form[i] = reinterpret_cast<NewFunction>(function);
    get_new_handler = reinterpret_cast<NewHandler (*)()>(FindInLibrary(library, "_ZSt15get_new_handlerv"));
    return reinterpret_cast<void*>(kForm[i]);
  }
  return nullptr;
}

}  // namespace cadastre
