// A whole number as text, where libc's printf may not be called.
//
// Thread- and signal-safety: plain value; no allocation, no libc state.
//
// Example: Decimal number(4242); memcpy(to, number.text(), number.length());
#ifndef CADASTRE_INTERPOSER_DECIMAL_H_
#define CADASTRE_INTERPOSER_DECIMAL_H_

#include <stddef.h>
#include <stdint.h>

namespace cadastre {

class Decimal {
 public:
  explicit Decimal(uint64_t value) {
    do {
      digits_[--begin_] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
  }
  const char* text() const { return digits_ + begin_; }  // with a NUL behind it
  size_t length() const { return kCapacity - 1 - begin_; }

 private:
  static constexpr size_t kCapacity = 21;  // 2^64 - 1 has 20 digits
  char digits_[kCapacity] = {};
  size_t begin_ = kCapacity - 1;
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_DECIMAL_H_
