#include "report/codeowners.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "report/text_file.h"

namespace cadastre {
namespace {

using Parts = std::vector<std::string>;

// Words of a line; "\ " is a blank in a word, "#" begins a comment.
std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  for (size_t i = 0; i <= line.size(); i++) {
    const bool end = i == line.size() || line[i] == '#';
    if (end || line[i] == ' ' || line[i] == '\t') {
      if (!word.empty()) words.push_back(std::exchange(word, ""));
      if (end) break;
    } else if (line[i] == '\\' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += line[i];
    }
  }
  return words;
}

// Whether the pattern matches the path or a directory on its way.
bool MatchFrom(const Parts& pattern, size_t p, const Parts& path, size_t at) {
  if (p == pattern.size()) return true;  // what is left lies below
  if (pattern[p] == "**") {
    if (p + 1 == pattern.size()) return at < path.size();
    for (size_t skip = at; skip <= path.size(); skip++) {
      if (MatchFrom(pattern, p + 1, path, skip)) return true;
    }
    return false;
  }
  if (at == path.size() || fnmatch(pattern[p].c_str(), path[at].c_str(), 0) != 0) return false;
  const bool last_star = p + 1 == pattern.size() && p > 0 && pattern[p] == "*";
  if (last_star && at + 1 != path.size()) return false;
  return MatchFrom(pattern, p + 1, path, at + 1);
}

}  // namespace

bool CodeownersLine::Matches(const std::string& path) const {
  if (!understood) return false;
  const bool directory = absl::EndsWith(pattern, "/");
  std::string bare = pattern.substr(0, pattern.size() - (directory ? 1 : 0));
  const bool anchored = bare.find('/') != std::string::npos;
  Parts parts = absl::StrSplit(bare, '/', absl::SkipEmpty()), steps = absl::StrSplit(path, '/', absl::SkipEmpty());
  if (parts.empty()) return directory;  // "/": all
  if (directory) {
    // Something must lie below it: the file itself is no directory.
    if (steps.empty()) return false;
    steps.pop_back();
  }
  for (size_t at = 0; at < steps.size(); at++) {
    if (MatchFrom(parts, 0, steps, at)) return true;
    if (anchored) return false;
  }
  return false;
}

std::string CodeownersLine::Team() const {
  if (owners.empty()) return "";
  std::string name = owners[0];
  if (name[0] == '@') name = name.substr(1);
  size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

const CodeownersLine* Codeowners::Find(const std::string& path) const {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->Matches(path)) return &*line;
  }
  return nullptr;
}

absl::StatusOr<Codeowners> ReadCodeowners(const std::string& path) {
  absl::StatusOr<TextFile> file = TextFile::Open(path);
  if (!file.ok()) return file.status();
  Codeowners codeowners;
  codeowners.path = path;
  while (file->Next()) {
    std::vector<std::string> words = WordsOf(file->line());
    if (words.empty()) continue;
    CodeownersLine line;
    line.line = file->line_number();
    line.pattern = words[0];
    line.owners.assign(words.begin() + 1, words.end());
    line.understood = line.pattern[0] != '[' && line.pattern[0] != '^' && line.pattern[0] != '!';
    codeowners.lines.push_back(std::move(line));
  }
  if (!file->status().ok()) return file->status();
  return codeowners;
}

}  // namespace cadastre
