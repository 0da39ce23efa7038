// Writes the blocks of a packed profile (packed_profile.h), one after another, from records as they are read.
//
// Memory: one block, 16 bytes for each site, and up to 18 MiB of live samples, which are sorted. Errors: kept; the
// first one is what Finish returns, and nothing is written behind it. Thread-safety: not thread-safe.
//
// Example:
//   PackedWriter out(descriptor, "pay.cad", Effort::kThorough);
//   out.Begin(header, strings, bytes);
//   out.Add(format::kRegionLive, offset_in_region, records, bytes);   // whole records of it, ascending
//   out.Add(format::kRegionSites, ...);
//   out.AddStacks([&](uint64_t first, uint64_t count, uint64_t* words) { return ReadWords(...); }, words_in_region);
//   absl::Status status = out.Finish(&header);   // it has become a packed one
#ifndef CADASTRE_SYMBOLIZER_PACKED_WRITER_H_
#define CADASTRE_SYMBOLIZER_PACKED_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "interposer/profile_format.h"
#include "symbolizer/column_text.h"
#include "symbolizer/packed_codec.h"
#include "symbolizer/packed_profile.h"
#include "symbolizer/stack_columns.h"

namespace cadastre {

class PackedWriter {
 public:
  // Where everything behind the header and the raw strings goes. `path` is for messages. `effort` is for the first
  // megabytes, which few profiles exceed; a snapshot of a process that goes on shall be of a moment: kMiddling.
  PackedWriter(int descriptor, std::string path, Effort effort);
  PackedWriter(const PackedWriter&) = delete;
  PackedWriter& operator=(const PackedWriter&) = delete;

  // Before anything else. `header` as it is before sites are read; the start of the strings region, `bytes` of it, as
  // far as exe, host and options need it.
  void Begin(const format::Header& header, const char* strings, uint64_t bytes);

  // A piece of a region: whole records, or pages. Zeros take no room. Sites are remembered for AddStacks. Live samples
  // lose their places: they come back in order of address, from the region's first record on.
  void Add(uint32_t region, uint64_t offset, const char* bytes, uint64_t count);

  // The frames of all sites that were added. `read` fills `words` with `count` words of the region from `first` on;
  // false: they are not to be had, and left out.
  using ReadWords = absl::FunctionRef<bool(uint64_t first, uint64_t count, uint64_t* words)>;
  void AddStacks(ReadWords read, uint64_t words_in_region);

  // What was added since the mark is taken back.
  struct Mark {
    uint64_t offset, blocks;
    size_t stacks;
  };
  Mark Now();
  void BackTo(const Mark& mark);

  // Ends the file and writes the header, which becomes a packed one.
  absl::Status Finish(format::Header* header);

 private:
  void AddPlain(uint32_t region, uint64_t offset, const char* bytes, uint64_t count);
  void AddLive(const char* records, uint64_t count);
  void WriteLive();
  void AddSites(uint64_t first, const char* records, uint64_t count);
  void WriteRecords(uint32_t region, uint64_t first, const char* records, uint64_t count);
  void AddStackBlock(absl::Span<const StackPlace> stacks, ReadWords read);
  void Write(PackedBlock block);  // of columns_
  void WriteAt(uint64_t offset, const char* bytes, uint64_t count);

  int descriptor_;
  std::string path_;
  uint64_t packed_offset_ = sizeof(format::Header), offset_ = packed_offset_;
  uint64_t blocks_ = 0;
  uint64_t text_bytes_ = 0;               // compressed so far
  std::vector<format::LiveRecord> live_;  // not written yet
  uint64_t live_written_ = 0;
  uint64_t peak_epoch_ = 0;
  std::vector<StackPlace> stacks_;
  ColumnText columns_;
  std::string packed_;
  const Effort effort_;
  BlockCompressor compressor_;
  absl::Status status_;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PACKED_WRITER_H_
