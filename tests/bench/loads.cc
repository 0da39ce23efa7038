// Loads that an allocator and whatever is preloaded before it meet in programs; tests/bench/loads_bench.py compares
// ways to run them.
//
// One iteration is one pair of an allocation and its free, unless a load says otherwise. Built without the compiler's
// knowledge of malloc, which would drop pairs.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace {

uint64_t Next(uint64_t* random) {  // xorshift64
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random;
}

void Pair(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* block = malloc(bytes);
    benchmark::DoNotOptimize(block);
    free(block);
  }
}
BENCHMARK(Pair)->Arg(16)->Arg(64)->Arg(512)->Arg(4096)->Arg(32768)->UseRealTime();
BENCHMARK(Pair)->Name("PairOnTwoThreads")->Arg(64)->Threads(2)->UseRealTime();

// A program at rest: 100,000 blocks of 16 to 1,039 bytes, each replaced by one of another size at random.
void RandomReplacement(benchmark::State& state) {
  constexpr size_t kBlocks = 100'000;
  std::vector<void*> blocks(kBlocks);
  uint64_t random = 88172645463325252ull + static_cast<uint64_t>(state.thread_index());
  for (void*& block : blocks) block = malloc(16 + Next(&random) % 1024);
  for (auto _ : state) {
    void*& block = blocks[Next(&random) % kBlocks];
    free(block);
    block = malloc(16 + Next(&random) % 1024);
    memset(block, 1, 16);
  }
  for (void* block : blocks) free(block);
}
// As many for each way: what an iteration costs depends on how far the heap has fallen apart.
constexpr int kReplacements = 1'000'000;
BENCHMARK(RandomReplacement)->Iterations(kReplacements)->UseRealTime();
BENCHMARK(RandomReplacement)
    ->Name("RandomReplacementOnTwoThreads")
    ->Iterations(kReplacements)
    ->Threads(2)
    ->UseRealTime();

// One thread allocates, another frees: 4,096 blocks handed over at a time. An iteration is one such batch.
void HandedOver(benchmark::State& state) {
  constexpr size_t kBatch = 4096;
  std::vector<void*> batch(kBatch);
  std::atomic<int> turn{0};  // 0: to be filled, 1: to be freed, 2: the end
  std::thread consumer([&] {
    for (int now; (now = turn.load(std::memory_order_acquire)) != 2;) {
      if (now == 0) {
        std::this_thread::yield();
        continue;
      }
      for (void* block : batch) free(block);
      turn.store(0, std::memory_order_release);
    }
  });
  for (auto _ : state) {
    for (void*& block : batch) block = malloc(64);
    turn.store(1, std::memory_order_release);
    while (turn.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }
  turn.store(2, std::memory_order_release);
  consumer.join();
}
BENCHMARK(HandedOver)->UseRealTime();

// A buffer that grows by a half at a time from 64 bytes to over 1 MiB. An iteration is the whole growth.
void Growth(benchmark::State& state) {
  for (auto _ : state) {
    void* block = nullptr;
    for (size_t bytes = 64; bytes < (1u << 20); bytes += bytes / 2) {
      block = realloc(block, bytes);
      benchmark::DoNotOptimize(block);
    }
    free(block);
  }
}
BENCHMARK(Growth)->UseRealTime();

// Threads that live for a hundred pairs. An iteration is one thread.
void ThreadChurn(benchmark::State& state) {
  for (auto _ : state) {
    std::thread([] {
      for (int i = 0; i < 100; i++) {
        void* block = malloc(64);
        benchmark::DoNotOptimize(block);
        free(block);
      }
    }).join();
  }
}
BENCHMARK(ThreadChurn)->UseRealTime();

// Large blocks, each sampled: 1 MiB is over any interval, and the allocator may map it.
void Large(benchmark::State& state) {
  for (auto _ : state) {
    auto* block = static_cast<char*>(malloc(1 << 20));
    benchmark::DoNotOptimize(block);
    *block = 1;
    free(block);
  }
}
BENCHMARK(Large)->UseRealTime();

void MappingChurn(benchmark::State& state) {
  constexpr size_t kBytes = 64 * 1024;
  for (auto _ : state) {
    void* mapping = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
      state.SkipWithError("mmap failed");
      break;
    }
    *static_cast<volatile char*>(mapping) = 1;
    munmap(mapping, kBytes);
  }
}
BENCHMARK(MappingChurn)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
