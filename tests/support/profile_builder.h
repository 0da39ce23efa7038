// Composes a valid profile file in memory, record by record, so that tests can state exactly what is in one (and break
// it).
//
// Units: as in interposer/profile_format.h. Indices are the file's: the first library, thread and string have index 1
// or more; site 1 is "[stack table full]" and is always there. Errors: none; a builder is for tests, and what it is
// told it writes. Thread-safety: none.
//
// Example:
//   ProfileBuilder builder;
//   uint32_t library = builder.AddLibrary("/usr/lib/libbilling.so", "aabbcc");
//   uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1234)});
//   builder.AddSample(site, /*address=*/0x7f0000001000, /*size=*/100, /*weight=*/512 * 1024);
//   builder.WriteTo("/tmp/x.cad");      // or: std::string bytes = builder.Build();
#ifndef CADASTRE_TESTS_SUPPORT_PROFILE_BUILDER_H_
#define CADASTRE_TESTS_SUPPORT_PROFILE_BUILDER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "interposer/profile_format.h"

namespace cadastre::testing {

class ProfileBuilder {
 public:
  // A finished process (Outcome: exit 0), interval 512 KiB, started 2026-01-01T00:00:00Z, run time 100 s.
  ProfileBuilder();

  // Everything in the header may be changed before Build, except regions and file_bytes, which Build fills.
  format::Header& header() { return header_; }

  uint32_t AddString(std::string_view bytes);  // interned, as the target's are
  // build_id_hex: lower-case hex, at most 64 digits, may be empty. bias 0, [start, end) = [0x7f0000000000 + index MiB,
  // + 1 MiB).
  uint32_t AddLibrary(std::string_view path, std::string_view build_id_hex = "");
  uint32_t AddThread(std::string_view name, uint32_t tid = 1000);
  uint32_t AddSite(const std::vector<uint64_t>& frames, format::SiteKind kind = format::kSiteMalloc,
                   uint32_t flags = 0);
  uint64_t JavaFrame(std::string_view method, uint32_t line = 0);

  // A live block; nothing else changes. Returns its index.
  uint32_t AddLive(uint32_t site, uint64_t address, uint64_t size, uint64_t weight, uint64_t time_ns = 1'000'000'000,
                   uint32_t thread = 0);
  uint32_t AddMapping(uint32_t site, uint64_t start, uint64_t end, uint32_t flags, uint64_t time_ns = 1'000'000'000,
                      uint32_t thread = 0);
  // Adds to the allocation counters of a site, and to Header::counters.samples: blocks that were allocated (and maybe
  // freed).
  void AddAllocated(uint32_t site, uint64_t samples, double blocks, uint64_t bytes, double variance);
  // One sampled block that is still live: AddAllocated + AddLive, and the site's and the header's live and peak values.
  void AddSample(uint32_t site, uint64_t address, uint64_t size, uint64_t weight, uint64_t time_ns = 1'000'000'000,
                 uint32_t thread = 0);
  // A thread buffer with these deltas pending. `tail` is where its ring begins.
  uint32_t AddBuffer(const std::vector<format::Delta>& pending, uint32_t tail = 0);

  // The records themselves, for tests that bend them. References stay valid while records are added.
  format::LibraryRecord& library(uint32_t index) { return libraries_[index]; }
  format::ThreadRecord& thread(uint32_t index) { return threads_[index]; }
  format::SiteRecord& site(uint32_t index) { return sites_[index]; }
  format::LiveRecord& live(uint32_t index) { return live_[index]; }
  format::MappingRecord& mapping(uint32_t index) { return mappings_[index]; }
  format::BufferRecord& buffer(uint32_t index) { return buffers_[index]; }

  // A snapshot's: symbolizer/process_block's bytes.
  void set_process_block(std::string block) { process_block_ = std::move(block); }

  // Capacity of each region beyond what is used, in pages of zeros (holes in a real file).
  void set_spare_pages(uint64_t pages) { spare_pages_ = pages; }

  std::string Build() const;
  bool WriteTo(const std::string& path) const;  // mode 0600; false: could not

 private:
  format::Header header_{};
  std::string strings_;
  std::map<std::string, uint32_t> string_indices_;
  std::deque<format::LibraryRecord> libraries_;
  std::deque<format::ThreadRecord> threads_;
  std::deque<format::BufferRecord> buffers_;
  std::deque<format::SiteRecord> sites_;
  std::vector<uint64_t> frames_;
  std::deque<format::LiveRecord> live_;
  std::deque<format::MappingRecord> mappings_;
  uint64_t spare_pages_ = 0;
  std::string process_block_;
};

}  // namespace cadastre::testing

#endif  // CADASTRE_TESTS_SUPPORT_PROFILE_BUILDER_H_
