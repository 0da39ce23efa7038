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

TEST_CASE("A kill between any two stores of a writer of runs loses and doubles nothing", "[pending_deltas]") {
  // As files have it that were written before sites were applied together: deltas one by one (0: without a run), and as
  // a run. Also around the end of the ring and of the counters.
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
      buffer.redo.places = run;
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

TEST_CASE("A kill between any two stores of the writer loses and doubles nothing", "[pending_deltas]") {
  for (uint32_t start : {0u, 27u, 0xfffffffdu}) {
    SiteRecord sites[2] = {};
    BufferRecord buffer{};
    // The one before left its redo word and all its bits.
    buffer.redo.tail = start - format::kBufferDeltas;
    buffer.applied = (1u << format::kBufferDeltas) - 1;
    buffer.tail = start;
    buffer.head = start + 5;
    const uint32_t order[] = {0, 1, 0, 0, 1};
    for (uint32_t i = 0; i < 5; i++)
      buffer.deltas[(start + i) % format::kBufferDeltas] = {order[i], 1 + order[i], 65536, 4096 * (i + 1), 0.5};

    auto check = [&] {
      SiteRecord totals[2] = {sites[0], sites[1]};
      uint64_t torn = ForEachPendingDelta(
          buffer, [&](uint32_t index) { return &sites[index]; },
          [&](const Delta& delta) {
            totals[delta.site].samples += delta.samples;
            totals[delta.site].count_fixed += delta.count_fixed;
            totals[delta.site].allocated_bytes += delta.bytes;
            totals[delta.site].allocated_variance += delta.variance;
          });
      REQUIRE(torn == 0);
      REQUIRE(totals[0].samples == 3);
      REQUIRE(totals[1].samples == 4);
      REQUIRE(totals[0].count_fixed == 3 * 65536);
      REQUIRE(totals[0].allocated_bytes == 4096 * (1 + 3 + 4));
      REQUIRE(totals[1].allocated_bytes == 4096 * (2 + 5));
      REQUIRE(totals[0].allocated_variance == 1.5);
      REQUIRE(totals[1].allocated_variance == 1);
    };
    check();
    buffer.applied = 0;
    check();
    buffer.redo.tail = start;
    check();
    const Delta sums[] = {{0, 3, 3 * 65536, 4096 * 8, 1.5}, {1, 4, 2 * 65536, 4096 * 7, 1}};
    for (uint32_t i = 0; i < 2; i++) {
      SiteRecord& site = sites[i];
      const uint32_t places = i == 0 ? 0b01101 : 0b10010;
      buffer.redo.places = format::kRedoPlaces | places;
      check();
      for (uint32_t field = 0; field < format::kDeltaFields; field++) {
        uint64_t bits;
        memcpy(&bits, &site.allocated_variance, 8);
        const uint64_t values[] = {site.samples, site.count_fixed, site.allocated_bytes, bits};
        buffer.redo.old_value = values[field];
        check();
        buffer.redo.field = field;
        check();
        buffer.redo.armed = 1;
        check();
        if (field == 0) site.samples += sums[i].samples;
        if (field == 1) site.count_fixed += sums[i].count_fixed;
        if (field == 2) site.allocated_bytes += sums[i].bytes;
        if (field == 3) site.allocated_variance += sums[i].variance;
        check();
      }
      buffer.applied |= places;
      check();
      buffer.redo.armed = 0;
      check();
    }
    buffer.tail = buffer.head;
    check();
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
  buffer.redo.places = 2;  // more than there are
  CHECK(Total(site, buffer, &torn).samples == 0);
  CHECK(torn == 1);
  buffer.head = 2;
  buffer.deltas[1] = {3, 1, 1, 1, 0};  // of another site
  CHECK(Total(site, buffer, &torn).samples == 0);
  CHECK(torn == 1);
}

}  // namespace
}  // namespace cadastre
