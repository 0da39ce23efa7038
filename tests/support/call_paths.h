// Allocations from many places: step(way, depth, bytes) reaches malloc by one of 2^depth call paths, the one that the
// bits of `way` say. For C programs that are recorded; compile without sibling calls.
#ifndef CADASTRE_TESTS_SUPPORT_CALL_PATHS_H_
#define CADASTRE_TESTS_SUPPORT_CALL_PATHS_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define NI __attribute__((noinline))
static NI void* left(uint32_t way, int depth, size_t bytes);
static NI void* right(uint32_t way, int depth, size_t bytes);
static NI void* step(uint32_t way, int depth, size_t bytes) {
  void* volatile block = depth == 0 ? malloc(bytes)
                         : way & 1  ? left(way >> 1, depth - 1, bytes)
                                    : right(way >> 1, depth - 1, bytes);
  return block;
}
static NI void* left(uint32_t way, int depth, size_t bytes) {
  void* volatile block = step(way, depth, bytes);
  return block;
}
static NI void* right(uint32_t way, int depth, size_t bytes) {
  void* volatile block = step(way, depth, bytes);
  return block;
}

#endif  // CADASTRE_TESTS_SUPPORT_CALL_PATHS_H_
