// Reads another process's memory from outside, and what its allocator's and its JVM's own structures say about where
// things lie.
//
// Nothing is stopped and nothing is written: what is read may change meanwhile, so everything is checked before it is
// believed. Where the kernel does not allow it (it asks for the right to ptrace) there is nothing to be had, and the
// ledger says less. Errors: empty results. Thread-safety: reads files.
//
// Example: std::vector<KnownRange> known = LookIntoProcess(4242, areas);
#ifndef CADASTRE_REPORT_TARGET_MEMORY_H_
#define CADASTRE_REPORT_TARGET_MEMORY_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbolizer/process_memory.h"

namespace cadastre {

class TargetMemory {
 public:
  explicit TargetMemory(pid_t pid) : pid_(pid) {}
  bool Read(uint64_t address, void* to, size_t bytes) const;
  template <typename Value>
  std::optional<Value> Get(uint64_t address) const {
    Value value;
    return Read(address, &value, sizeof(value)) ? std::optional<Value>(value) : std::nullopt;
  }
  std::string Text(uint64_t address, size_t limit) const;  // NUL-terminated; "" if it cannot be read

 private:
  pid_t pid_;
};

// glibc: heaps of arenas other than the main one (64 MiB-aligned, with a header), and big blocks that have a mapping of
// their own (with the header of a chunk that says so).
std::vector<KnownRange> FindAllocatorHeaps(const TargetMemory& memory, const std::vector<MemoryArea>& areas);

// What the allocator's own structures say of it, as mallinfo2() would: glibc's alone (target_glibc.cc). Others' have no
// names that a stripped library exports, and to ask them runs their code, which takes their locks.
AllocatorState ReadAllocatorState(const TargetMemory& memory, const std::vector<MemoryArea>& areas);

// HotSpot: the Java heap's reservation, the bounds of the code cache, the collector's card table, and the areas in
// which classes and their constant pools lie, by the tables that libjvm.so exports (target_jvm.cc). Empty without a
// JVM.
std::vector<KnownRange> FindJvmRanges(const TargetMemory& memory, const std::vector<MemoryArea>& areas);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_TARGET_MEMORY_H_
