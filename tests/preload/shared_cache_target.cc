// The figure that everybody draws: 100 MB, of which a platform's cache holds 70. Billing put 40 of it there, search 25
// and auth 5; billing's own index has 30. In units of a hundredth of BLOCKS blocks of 10,000 bytes, all live at the
// end.
#include <stdlib.h>

#include <vector>

namespace {
constexpr size_t kBlockBytes = 10000;
}

namespace platform {
class Cache {
 public:
  __attribute__((noinline)) void Put(size_t blocks) {
    for (size_t i = 0; i < blocks; i++) entries_.push_back(malloc(kBlockBytes));
  }

 private:
  std::vector<void*> entries_;
};
__attribute__((noinline)) Cache& SharedCache() {
  static Cache* cache = new Cache;
  return *cache;
}
}  // namespace platform

namespace billing {
class InvoiceIndex {
 public:
  __attribute__((noinline)) void Add(size_t blocks) {
    for (size_t i = 0; i < blocks; i++) entries_.push_back(malloc(kBlockBytes));
  }

 private:
  std::vector<void*> entries_;
};
__attribute__((noinline)) void Run(size_t unit) {
  platform::SharedCache().Put(40 * unit);
  (new InvoiceIndex)->Add(30 * unit);
  asm volatile("" ::: "memory");  // no tail call: the frame stays
}
}  // namespace billing

namespace search {
__attribute__((noinline)) void Run(size_t unit) {
  platform::SharedCache().Put(25 * unit);
  asm volatile("" ::: "memory");
}
}  // namespace search

namespace auth {
__attribute__((noinline)) void Run(size_t unit) {
  platform::SharedCache().Put(5 * unit);
  asm volatile("" ::: "memory");
}
}  // namespace auth

int main(int argc, char** argv) {
  size_t unit = argc > 1 ? strtoul(argv[1], nullptr, 10) : 1;
  billing::Run(unit);
  search::Run(unit);
  auth::Run(unit);
}
