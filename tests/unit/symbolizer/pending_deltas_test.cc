// A process may be killed between any two stores of applying a delta; every counter must come out right all the same.
// The test does what the writer does, step by step, and reads after each step.
#include "symbolizer/pending_deltas.h"

#include <cstring>
#include <functional>
#include <vector>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

using format::BufferRecord;
using format::Delta;
using format::SiteRecord;

SiteRecord Total(const SiteRecord& site, const BufferRecord& buffer, uint64_t* torn = nullptr) {
  SiteRecord total = site;
  uint64_t count = ForEachPendingDelta(
      buffer, [&](uint32_t index) { return index == 2 ? &site : nullptr; },
      [&](const Delta& delta) {
        total.samples += delta.samples;
        total.count_fixed += delta.count_fixed;
        total.allocated_bytes += delta.bytes;
        total.allocated_variance += delta.variance;
      });
  if (torn != nullptr) *torn = count;
  return total;
}

TEST_CASE("A kill between any two stores of the writer loses and doubles nothing", "[pending_deltas]") {
  // Also around the end of the ring and of the counters; deltas one by one (0: as they were before runs), and as a run.
  for (auto [start, run] : {std::pair{0u, 0u}, {27u, 1u}, {0xfffffffeu, 1u}, {0u, 2u}, {28u, 2u}, {0xffffffffu, 2u}}) {
    SiteRecord site{};
    site.samples = 10;
    site.count_fixed = 20;
    site.allocated_bytes = 30;
    site.allocated_variance = 40;
    BufferRecord buffer{};
    buffer.state = format::kReady;
    buffer.tail = start;
    buffer.head = start + 2;
    for (uint32_t i = 0; i < 2; i++) buffer.deltas[(start + i) % format::kBufferDeltas] = {2, 1, 65536, 4096, 0.5};

    auto check = [&] {
      SiteRecord total = Total(site, buffer);
      REQUIRE(total.samples == 12);
      REQUIRE(total.count_fixed == 20 + 2 * 65536);
      REQUIRE(total.allocated_bytes == 30 + 2 * 4096);
      REQUIRE(total.allocated_variance == 41);
    };
    check();
    while (buffer.tail != buffer.head) {
      const uint32_t deltas = run == 2 ? 2 : 1;
      Delta delta = buffer.deltas[buffer.tail % format::kBufferDeltas];
      delta.samples *= deltas;
      delta.count_fixed *= deltas;
      delta.bytes *= deltas;
      delta.variance *= deltas;
      buffer.redo.tail = buffer.tail;
      check();
      buffer.redo.run = run;
      check();
      for (uint32_t field = 0; field < format::kDeltaFields; field++) {
        uint64_t bits;
        memcpy(&bits, &site.allocated_variance, 8);
        uint64_t old_value = field == 0   ? site.samples
                             : field == 1 ? site.count_fixed
                             : field == 2 ? site.allocated_bytes
                                          : bits;
        buffer.redo.old_value = old_value;
        check();
        buffer.redo.field = field;
        check();
        buffer.redo.armed = 1;
        check();
        if (field == 0) site.samples += delta.samples;
        if (field == 1) site.count_fixed += delta.count_fixed;
        if (field == 2) site.allocated_bytes += delta.bytes;
        if (field == 3) site.allocated_variance += delta.variance;
        check();
      }
      buffer.tail += deltas;
      check();
      buffer.redo.armed = 0;
      check();
    }
  }
}

TEST_CASE("Damaged buffers and deltas are counted and add nothing", "[pending_deltas]") {
  SiteRecord site{};
  uint64_t torn = 0;
  BufferRecord buffer{};
  buffer.head = format::kBufferDeltas + 1;
  CHECK(Total(site, buffer, &torn).samples == 0);
  CHECK(torn == 1);

  buffer = {};
  buffer.head = 3;
  buffer.deltas[0] = {7, 1, 1, 1, 0};  // no such site
  buffer.deltas[1] = {2, 1, 1, 1, -1};
  buffer.deltas[2] = {2, 1, 1, 1, 0};
  CHECK(Total(site, buffer, &torn).samples == 1);
  CHECK(torn == 2);

  buffer = {};
  buffer.head = 1;
  buffer.deltas[0] = {2, 1, 1, 1, 0};
  buffer.redo.armed = 1;
  buffer.redo.field = 99;
  CHECK(Total(site, buffer, &torn).samples == 0);
  CHECK(torn == 1);
  buffer.redo.field = 1;
  buffer.redo.run = 2;  // more than there are
  CHECK(Total(site, buffer, &torn).samples == 0);
  CHECK(torn == 1);
  buffer.head = 2;
  buffer.deltas[1] = {3, 1, 1, 1, 0};  // of another site
  CHECK(Total(site, buffer, &torn).samples == 0);
  CHECK(torn == 1);
}

}  // namespace
}  // namespace cadastre
