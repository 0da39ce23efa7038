#include "report/heap_classes.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/text_file.h"
#include "report/text_table.h"
#include "symbolizer/csv_reader.h"
#include "symbolizer/owner_rules.h"

namespace cadastre {
namespace {

using TakeClass = std::function<absl::Status(std::string_view, uint64_t)>;

constexpr char kHeaderHint[] = "class,retained_bytes";
constexpr size_t kPeekBytes = 4096;  // the histogram's headings stand behind a line or two

bool ParseBytes(const std::string& text, uint64_t* bytes) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && absl::SimpleAtoi(text, bytes);
}

std::string NotBytes(const std::string& text) {
  return absl::StrCat("\"", SafeText(text.substr(0, 40)), "\" is not a number of bytes, a whole number below 2^64");
}

// One record after the other of a table.
class TableParser {
 public:
  TableParser(const std::string& file, const TakeClass& take) : file_(file), take_(take) {}

  absl::Status Take(const CsvRecord& record) {
    if (class_at_ < 0) return TakeHeader(record);
    for (int at : {class_at_, bytes_at_}) {
      if (at >= static_cast<int>(record.fields.size()))
        return CsvError(file_, record.end_line, record.end_column, absl::StrCat("missing column '", NameOf(at), "'"));
    }
    if (record.fields.size() > columns_) {
      const CsvField& extra = record.fields[columns_];
      return CsvError(file_, extra.line, extra.column,
                      absl::StrCat(record.fields.size(), " columns; the header names ", columns_));
    }
    const CsvField& name = record.fields[static_cast<size_t>(class_at_)];
    if (name.text.empty()) return CsvError(file_, name.line, name.column, "empty class");
    const CsvField& number = record.fields[static_cast<size_t>(bytes_at_)];
    uint64_t bytes = 0;
    if (!ParseBytes(number.text, &bytes)) return CsvError(file_, number.line, number.column, NotBytes(number.text));
    absl::Status status = take_(name.text, bytes);
    return status.ok() ? status : CsvError(file_, number.line, number.column, std::string(status.message()));
  }

  absl::StatusOr<HeapClasses> Finish() const {
    if (class_at_ < 0) return CsvError(file_, 1, 1, absl::StrCat("missing header line: ", kHeaderHint));
    return HeapClasses{measure_, ""};
  }

 private:
  std::string NameOf(int at) const {
    return at == class_at_ ? "class" : measure_ == HeapMeasure::kRetained ? "retained_bytes" : "shallow_bytes";
  }

  absl::Status TakeHeader(const CsvRecord& record) {
    int retained_at = -1, shallow_at = -1, name_at = -1;
    for (size_t i = 0; i < record.fields.size(); i++) {
      const CsvField& field = record.fields[i];
      int* at = field.text == "class"            ? &name_at
                : field.text == "retained_bytes" ? &retained_at
                : field.text == "shallow_bytes"  ? &shallow_at
                                                 : nullptr;
      if (at == nullptr) continue;
      if (*at >= 0)
        return CsvError(file_, field.line, field.column, absl::StrCat("column '", field.text, "' appears twice"));
      *at = static_cast<int>(i);
    }
    if (name_at < 0 || (retained_at < 0 && shallow_at < 0)) {
      return CsvError(file_, record.line, 1,
                      absl::StrCat("the first line must name the columns ", kHeaderHint,
                                   " (or shallow_bytes), or the file be a histogram of jcmd GC.class_histogram"));
    }
    measure_ = retained_at >= 0 ? HeapMeasure::kRetained : HeapMeasure::kShallow;
    class_at_ = name_at;
    bytes_at_ = retained_at >= 0 ? retained_at : shallow_at;
    columns_ = record.fields.size();
    return absl::OkStatus();
  }

