// Invoices: rendered into scratch buffers that go again, kept as blocks of operator new.
#include "tests/jvm/demo/modules.h"

namespace billing {
namespace {

demo::HeldBlocks held;
demo::MixedSizes sizes(0x2545f4914f6cdd1d);

class Invoice {
 public:
  explicit Invoice(uint64_t size) : size_(size) {}

  // Each page is drawn three times before one is kept.
  [[gnu::noinline]] void Render() {
    for (int draft = 0; draft < 3; draft++) {
      char* page = new char[size_];
      memset(page, draft, size_);
      delete[] page;
    }
    held.Keep(new char[size_], size_);
  }

 private:
  uint64_t size_;
};

}  // namespace

[[gnu::noinline]] const demo::HeldBlocks& RenderInvoices(uint64_t goal) {
  while (held.bytes() < goal) Invoice(sizes.Next()).Render();
  return held;
}

}  // namespace billing
