// A library with known functions at known lines, for symbolizer_test.cc: it is built once with debug information and
// then stripped, linked to a debug file, given mini debug information, and compressed. The test looks for lines by the
// words in their comments.
#include <stdint.h>

extern "C" __attribute__((noinline)) void* GoldenReturnAddress() {
  asm volatile("");
  return __builtin_return_address(0);
}

namespace golden {

// The asm keeps the call from becoming a jump, so that there is something to return to.
#define GOLDEN_CAPTURE(result)    \
  result = GoldenReturnAddress(); \
  asm volatile("" : "+r"(result))

__attribute__((always_inline)) inline void* Innermost() {
  void* here;
  GOLDEN_CAPTURE(here);  // line of Innermost
  return here;
}

struct Ledger {
  int64_t sum = 0;
  __attribute__((always_inline)) void* Book(int64_t amount) {
    sum += amount;
    return Innermost();  // line of Book
  }
  __attribute__((noinline)) void* Post(int64_t amount);
};

void* Ledger::Post(int64_t amount) {
  void* here = Book(amount);  // line of Post
  sum--;
  return here;
}

template <typename T>
__attribute__((noinline)) void* Typed(T value) {
  void* here;
  GOLDEN_CAPTURE(here);  // line of Typed
  return here;
}

namespace {
__attribute__((noinline)) void* Hidden() {
  void* here;
  GOLDEN_CAPTURE(here);  // line of Hidden
  return here;
}
}  // namespace

}  // namespace golden

extern "C" void* GoldenInlined() {
  golden::Ledger ledger;
  void* here = ledger.Post(3);
  asm volatile("" : : "r"(&ledger) : "memory");
  return here;
}
extern "C" void* GoldenTyped() {
  void* here = golden::Typed<const char*>("x");
  asm volatile("" : "+r"(here));
  return here;
}
extern "C" void* GoldenHidden() {
  void* here = golden::Hidden();
  asm volatile("" : "+r"(here));
  return here;
}
extern "C" void* GoldenLambda() {
  auto lambda = [](int x) __attribute__((noinline)) {
    void* here;
    GOLDEN_CAPTURE(here);  // line of the lambda
    return here;
  };
  void* here = lambda(1);
  asm volatile("" : "+r"(here));
  return here;
}

// Symbols without a size, a gap that no symbol covers, and a label inside a function.
asm(R"(
  .text
  .globl golden_unsized
  golden_unsized:
    nop
    nop
    ret
  .globl golden_sized
  .type golden_sized, @function
  golden_sized:
    nop
  golden_label_inside:
    nop
    ret
  .size golden_sized, . - golden_sized
    .skip 64, 0xcc
)");
