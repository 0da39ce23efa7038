// Each line of advice stands where its figures bear it, and only there: somebody will change a production setting
// because of it.
#include "report/ledger.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"

namespace cadastre {
namespace {

constexpr uint64_t kPage = 4096, kMiBytes = 1 << 20, kHeap = 0x10000000;

// A recorded process with one area that malloc serves, and what is said about it.
struct Case {
  testing::ProfileBuilder builder;
  ProcessMemory memory;
  uint32_t library;

  Case() {
    builder.header().allocator = builder.AddString("libc.so.6");
    library = builder.AddLibrary("/opt/app/libbilling.so");
  }
  uint32_t AddNativeSite(uint64_t address = 0x1000) {
    return builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, address)});
  }
  // `blocks` of a MiB each, side by side from kHeap.
  void AddBlocks(uint32_t site, uint64_t blocks, uint64_t weight = kMiBytes) {
    for (uint64_t i = 0; i < blocks; i++, next_ += kMiBytes) builder.AddSample(site, next_, kMiBytes, weight);
  }
  void AddArea(uint64_t start, uint64_t end, const char* name, uint64_t rss_bytes, uint64_t huge_bytes = 0) {
    MemoryArea area;
    area.start = start;
    area.end = end;
    area.name = name;
    area.readable = area.writable = true;
    area.rss_bytes = area.private_bytes = area.anonymous_bytes = rss_bytes;
    area.huge_bytes = huge_bytes;
    memory.areas.push_back(area);
  }
  std::vector<std::string> Advice() const {
    const std::string bytes = builder.Build();
    Profile profile = *ParseProfile("test.cad", bytes.data(), bytes.size());
    OwnerRules rules;
    Symbolizer symbolizer(profile, SymbolizerOptions{});
    Attribution attribution(profile, rules, &symbolizer);
    return BuildLedger(memory, {&profile, &attribution}).advice;
  }

 private:
  uint64_t next_ = kHeap;
};

bool Says(const std::vector<std::string>& advice, const char* words) {
  return advice.size() == 1 && advice[0].find(words) != std::string::npos;
}

TEST_CASE("Retention in glibc's arenas is advice where it is large, beyond its error and beside what is live",
          "[ledger_advice]") {
  Case large;
  large.AddBlocks(large.AddNativeSite(), 40);
  large.AddArea(kHeap, kHeap + 100 * kMiBytes, "[heap]", 100 * kMiBytes);
  large.memory.known = {{0x70000000, 0x74000000, KnownUse::kAllocator, 0, ""}};
  CHECK(Says(large.Advice(),
             "glibc keeps 60.0 MiB resident beyond 40.0 MiB that is live, in 2 heaps: MALLOC_ARENA_MAX=2 bounds them, "
             "malloc_trim(0) gives them back"));

  Case jvm = large;
  jvm.AddArea(0x7f0000000000, 0x7f0000001000, "/opt/jdk/lib/server/libjvm.so", kPage);
  jvm.memory.pid = 4242;
  CHECK(Says(jvm.Advice(), "jcmd 4242 System.trim_native_heap"));

  Case small = large;
  small.memory.areas[0].rss_bytes = 50 * kMiBytes;  // of each MiB half
  CHECK(small.Advice().empty());

  Case beside = large;  // 60 MiB are less than half of what is live
  beside.AddBlocks(beside.AddNativeSite(), 160);
  beside.memory.areas[0].end = kHeap + 260 * kMiBytes;
  beside.memory.areas[0].rss_bytes = 260 * kMiBytes;
  CHECK(beside.Advice().empty());

  Case unsure;  // 10 samples that stand for 4 MiB each: 40 MiB, and 11 MiB of error
  unsure.AddBlocks(unsure.AddNativeSite(), 10, 4 * kMiBytes);
  unsure.AddArea(kHeap, kHeap + 90 * kMiBytes, "[heap]", 90 * kMiBytes);
  CHECK(unsure.Advice().empty());

  Case other = large;
  other.builder.header().allocator = other.builder.AddString("libjemalloc.so.2");
  CHECK(other.Advice().empty());
}