  const std::string& file_;
  const TakeClass& take_;
  HeapMeasure measure_ = HeapMeasure::kRetained;
  int class_at_ = -1, bytes_at_ = -1;
  size_t columns_ = 0;
};

absl::StatusOr<HeapClasses> ReadTable(const std::string& path, TextFile* file, const TakeClass& take) {
  TableParser parser(path, take);
  CsvReader reader(path, kMaxLineBytes, [&](const CsvRecord& record) { return parser.Take(record); });
  while (file->Next()) {
    for (std::string_view part : {file->line(), std::string_view("\n")}) {
      if (absl::Status status = reader.Feed(part); !status.ok()) return status;
    }
  }
  if (!file->status().ok()) return file->status();
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return parser.Finish();
}

bool IsHistogramHeading(std::string_view line) { return line.find("#instances") != std::string_view::npos; }

// Rows and, behind them, their sum:
//   "   1:         54646        6024416  [B (java.base@17.0.15)"
//   "Total         54646        6024416"
class HistogramParser {
 public:
  HistogramParser(const TextFile& file, const TakeClass& take) : file_(file), take_(take) {}

  absl::Status Take(std::string_view line) {
    const bool heading = IsHistogramHeading(line);
    std::vector<std::string> words =
        absl::StrSplit(absl::string_view(line.data(), line.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (heading && headed_) return file_.Error("a second histogram begins here: give one");
    headed_ |= heading;
    // "4242:" and the like stand above; blank lines and the dashes are no rows.
    if (!headed_ || heading || words.empty() || absl::StartsWith(words[0], "---")) return absl::OkStatus();
    return words[0] == "Total" ? TakeTotal(words) : TakeRow(words);
  }

  // What is missing.
  std::string Missing() const {
    if (!has_total_) return "the histogram has no Total line: it is cut, and what stood behind is in no figure";
    if (total_ == bytes_) return "";
    return absl::StrCat("the rows of the histogram have ", bytes_, " bytes, its Total line ", total_,
                        ": rows are missing, or not of it");
  }

 private:
  absl::Status TakeRow(const std::vector<std::string>& words) {
    uint64_t number = 0, instances = 0, bytes = 0;
    std::string rank = words[0];
    if (rank.back() == ':') rank.pop_back();
    if (words.size() < 4 || rank == words[0] || !ParseBytes(rank, &number) || !ParseBytes(words[1], &instances))
      return file_.Error("not a row of a class histogram: NUM: INSTANCES BYTES CLASS");
    if (!ParseBytes(words[2], &bytes)) return file_.Error(NotBytes(words[2]));
    if (absl::Status status = take_(words[3], bytes); !status.ok()) return file_.Error(std::string(status.message()));
    bytes_ += bytes;
    return absl::OkStatus();
  }

  absl::Status TakeTotal(const std::vector<std::string>& words) {
    uint64_t bytes = 0;
    if (words.size() < 3 || !ParseBytes(words[2], &bytes))
      return file_.Error("not the end of a class histogram: Total INSTANCES BYTES");
    total_ = bytes;
    has_total_ = true;
    return absl::OkStatus();
  }

  const TextFile& file_;
  const TakeClass& take_;
  bool headed_ = false, has_total_ = false;
  uint64_t bytes_ = 0, total_ = 0;
};

absl::StatusOr<HeapClasses> ReadHistogram(TextFile* file, const TakeClass& take) {
  HistogramParser parser(*file, take);
  while (file->Next()) {
    if (absl::Status status = parser.Take(file->line()); !status.ok()) return status;
  }
  if (!file->status().ok()) return file->status();
  return HeapClasses{HeapMeasure::kShallow, parser.Missing()};
}

}  // namespace

absl::StatusOr<HeapClasses> ReadHeapClasses(const std::string& path, const TakeClass& take) {
  absl::StatusOr<TextFile> file = TextFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::string_view> head = file->Peek(kPeekBytes);
  if (!head.ok()) return head.status();
  return IsHistogramHeading(*head) ? ReadHistogram(&*file, take) : ReadTable(path, &*file, take);
}

}  // namespace cadastre
