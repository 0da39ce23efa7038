// What the tests of jvm/ need that make pieces of a JVM's memory by hand.
#ifndef CADASTRE_TESTS_UNIT_INTERPOSER_MADE_BY_HAND_H_
#define CADASTRE_TESTS_UNIT_INTERPOSER_MADE_BY_HAND_H_

#include <cstddef>
#include <cstdint>

namespace cadastre {

// offsetof as VmLayout has it.
constexpr int32_t Offset(size_t offset) { return static_cast<int32_t>(offset); }

inline uint64_t Address(const void* object) { return reinterpret_cast<uint64_t>(object); }

}  // namespace cadastre

#endif  // CADASTRE_TESTS_UNIT_INTERPOSER_MADE_BY_HAND_H_
