#include "symbolizer/owner_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/csv_reader.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxFileBytes =
    256 << 20;  // a million rules of 256 bytes: more is a mistake, or a pipe that never ends

enum Column { kPrefix, kModule, kTeam, kKind, kColumns };
constexpr const char* kColumnNames[kColumns] = {"prefix", "module", "team", "kind"};
constexpr char kHeaderHint[] = "prefix,module,team[,kind]";

struct Marker {
  std::string_view text;
  RuleKey key;
};
constexpr Marker kMarkers[] = {{"lib:", RuleKey::kLibrary},
                               {"src:", RuleKey::kSource},
                               {"class:", RuleKey::kClass},
                               {"thread:", RuleKey::kThread}};

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The report's own row (report/attribution.h). A module of this name would be added to what nobody owns.
constexpr char kReservedName[] = "unattributed";

class RulesParser {
 public:
  explicit RulesParser(const std::string& file) : file_(file), file_name_(FileName(file)) { position_.fill(-1); }

  absl::Status Take(const CsvRecord& record) { return has_header_ ? TakeRule(record) : TakeHeader(record); }

  absl::StatusOr<std::vector<Rule>> Finish() {
    if (!has_header_) return CsvError(file_, 1, 1, absl::StrCat("missing header line: ", kHeaderHint));
    return std::move(rules_);
  }

 private:
  absl::Status TakeHeader(const CsvRecord& record) {
    bool any_known = false;
    for (const CsvField& field : record.fields) any_known |= ColumnOf(field.text) != kColumns;
    if (!any_known) {
      return CsvError(file_, record.line, 1, absl::StrCat("missing header line: the first line must be ", kHeaderHint));
    }
    for (size_t i = 0; i < record.fields.size(); i++) {
      const CsvField& field = record.fields[i];
      Column column = ColumnOf(field.text);
      if (column == kColumns) {
        return CsvError(file_, field.line, field.column,
                        absl::StrCat("unknown column '", field.text, "'; the header is ", kHeaderHint));
      }
      if (position_[column] >= 0) {
        return CsvError(file_, field.line, field.column, absl::StrCat("column '", field.text, "' appears twice"));
      }
      position_[column] = static_cast<int>(i);
    }
    for (Column column : {kPrefix, kModule, kTeam}) {
      if (position_[column] < 0) {
        return CsvError(file_, record.end_line, record.end_column,
                        absl::StrCat("missing column '", kColumnNames[column], "' in the header"));
      }
    }
    columns_ = record.fields.size();
    has_header_ = true;
    return absl::OkStatus();
  }

  absl::Status TakeRule(const CsvRecord& record) {
    if (record.fields.size() > columns_) {
      const CsvField& extra = record.fields[columns_];
      return CsvError(file_, extra.line, extra.column,
                      absl::StrCat(record.fields.size(), " columns; the header names ", columns_));
    }
    for (Column column : {kPrefix, kModule, kTeam}) {  // `kind` may be left out at the end of a line
      if (position_[column] >= static_cast<int>(record.fields.size())) {
        return CsvError(file_, record.end_line, record.end_column,
                        absl::StrCat("missing column '", kColumnNames[column], "'"));
      }
    }
    Rule rule;
    rule.file = file_name_;
    rule.line = record.line;
    const CsvField& prefix = record.fields[position_[kPrefix]];
    rule.prefix = prefix.text;
    for (const Marker& marker : kMarkers) {
      if (prefix.text.compare(0, marker.text.size(), marker.text) != 0) continue;
      if (prefix.text.compare(marker.text.size(), 1, ":") == 0) continue;  // `thread::` is a namespace
      rule.key = marker.key;
      rule.prefix = prefix.text.substr(marker.text.size());
    }
    if (rule.prefix.empty()) return CsvError(file_, prefix.line, prefix.column, "empty prefix");
    const CsvField& module = record.fields[position_[kModule]];
    rule.module = module.text;
    if (rule.module.empty()) return CsvError(file_, module.line, module.column, "empty module");
    const CsvField& team = record.fields[position_[kTeam]];
    rule.team = team.text;
    for (const CsvField* name : {&module, &team}) {
      if (name->text == kReservedName)
        return CsvError(file_, name->line, name->column,
                        "'unattributed' is the row of what has no owner: name another");
    }
    if (position_[kKind] >= 0 && position_[kKind] < static_cast<int>(record.fields.size())) {
      if (absl::Status status = TakeKind(record.fields[position_[kKind]], &rule); !status.ok()) return status;
    }
    rules_.push_back(std::move(rule));
    return absl::OkStatus();
  }

