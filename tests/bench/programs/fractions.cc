// Continued fractions of square roots, by numbers of any length: each step makes a few small blocks that live for a
// statement or two, as programs do that compute with big numbers (cfrac is the best known of them).
// fractions ROUNDS THREADS: each round expands one square root to 60 terms.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int kTerms = 60;

struct Number {
  uint32_t length;
  uint32_t digits[];  // base 2^32, the lowest first
};

struct Free {
  void operator()(Number* number) const { free(number); }
};
using Owned = std::unique_ptr<Number, Free>;

Owned Make(uint32_t length) {
  auto* number = static_cast<Number*>(malloc(sizeof(Number) + length * sizeof(uint32_t)));
  if (number == nullptr) abort();
  number->length = length;
  return Owned(number);
}

Owned Of(uint32_t value) {
  Owned number = Make(1);
  number->digits[0] = value;
  return number;
}

Owned Finished(Owned number, uint64_t carry) {
  if (carry != 0) {
    number->digits[number->length - 1] = static_cast<uint32_t>(carry);
  } else {
    number->length--;
  }
  return number;
}

Owned Sum(const Number& a, const Number& b) {
  const Number& longer = a.length >= b.length ? a : b;
  const Number& shorter = a.length >= b.length ? b : a;
  Owned sum = Make(longer.length + 1);
  uint64_t carry = 0;
  for (uint32_t i = 0; i < longer.length; i++) {
    carry += static_cast<uint64_t>(longer.digits[i]) + (i < shorter.length ? shorter.digits[i] : 0);
    sum->digits[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  return Finished(std::move(sum), carry);
}

Owned Product(const Number& a, uint32_t factor) {
  Owned product = Make(a.length + 1);
  uint64_t carry = 0;
  for (uint32_t i = 0; i < a.length; i++) {
    carry += static_cast<uint64_t>(a.digits[i]) * factor;
    product->digits[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  return Finished(std::move(product), carry);
}

uint32_t Remainder(const Number& a, uint32_t divisor) {
  uint64_t rest = 0;
  for (uint32_t i = a.length; i > 0; i--) rest = ((rest << 32) | a.digits[i - 1]) % divisor;
  return static_cast<uint32_t>(rest);
}

// The numerators of sqrt(n)'s convergents: each is the term times the one before plus the one before that.
uint32_t Expand(uint64_t n, uint64_t root) {
  uint64_t m = 0, d = 1, term = root;
  Owned before = Of(1), numerator = Of(static_cast<uint32_t>(root));
  uint32_t sum = 0;
  for (int i = 0; i < kTerms; i++) {
    m = d * term - m;
    d = (n - m * m) / d;
    if (d == 0) break;  // a square
    term = (root + m) / d;
    Owned next = Sum(*Product(*numerator, static_cast<uint32_t>(term)), *before);
    before = std::exchange(numerator, std::move(next));
    sum += Remainder(*numerator, 1'000'003);
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int rounds = atoi(argv[1]), threads = atoi(argv[2]);
  std::vector<uint32_t> sums(static_cast<size_t>(threads));
  std::vector<std::thread> all;
  for (size_t t = 0; t < sums.size(); t++) {
    all.emplace_back([&, t] {
      uint64_t root = 31'622;
      for (int i = 0; i < rounds; i++) {
        const uint64_t n = 1'000'000'007 + 2 * static_cast<uint64_t>(i) + t;
        while ((root + 1) * (root + 1) <= n) root++;
        sums[t] += Expand(n, root);
      }
    });
  }
  uint32_t sum = 0;
  for (size_t t = 0; t < sums.size(); t++) {
    all[t].join();
    sum += sums[t];
  }
  printf("%u\n", sum);
  return 0;
}
