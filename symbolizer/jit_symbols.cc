#include "symbolizer/jit_symbols.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxMapBytes = 256 << 20;

// The whole file, or nothing.
std::string ReadTrusted(const std::string& path, uint64_t start_realtime_ns, uid_t owner) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return "";
  struct stat facts {};
  std::string text;
  bool trusted = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == owner &&
                 static_cast<uint64_t>(facts.st_size) <= kMaxMapBytes &&
                 static_cast<uint64_t>(facts.st_mtim.tv_sec) + 1 >= start_realtime_ns / 1000000000;
  if (trusted) {
    text.resize(static_cast<size_t>(facts.st_size));
    size_t filled = 0;
    while (filled < text.size()) {
      ssize_t got = read(file, text.data() + filled, text.size() - filled);
      if (got <= 0) break;
      filled += static_cast<size_t>(got);
    }
    text.resize(filled);
  }
  close(file);
  return text;
}

}  // namespace

JitSymbols JitSymbols::Read(const std::string& path, uint64_t start_realtime_ns, uid_t owner) {
  return Parse(ReadTrusted(path, start_realtime_ns, owner));
}

JitSymbols JitSymbols::Parse(absl::string_view text) {
  JitSymbols symbols;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    std::pair<absl::string_view, absl::string_view> start_and_rest = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    std::pair<absl::string_view, absl::string_view> bytes_and_name =
        absl::StrSplit(start_and_rest.second, absl::MaxSplits(' ', 1));
    uint64_t start, bytes;
    if (!absl::SimpleHexAtoi(start_and_rest.first, &start) || !absl::SimpleHexAtoi(bytes_and_name.first, &bytes) ||
        bytes == 0 || bytes > UINT64_MAX - start || bytes_and_name.second.empty()) {
      continue;
    }
    symbols.Add(start, bytes, bytes_and_name.second);
  }
  return symbols;
}

void JitSymbols::Add(uint64_t start, uint64_t bytes, absl::string_view name) {
  const uint64_t end = start + bytes;
  auto next = codes_.lower_bound(start);
  // What was there before is gone where the new code lies; its rest may still be code.
  if (next != codes_.begin()) {
    auto before = std::prev(next);
    if (before->second.end > start) {
      if (before->second.end > end) codes_.emplace(end, before->second);
      before->second.end = start;
    }
  }
  while (next != codes_.end() && next->first < end) {
    if (next->second.end > end) codes_.emplace(end, next->second);
    next = codes_.erase(next);
  }
  codes_.insert_or_assign(start, Code{end, std::string(name)});
}

const std::string* JitSymbols::Find(uint64_t pc) const {
  auto after = codes_.upper_bound(pc);
  if (after == codes_.begin()) return nullptr;
  const Code& code = std::prev(after)->second;
  return pc < code.end ? &code.name : nullptr;
}

}  // namespace cadastre
