#include "symbolizer/owner_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/csv_reader.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxRulesBytes =
    256 << 20;  // a million rules of 256 bytes: more is a mistake, or a pipe that never ends

enum Column { kPrefix, kModule, kTeam, kKind, kColumns };
constexpr const char* kColumnNames[kColumns] = {"prefix", "module", "team", "kind"};
constexpr char kHeaderHint[] = "prefix,module,team[,kind]";

constexpr int kMaxIncludeDepth = 32;  // each open file costs a descriptor
constexpr char kIncludeWord[] = "include";

constexpr const char* kMarkers[] = {"", "lib:", "src:", "class:", "thread:"};        // by RuleKey
constexpr const char* kWalkNames[] = {"owner", "transparent", "container", "pool"};  // by RuleWalk

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Where a path that `from` names leads.
std::string RelativeTo(const std::string& from, const std::string& path) {
  size_t slash = from.rfind('/');
  return path[0] == '/' || slash == std::string::npos ? path : from.substr(0, slash + 1) + path;
}

// The report's own row (report/attribution.h). A module of this name would be added to what nobody owns.
constexpr char kReservedName[] = "unattributed";

// One file's records. `shown` is the file's name in rules, as `file` is in errors; rules go behind those in `rules`.
class RulesParser {
 public:
  RulesParser(std::string file, std::string shown, std::vector<Rule>* rules)
      : file_(std::move(file)), shown_(std::move(shown)), rules_(rules) {
    position_.fill(-1);
  }

  absl::Status Take(const CsvRecord& record) { return has_header_ ? TakeRule(record) : TakeHeader(record); }

  absl::Status Finish() const {
    if (!has_header_) return CsvError(file_, 1, 1, absl::StrCat("missing header line: ", kHeaderHint));
    return absl::OkStatus();
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
    rule.file = shown_;
    rule.line = record.line;
    const CsvField& prefix = record.fields[position_[kPrefix]];
    rule.prefix = prefix.text;
    for (RuleKey key : {RuleKey::kLibrary, RuleKey::kSource, RuleKey::kClass, RuleKey::kThread}) {
      std::string_view marker = RuleMarker(key);
      if (prefix.text.compare(0, marker.size(), marker) != 0) continue;
      if (prefix.text.compare(marker.size(), 1, ":") == 0) continue;  // `thread::` is a namespace
      rule.key = key;
      rule.prefix = prefix.text.substr(marker.size());
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
    rules_->push_back(std::move(rule));
    return absl::OkStatus();
  }

  absl::Status TakeKind(const CsvField& field, Rule* rule) {
    rule->kind_given = !field.text.empty();
    if (field.text.empty()) return absl::OkStatus();
    for (RuleWalk walk : {RuleWalk::kOwner, RuleWalk::kTransparent, RuleWalk::kContainer, RuleWalk::kPool}) {
      if (field.text != RuleWalkName(walk)) continue;
      rule->walk = walk;
      return absl::OkStatus();
    }
    return CsvError(file_, field.line, field.column,
                    absl::StrCat("unknown kind '", field.text, "'; known are owner, transparent, container and pool"));
  }

  static Column ColumnOf(const std::string& name) {
    int column = 0;
    while (column < kColumns && name != kColumnNames[column]) column++;
    return static_cast<Column>(column);
  }

  std::string file_, shown_;
  bool has_header_ = false;
  std::array<int, kColumns> position_;  // in a record; -1 = the header does not have it
  size_t columns_ = 0;
  std::vector<Rule>* rules_;
};

// `included_by`: the line whose mistake it is, "FILE:LINE:1: includes "; empty for the file that the user named.
absl::Status FileError(const std::string& included_by, const std::string& path, const char* doing, int error) {
  std::string message = absl::StrCat(included_by, path, ": ", doing, ": ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

// The path that the comment `#include PATH` names; empty = an ordinary comment.
std::string IncludedPath(std::string_view comment) {
  constexpr std::string_view kBlanks = " \t\r";
  constexpr std::string_view kWord = kIncludeWord;
  if (comment.substr(0, kWord.size()) != kWord || comment.size() == kWord.size()) return "";
  comment.remove_prefix(kWord.size());
  if (kBlanks.find(comment[0]) == std::string_view::npos) return "";
  size_t begin = comment.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return std::string(comment.substr(begin, comment.find_last_not_of(kBlanks) + 1 - begin));
}

// A file and what it includes, in the order in which the rules stand.
class RulesLoader {
 public:
  // `included_by` as in FileError.
  absl::Status Load(const std::string& path, const std::string& shown, const std::string& included_by) {
    int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) return FileError(included_by, path, "cannot open", errno);
    absl::Status status = LoadOpen(descriptor, path, shown, included_by);
    close(descriptor);
    return status;
  }

  std::vector<Rule> TakeRules() { return std::move(rules_); }

 private:
  absl::Status LoadOpen(int descriptor, const std::string& path, const std::string& shown,
                        const std::string& included_by) {
    struct stat identity {};
    if (fstat(descriptor, &identity) != 0) return FileError(included_by, path, "cannot read", errno);
    files_.emplace(identity.st_dev, identity.st_ino);
    RulesParser parser(path, shown, &rules_);
    CsvReader reader(path, kMaxLineBytes, [&](const CsvRecord& record) { return parser.Take(record); });
    reader.set_take_comment([&](std::string_view comment, int line) {
      std::string included = IncludedPath(comment);
      return included.empty() ? absl::OkStatus() : Include(path, shown, included, line);
    });
    absl::Status status;
    std::string chunk(64 << 10, '\0');
    while (status.ok()) {
      ssize_t got = read(descriptor, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) status = FileError(included_by, path, "cannot read", errno);  // a directory comes here: EISDIR
      if (got <= 0) break;
      total_bytes_ += got;
      if (total_bytes_ > kMaxRulesBytes) {
        status = absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kMaxRulesBytes, " bytes"));
      } else {
        status = reader.Feed(std::string_view(chunk.data(), got));
      }
    }
    if (status.ok()) status = reader.Finish();
    return status.ok() ? parser.Finish() : status;
  }

