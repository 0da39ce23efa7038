#include "report/codeowners_import.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/attribution.h"
#include "report/source_files.h"
#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

// Sources of one package, or of one directory.
struct Group {
  RuleKey key = RuleKey::kFunction;
  std::map<std::string, std::vector<SourceFile>> by_team;  // "" = nobody
};

// The prefix of all that lies in a source's package or directory; empty: it has none.
std::string GroupPrefix(const SourceFile& file) {
  if (!file.java) return file.Directory();
  return file.scope.empty() ? "" : absl::StrCat(file.scope, ".");
}

std::string ModuleOf(const std::string& prefix) {
  std::string module = prefix;
  while (!module.empty() && (module.back() == '.' || module.back() == '/' || module.back() == '$')) module.pop_back();
  return module;
}

class Importer {
 public:
  explicit Importer(const Codeowners& codeowners) : codeowners_(codeowners) {}

  void Take(const SourceFile& file) {
    const CodeownersLine* line = codeowners_.Find(file.path);
    if (line != nullptr) used_.insert(line->line);
    Group& group = groups_[{file.java, GroupPrefix(file)}];
    group.key = file.java ? RuleKey::kFunction : RuleKey::kSource;
    group.by_team[line == nullptr ? "" : line->Team()].push_back(file);
  }

  ImportedRules Finish() {
    for (const auto& [key, group] : groups_) {  // a prefix comes before what goes on from it
      if (group.by_team.size() == 1 && !key.second.empty()) {
        Whole(key.second, group);
      } else {
        Split(key.second, group);
      }
    }
    for (const CodeownersLine& line : codeowners_.lines) Unsaid(line);
    return std::move(result_);
  }

 private:
  void Add(RuleKey key, const std::string& prefix, const std::string& module, const std::string& team) {
    Rule rule;
    rule.key = key;
    rule.prefix = prefix;
    rule.module = module;
    rule.team = team;
    result_.rules.push_back(std::move(rule));
  }

  // Team of the rule for a package or directory around this one; nullptr: there is none.
  const std::string* TeamAround(RuleKey key, std::string prefix) const {
    const char separator = key == RuleKey::kFunction ? '.' : '/';
    while (true) {
      if (!prefix.empty()) prefix.pop_back();
      size_t end = prefix.rfind(separator);
      if (end == std::string::npos) return nullptr;
      prefix.resize(end + 1);
      auto whole = whole_.find({key, prefix});
      if (whole != whole_.end()) return &whole->second;
    }
  }

  void Whole(const std::string& prefix, const Group& group) {
    const std::string& team = group.by_team.begin()->first;
    const std::string* around = TeamAround(group.key, prefix);
    if (team.empty()) {
      if (around != nullptr)
        result_.not_expressed.push_back(
            absl::StrCat(prefix, ": nobody owns it, and the rule around it gives it to ", *around));
      return;
    }
    if (around != nullptr && *around == team) return;
    whole_[{group.key, prefix}] = team;
    Add(group.key, prefix, ModuleOf(prefix), team);
  }

  void Split(const std::string& prefix, const Group& group) {
    const std::string* around = TeamAround(group.key, prefix);
    for (const auto& [team, files] : group.by_team) {
      if (team.empty()) {
        if (around != nullptr) {
          for (const SourceFile& file : files)
            result_.not_expressed.push_back(
                absl::StrCat(file.path, ": nobody owns it, and the rule around it gives it to ", *around));
        }
        continue;
      }
      // One module for each team: a module of several teams is nobody's.
      std::string module = ModuleOf(prefix);
      module = group.by_team.size() == 1 ? team : absl::StrCat(module, module.empty() ? "" : " ", "(", team, ")");
      std::set<std::string> prefixes;
      for (const SourceFile& file : files) {
        if (file.java) {
          // Methods of its classes, and their nested classes: a bare name would also catch longer ones.
          for (const std::string& type : file.types) {
            for (const char* end : {".", "$"}) prefixes.insert(absl::StrCat(prefix, type, end));
          }
        } else {
          prefixes.insert(file.path);
        }
      }
      for (const std::string& of_member : prefixes) Add(group.key, of_member, module, team);
    }
  }

  void Unsaid(const CodeownersLine& line) {
    auto say = [&](const std::string& what) {
      result_.not_expressed.push_back(
          absl::StrCat("CODEOWNERS:", line.line, ": ", line.pattern, " ", absl::StrJoin(line.owners, " "), ": ", what));
    };
    if (!line.understood) {
      say("sections and negations are not understood");
    } else if (!used_.contains(line.line)) {
      say("decides for no source of Java, Kotlin, Scala, Groovy, C or C++");
    } else if (line.owners.size() > 1) {
      say(absl::StrCat("a rule has one team: ", line.Team()));
    }
  }

  const Codeowners& codeowners_;
  std::map<std::pair<bool, std::string>, Group> groups_;
  std::map<std::pair<RuleKey, std::string>, std::string> whole_;  // rules for whole packages and directories
  std::set<uint64_t> used_;
  ImportedRules result_;
};

}  // namespace

absl::StatusOr<ImportedRules> ImportCodeowners(const Codeowners& codeowners, const std::string& repository) {
  Importer importer(codeowners);
  absl::Status status = ForEachSource(repository, [&](const SourceFile& file) { importer.Take(file); });
  if (!status.ok()) return status;
  return importer.Finish();
}

absl::StatusOr<std::vector<std::string>> CompareWithCodeowners(const Codeowners& codeowners,
                                                               const std::string& repository, const OwnerRules& rules) {
  FrameOwner owner(rules);
  std::map<std::string, std::pair<uint64_t, std::string>> differences;  // what is said → sources, the first of them
  absl::Status status = ForEachSource(repository, [&](const SourceFile& file) {
    const CodeownersLine* line = codeowners.Find(file.path);
    if (line == nullptr || line->Team().empty()) return;
    const std::string group = GroupPrefix(file);
    std::set<std::string> of_source;  // once for each file, however many classes it has
    for (const Frame& frame : file.AsFrames()) {
      const Rule* rule = owner.Find(frame);
      if (rule != nullptr && rule->team == line->Team()) continue;
      of_source.insert(
          absl::StrCat(group.empty() ? file.path : group, ": CODEOWNERS:", line->line, " says ", line->Team(), ", ",
                       rule == nullptr ? "no rule matches"
                                       : absl::StrCat(RulePlace(*rule), " ", RulePrefixText(*rule), " says ",
                                                      rule->team.empty() ? "no team" : rule->team)));
    }
    for (const std::string& difference : of_source) {
      auto& [count, first] = differences[difference];
      if (count++ == 0) first = file.path;
    }
  });
  if (!status.ok()) return status;
  std::vector<std::string> lines;
  for (const auto& [what, sources] : differences) {
    lines.push_back(
        absl::StrCat(what, " (", sources.first, sources.first == 1 ? " source, " : " sources, ", sources.second, ")"));
  }
  return lines;
}

}  // namespace cadastre