  absl::Status TakeKind(const CsvField& field, Rule* rule) {
    rule->kind_given = !field.text.empty();
    if (field.text.empty() || field.text == "owner") return absl::OkStatus();
    if (field.text == "transparent") {
      rule->walk = RuleWalk::kTransparent;
    } else if (field.text == "container") {
      rule->walk = RuleWalk::kContainer;
    } else {
      return CsvError(file_, field.line, field.column,
                      absl::StrCat("unknown kind '", field.text, "'; known are owner, transparent and container"));
    }
    return absl::OkStatus();
  }

  static Column ColumnOf(const std::string& name) {
    int column = 0;
    while (column < kColumns && name != kColumnNames[column]) column++;
    return static_cast<Column>(column);
  }

  std::string file_;
  std::string file_name_;
  bool has_header_ = false;
  std::array<int, kColumns> position_;  // in a record; -1 = the header does not have it
  size_t columns_ = 0;
  std::vector<Rule> rules_;
};

absl::Status FileError(const std::string& path, const char* doing, int error) {
  std::string message = absl::StrCat(path, ": ", doing, ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<std::vector<Rule>> ParseOwnerRules(std::string_view text, const std::string& file) {
  RulesParser parser(file);
  CsvReader reader(file, kMaxLineBytes, [&](const CsvRecord& record) { return parser.Take(record); });
  absl::Status status = reader.Feed(text);
  if (status.ok()) status = reader.Finish();
  if (!status.ok()) return status;
  return parser.Finish();
}

absl::StatusOr<std::vector<Rule>> ReadOwnerRules(const std::string& path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return FileError(path, "cannot open", errno);
  RulesParser parser(path);
  CsvReader reader(path, kMaxLineBytes, [&](const CsvRecord& record) { return parser.Take(record); });
  absl::Status status;
  uint64_t total_bytes = 0;
  std::string chunk(64 << 10, '\0');
  while (status.ok()) {
    ssize_t got = read(descriptor, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = FileError(path, "cannot read", errno);  // a directory comes here: EISDIR
    if (got <= 0) break;
    total_bytes += got;
    if (total_bytes > kMaxFileBytes) {
      status = absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kMaxFileBytes, " bytes"));
    } else {
      status = reader.Feed(std::string_view(chunk.data(), got));
    }
  }
  close(descriptor);
  if (status.ok()) status = reader.Finish();
  if (!status.ok()) return status;
  return parser.Finish();
}

absl::StatusOr<OwnerRules> FindOwnerRules(const std::string& rules_flag) {
  OwnerRules found;
  found.path = rules_flag;
  if (found.path.empty()) {
    const char* variable = getenv("CADASTRE_RULES");
    if (variable != nullptr) found.path = variable;
  }
  struct stat status;
  // An empty ./owners.csv is none: it is what the shell has just made for `cadastre rules init P > owners.csv`.
  if (found.path.empty() && stat("owners.csv", &status) == 0 && status.st_size != 0) found.path = "owners.csv";
  if (!found.path.empty()) {
    absl::StatusOr<std::vector<Rule>> rules = ReadOwnerRules(found.path);
    if (!rules.ok()) return rules.status();
    found.rules = *std::move(rules);
  }
  const std::vector<Rule>& built_in = BuiltInRules();
  found.rules.insert(found.rules.end(), built_in.begin(), built_in.end());
  return found;
}

}  // namespace cadastre