  absl::Status Include(const std::string& from, const std::string& shown_from, const std::string& included, int line) {
    std::string path = RelativeTo(from, included);
    struct stat identity {};
    if (stat(path.c_str(), &identity) == 0 && files_.contains({identity.st_dev, identity.st_ino}))
      return CsvError(from, line, 1, absl::StrCat("includes ", path, ", which is in already"));
    if (depth_ == kMaxIncludeDepth)
      return CsvError(from, line, 1, absl::StrCat("includes ", path, ": deeper than ", kMaxIncludeDepth, " files"));
    depth_++;
    absl::Status status = Load(path, RelativeTo(shown_from, included), absl::StrCat(from, ":", line, ":1: includes "));
    depth_--;
    return status;
  }

  std::vector<Rule> rules_;
  std::set<std::pair<dev_t, ino_t>> files_;  // all that came in
  int depth_ = 0;
  uint64_t total_bytes_ = 0;
};

}  // namespace

const char* RuleMarker(RuleKey key) { return kMarkers[static_cast<int>(key)]; }

const char* RuleWalkName(RuleWalk walk) { return kWalkNames[static_cast<int>(walk)]; }

std::string RulePrefixText(const Rule& rule) { return absl::StrCat(RuleMarker(rule.key), rule.prefix); }

std::string RulePlace(const Rule& rule) { return rule.built_in ? rule.file : absl::StrCat(rule.file, ":", rule.line); }

bool IsPlatformModule(std::string_view module) { return module == "platform" || module.substr(0, 9) == "platform/"; }

absl::StatusOr<std::vector<Rule>> ParseOwnerRules(std::string_view text, const std::string& file) {
  std::vector<Rule> rules;
  RulesParser parser(file, FileName(file), &rules);
  CsvReader reader(file, kMaxLineBytes, [&](const CsvRecord& record) { return parser.Take(record); });
  reader.set_take_comment([&](std::string_view comment, int line) {
    return IncludedPath(comment).empty() ? absl::OkStatus() : CsvError(file, line, 1, "nothing can be included here");
  });
  absl::Status status = reader.Feed(text);
  if (status.ok()) status = reader.Finish();
  if (status.ok()) status = parser.Finish();
  if (!status.ok()) return status;
  return rules;
}

absl::StatusOr<std::vector<Rule>> ReadOwnerRules(const std::string& path) {
  RulesLoader loader;
  if (absl::Status status = loader.Load(path, FileName(path), ""); !status.ok()) return status;
  return loader.TakeRules();
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
