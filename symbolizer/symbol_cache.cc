#include "symbolizer/symbol_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {
namespace {

constexpr absl::string_view kEnding = ".names";
constexpr absl::string_view kHalfWritten = ".tmp";
constexpr uint64_t kMaxCacheFileBytes = 64 << 20;
constexpr time_t kHourSeconds = 3600, kDaySeconds = 24 * kHourSeconds;
constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

bool IsOurs(const struct stat& status) { return status.st_uid == geteuid() && (status.st_mode & kOthersMayWrite) == 0; }

bool IsHex(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// "9f3c…-1b2c3d4e.names"; empty where there can be no file.
std::string FileOf(const std::string& build_id, const std::string& sources) {
  if (!IsHex(build_id) || build_id.size() > 128) return "";
  const uLong hash = crc32_z(0, reinterpret_cast<const Bytef*>(sources.data()), sources.size());
  return absl::StrFormat("%s-%08x%s", build_id, static_cast<uint32_t>(hash), kEnding);
}

// The directory may be one that a user has named and keeps other things in.
bool IsName(absl::string_view file) {
  if (!absl::EndsWith(file, kEnding)) return false;
  file.remove_suffix(kEnding.size());
  const size_t dash = file.find('-');
  return dash != absl::string_view::npos && IsHex(file.substr(0, dash)) && file.size() - dash == 9 &&
         IsHex(file.substr(dash + 1));
}
bool IsHalfWritten(absl::string_view file) {
  return absl::StartsWith(file, ".cadastre-") && absl::EndsWith(file, kHalfWritten);
}

// In the home of somebody else (sudo) even root makes no directory: its owner could not use it any more.
void MakeDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status {};
  if (stat(parent.c_str(), &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0))
    mkdir(path.c_str(), 0700);
}

std::string ReadAll(int descriptor, uint64_t size) {
  std::string bytes(size, '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t more = read(descriptor, bytes.data() + got, bytes.size() - got);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    got += static_cast<size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

bool WriteAll(int descriptor, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

// Both ascending; of an address that both have, what was found now.
std::vector<NameOfAddress> Merge(std::vector<NameOfAddress> known, std::vector<NameOfAddress> found) {
  std::vector<NameOfAddress> merged;
  merged.reserve(known.size() + found.size());
  auto old = known.begin();
  for (NameOfAddress& name : found) {
    for (; old != known.end() && old->first < name.first; ++old) merged.push_back(std::move(*old));
    if (old != known.end() && old->first == name.first) ++old;
    merged.push_back(std::move(name));
  }
  merged.insert(merged.end(), std::make_move_iterator(old), std::make_move_iterator(known.end()));
  return merged;
}

}  // namespace

std::string DefaultSymbolCache() {
  if (const char* place = getenv("CADASTRE_SYMBOL_CACHE"); place != nullptr && place[0] != '\0')
    return SymbolCacheNamed(place);
  const char* caches = getenv("XDG_CACHE_HOME");
  if (caches != nullptr && caches[0] == '/') return absl::StrCat(caches, "/cadastre");
  const char* home = getenv("HOME");
  return home != nullptr && home[0] == '/' ? absl::StrCat(home, "/.cache/cadastre") : "";
}

std::string SymbolCacheNamed(const std::string& place) { return place == "off" ? "" : place; }

SymbolCache::SymbolCache(std::string directory, uint64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {
  while (directory_.size() > 1 && directory_.back() == '/') directory_.pop_back();
}

SymbolCache::~SymbolCache() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool SymbolCache::OpenDirectory(Missing missing) {
  if (descriptor_ >= 0) return true;
  if (directory_.empty()) return false;
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int descriptor = open(directory_.c_str(), kFlags);
  if (descriptor < 0 && errno == ENOENT && missing == Missing::kMake) {
    MakeDirectory(directory_.substr(0, directory_.rfind('/')));  // ~/.cache of a new user
    MakeDirectory(directory_);
    descriptor = open(directory_.c_str(), kFlags);
  }
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !IsOurs(status)) {
    // A directory that is not there yet may be made by the first Store; one that is not ours will stay so.
    if (descriptor >= 0 || errno != ENOENT || missing == Missing::kMake) directory_.clear();
    if (descriptor >= 0) close(descriptor);
    return false;
  }
  descriptor_ = descriptor;
  return true;
}

std::optional<CachedNames> SymbolCache::Load(const std::string& build_id, const std::string& sources) {
  const std::string name = FileOf(build_id, sources);
  if (name.empty() || !OpenDirectory(Missing::kStayAway)) return std::nullopt;
  const Descriptor file(openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) || !IsOurs(status) ||
      status.st_size > static_cast<off_t>(kMaxCacheFileBytes)) {
    return std::nullopt;
  }
  const std::string bytes = ReadAll(file.number(), static_cast<uint64_t>(status.st_size));
  absl::StatusOr<CachedNames> cached = ParseCachedNames(bytes.data(), bytes.size());
  if (!cached.ok() || cached->build_id != build_id || cached->sources != sources) return std::nullopt;
  // How long it was not used is told by its time; once a day is often enough.
  if (time(nullptr) - status.st_mtime > kDaySeconds) futimens(file.number(), nullptr);
  return *std::move(cached);
}

void SymbolCache::Store(CachedNames found) {
  const std::string name = FileOf(found.build_id, found.sources);
  if (name.empty() || found.names.empty() || !OpenDirectory(Missing::kMake)) return;
  if (std::optional<CachedNames> known = Load(found.build_id, found.sources))
    found.names = Merge(std::move(known->names), std::move(found.names));
  if (found.names.size() > kMaxCachedNames) return;
  const std::string bytes = WriteCachedNames(found);
  if (bytes.size() <= kMaxCacheFileBytes) Write(name, bytes);
}

void SymbolCache::Write(const std::string& name, const std::string& bytes) {
  const std::string temporary = absl::StrCat(".cadastre-", getpid(), kHalfWritten);
  bool whole = false;
  {
    const Descriptor file(
        openat(descriptor_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    // It is there: of a process that died, or of one with this pid in another container.
    if (file.number() < 0) return;
    whole = WriteAll(file.number(), bytes);
  }
  // Not synced: after a crash of the machine the checksum tells.
  if (!whole || renameat(descriptor_, temporary.c_str(), descriptor_, name.c_str()) != 0)
    unlinkat(descriptor_, temporary.c_str(), 0);
}

void SymbolCache::Trim() {
  if (!OpenDirectory(Missing::kStayAway)) return;
  const int again = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // readdir moves its descriptor
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(again < 0 ? nullptr : fdopendir(again), closedir);
  if (directory == nullptr) return;
  struct Stored {
    time_t used;
    uint64_t bytes;
    std::string name;
  };
  std::vector<Stored> stored;
  uint64_t bytes = 0;
  const time_t now = time(nullptr);
  while (const dirent* entry = readdir(directory.get())) {
    const bool half_written = IsHalfWritten(entry->d_name);
    struct stat status {};
    if ((!half_written && !IsName(entry->d_name)) ||
        fstatat(descriptor_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    const time_t unused = now - status.st_mtime;
    if (half_written ? unused > kHourSeconds : unused > kMaxAgeDays * kDaySeconds) {
      unlinkat(descriptor_, entry->d_name, 0);
    } else if (!half_written) {
      stored.push_back({status.st_mtime, static_cast<uint64_t>(status.st_size), entry->d_name});
      bytes += stored.back().bytes;
    }
  }
  std::sort(stored.begin(), stored.end(), [](const Stored& a, const Stored& b) { return a.used < b.used; });
  for (const Stored& file : stored) {
    if (bytes <= max_bytes_) break;
    unlinkat(descriptor_, file.name.c_str(), 0);
    bytes -= file.bytes;
  }
}

}  // namespace cadastre
