// Memory that a module of the demo holds, and an exact count of it.
//
// The blocks form a list whose links lie in the blocks themselves, so what is counted is all there is: bytes asked for,
// to the byte. Trivially destructible on purpose: the C++ runtime must not free anything when the JVM exits, the
// profile is read after that. Thread-safety: none; each module has one and one thread fills it.
//
// Example:
//   static HeldBlocks held;
//   while (held.bytes() < wanted) held.Hold(size);
#ifndef CADASTRE_TESTS_JVM_DEMO_HELD_BLOCKS_H_
#define CADASTRE_TESTS_JVM_DEMO_HELD_BLOCKS_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace demo {

class HeldBlocks {
 public:
  // Takes a block that the caller has allocated with `size` bytes, at least 16, by malloc or operator new.
  void Keep(void* block, uint64_t size) {
    memset(block, 0x5a, size);
    memcpy(block, &last_, sizeof(last_));
    last_ = block;
    bytes_ += size;
    blocks_++;
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t blocks() const { return blocks_; }

 private:
  void* last_ = nullptr;
  uint64_t bytes_ = 0, blocks_ = 0;
};

// Sizes of 100 B to 300 KB as programs have them: many small ones, most bytes in the large ones. xorshift64, Marsaglia
// 2003.
class MixedSizes {
 public:
  explicit MixedSizes(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t random = Random();
    uint64_t kind = random % 100, spread = random >> 32;
    if (kind < 70) return 100 + spread % 1900;
    if (kind < 95) return 2000 + spread % 30000;
    return 32000 + spread % 268001;
  }

 private:
  uint64_t Random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  uint64_t state_;
};

}  // namespace demo

#endif  // CADASTRE_TESTS_JVM_DEMO_HELD_BLOCKS_H_
