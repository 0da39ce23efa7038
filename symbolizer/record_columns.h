// Records of a profile field by field, so that what is alike lies together: of 5,000 live samples first all sites, then
// all addresses as differences, and so on. Compressed afterwards this is a fraction of the records' own compressed
// size.
//
// Only what a reader looks at is kept: free records are left out, the generation of a state and the hash of a site are
// 0 when they come back. Kinds with columns: sites, live samples, mappings. Units: records, by index. Errors:
// DecodeRecords is false for what cannot be, and then wrote nothing beyond `count` records. Thread-safety: pure
// functions.
//
// Example:
//   std::string text;
//   EncodeRecords(format::kRegionLive, bytes, count, &text);
//   std::vector<char> again(count * sizeof(format::LiveRecord));   // zeros
//   bool whole = DecodeRecords(format::kRegionLive, text, again.data(), count);
#ifndef CADASTRE_SYMBOLIZER_RECORD_COLUMNS_H_
#define CADASTRE_SYMBOLIZER_RECORD_COLUMNS_H_

#include <cstdint>
#include <string>

#include "interposer/profile_format.h"

namespace cadastre {

// 0 = of a kind that has no columns.
uint64_t RecordBytesOf(uint32_t kind);

// Appends to `text`. False: none of the records is in use, and nothing was appended.
bool EncodeRecords(uint32_t kind, const char* records, uint64_t count, std::string* text);

// `records` has room for `count` records and is all zeros.
bool DecodeRecords(uint32_t kind, const std::string& text, char* records, uint64_t count);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_RECORD_COLUMNS_H_