TEST_CASE("Huge pages under stacks are advice where they make a good part of them resident", "[ledger_advice]") {
  Case huge;
  const uint32_t thread = huge.builder.AddThread("worker", 77);
  huge.builder.thread(thread).stack_low = 0x20000000;
  huge.builder.thread(thread).stack_high = 0x20800000;
  huge.memory.threads = {{77, "worker"}};
  huge.AddArea(0x20000000, 0x20800000, "", 8 * kMiBytes, 6 * kMiBytes);
  CHECK(Says(huge.Advice(), "6.00 MiB of the 8.00 MiB resident in 1 threads' stacks are transparent huge pages"));
  huge.memory.areas[0].huge_bytes = 2 * kMiBytes;
  CHECK(huge.Advice().empty());
}

TEST_CASE("A Java heap that is committed and was never touched is advice", "[ledger_advice]") {
  Case heap;
  heap.memory.known = {{0x40000000, 0x50000000, KnownUse::kJavaHeap, 0, ""}};
  heap.AddArea(0x40000000, 0x50000000, "", 56 * kMiBytes);
  CHECK(Says(heap.Advice(),
             "the Java heap is committed to 256 MiB and 56.0 MiB of it is resident: RSS may still grow "
             "by 200 MiB"));
  heap.memory.areas[0].rss_bytes = 200 * kMiBytes;
  CHECK(heap.Advice().empty());
}

TEST_CASE("Direct buffers that java.nio keeps for each thread are advice", "[ledger_advice]") {
  for (uint64_t blocks : {40, 30}) {
    Case nio;
    nio.AddBlocks(nio.builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, nio.library, 0x1000),
                                       nio.builder.JavaFrame("java.nio.ByteBuffer.allocateDirect"),
                                       nio.builder.JavaFrame("sun.nio.ch.Util.getTemporaryDirectBuffer"),
                                       nio.builder.JavaFrame("com.acme.ingest.Upload.send")}),
                  blocks);
    nio.AddArea(kHeap, kHeap + blocks * kMiBytes, "[heap]", blocks * kMiBytes);
    if (blocks == 40) CHECK(Says(nio.Advice(), "40.0 MiB are direct buffers that java.nio keeps for each thread"));
    if (blocks == 30) CHECK(nio.Advice().empty());
  }
}

TEST_CASE("Blocks that only the collector's threads free are advice", "[ledger_advice]") {
  struct Frees {
    uint32_t all, by_reaper;
    uint64_t blocks;
    bool advice;
  };
  // Nothing seen, too few, others free them too, too little memory; one helper among twenty is the same story.
  for (const Frees& frees : {Frees{40, 40, 50, true}, Frees{40, 38, 50, true}, Frees{0, 0, 50, false},
                             Frees{9, 9, 50, false}, Frees{40, 37, 50, false}, Frees{40, 40, 31, false}}) {
    Case java;
    const uint32_t site = java.builder.AddSite({java.builder.JavaFrame("com.acme.billing.InvoicePdf.compress")});
    java.builder.site(site).frees = frees.all;
    java.builder.site(site).frees_by_reaper = frees.by_reaper;
    java.AddBlocks(site, frees.blocks);
    java.AddBlocks(java.AddNativeSite(0x2000), 50);  // somebody else's, and in no sentence
    java.AddArea(kHeap, kHeap + (frees.blocks + 50) * kMiBytes, "[heap]", (frees.blocks + 50) * kMiBytes);
    INFO(frees.all << " frees, " << frees.by_reaper << " by reapers, " << frees.blocks << " blocks");
    CHECK(java.Advice().size() == (frees.advice ? 1u : 0u));
    if (frees.by_reaper == 40 && frees.advice)
      CHECK(Says(java.Advice(),
                 "50.0 MiB of com.acme.billing wait for the garbage collector: of 40 sampled blocks that "
                 "the same code has freed, Finalizer and Cleaner threads freed 40"));
  }
}

}  // namespace
}  // namespace cadastre
