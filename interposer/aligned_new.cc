#include "interposer/aligned_new.h"

#include <stddef.h>

#include "interposer/early_text.h"
#include "interposer/real_allocator.h"

namespace cadastre {
namespace {

using NewFunction = void* (*)(size_t, size_t, size_t);

constexpr int kForms = 4;
constexpr const char* kNames[kForms] = {"_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
                                        "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"};
NewFunction runtime_form[kForms];

template <int kForm>
void* AlignedNew(size_t bytes, size_t alignment, size_t tag) {
  if (alignment != 0 && (alignment & (alignment - 1)) == 0) {
    void* block = g_real.memalign(alignment, bytes == 0 ? 1 : bytes);
    if (block != nullptr) return block;
  }
  return runtime_form[kForm](bytes, alignment, tag);
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
    return reinterpret_cast<void*>(kForm[i]);
  }
  return nullptr;
}

}  // namespace cadastre
