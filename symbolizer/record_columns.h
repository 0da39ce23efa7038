// Records of a profile field by field, so that what is alike lies together: of 5,000 live samples first all sites, then
// all sizes, and so on. Compressed afterwards this is a fraction of the records' own compressed size.
//
// Only what a reader looks at is kept: free records are left out, the generation of a state and the hash of a site are
// 0 when they come back. Kinds with columns: sites, live samples, mappings. Live samples take least where they ascend
// by address: then most of them begin where the one before ends. Units: records, by index. Errors: DecodeRecords is
// false for what cannot be, and then wrote nothing beyond `count` records. Thread-safety: pure functions.
//
// Text: varint count of the records in use, for each how many free ones lie before it, then a column for each field in
// the order of the tables in record_columns.cc. A field that is numbered is two columns: how many distinct values there
// are and these, ascending, as differences; then the numbers of them. A field that is told in units is two columns:
// what is left of each, then the whole units.
//
// Example:
//   ColumnText columns;
//   EncodeRecords(format::kRegionLive, bytes, count, &columns);
//   std::vector<char> again(count * sizeof(format::LiveRecord));   // zeros
//   bool whole = DecodeRecords(format::kPackedVersion, format::kRegionLive, columns.text, again.data(), count);
#ifndef CADASTRE_SYMBOLIZER_RECORD_COLUMNS_H_
#define CADASTRE_SYMBOLIZER_RECORD_COLUMNS_H_

#include <cstdint>
#include <string>

#include "interposer/profile_format.h"
#include "symbolizer/column_text.h"

namespace cadastre {

// 0 = of a kind that has no columns.
uint64_t RecordBytesOf(uint32_t kind);

// Appends to `columns`. False: none of the records is in use, and nothing was appended.
bool EncodeRecords(uint32_t kind, const char* records, uint64_t count, ColumnText* columns);

// `records` has room for `count` records and is all zeros.
// `version` is the file's (format::IsPackedVersion).
bool DecodeRecords(uint32_t version, uint32_t kind, const std::string& text, char* records, uint64_t count);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_RECORD_COLUMNS_H_
