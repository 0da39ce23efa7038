// The symbol cache helps or stays out of the way: whatever is wrong with it, nothing is loaded, nothing fails, and
// nobody else's file is touched.
#include "symbolizer/symbol_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "symbolizer/packed_text.h"
#include "symbolizer/symbolizer.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using testing::TemporaryDirectory;

constexpr char kId[] = "9f3c01";
constexpr char kSources[] = "library 4096 bytes";

CachedNames NamesOf(const std::string& build_id, std::vector<uint64_t> addresses, const std::string& function = "f") {
  CachedNames cached{.build_id = build_id, .sources = kSources, .soname = "", .names = {}};
  for (uint64_t address : addresses) {
    Frame frame;
    frame.function = function;
    frame.resolved = true;
    cached.names.push_back({address, {frame}});
  }
  return cached;
}

std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  return names;
}

std::string TheFile(const std::string& directory) {
  std::vector<std::string> names = FilesIn(directory);
  REQUIRE(names.size() == 1);
  return directory + "/" + names[0];
}

void SetAge(const std::string& path, time_t seconds) {
  const timespec then{time(nullptr) - seconds, 0};
  const timespec times[] = {then, then};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

bool Knows(const std::string& directory) { return SymbolCache(directory).Load(kId, kSources).has_value(); }

struct Case {
  TemporaryDirectory home;
  std::string directory = home / "cache/cadastre";
  Case() { SymbolCache(directory).Store(NamesOf(kId, {1, 5})); }
};

TEST_CASE("What one command stores the next one has, for the owner alone", "[symbol_cache]") {
  Case c;
  std::optional<CachedNames> known = SymbolCache(c.directory).Load(kId, kSources);
  REQUIRE(known.has_value());
  REQUIRE(known->names.size() == 2);
  CHECK(known->names[1].second[0].function == "f");
  CHECK(ModeOf(c.directory) == 0700);
  CHECK(ModeOf(TheFile(c.directory)) == 0600);
}

TEST_CASE("Names are added to those that are there, and the newer ones stand", "[symbol_cache]") {
  Case c;
  SymbolCache(c.directory).Store(NamesOf(kId, {0, 3, 5, 9}, "g"));
  std::optional<CachedNames> known = SymbolCache(c.directory).Load(kId, kSources);
  REQUIRE(known.has_value());
  std::string all;
  for (const auto& [address, frames] : known->names) all += std::to_string(address) + frames[0].function + " ";
  CHECK(all == "0g 1f 3g 5g 9g ");
}

TEST_CASE("Another build id and other sources are other names", "[symbol_cache]") {
  Case c;
  SymbolCache cache(c.directory);
  CHECK_FALSE(cache.Load("9f3c02", kSources).has_value());
  CHECK_FALSE(cache.Load(kId, "library 4097 bytes").has_value());
  // A file that was renamed, or whose hash is the same by chance.
  SymbolCache other(c.home / "cache/other");
  other.Store(NamesOf("9f3c02", {7}));
  std::filesystem::rename(TheFile(c.home / "cache/other"), TheFile(c.directory));
  CHECK_FALSE(cache.Load(kId, kSources).has_value());
}

TEST_CASE("Without a build id, or with one that is none, nothing is stored", "[symbol_cache]") {
  TemporaryDirectory home;
  for (const char* id : {"", "../../etc/x", "9F3C"}) {
    SymbolCache cache(home / "cadastre");
    cache.Store(NamesOf(id, {1}));
    CHECK_FALSE(cache.Load(id, kSources).has_value());
  }
  SymbolCache(home / "cadastre").Store(NamesOf(kId, {}));
  CHECK(FilesIn(home.path()).empty());
}

TEST_CASE("A damaged, cut or newer file is not used and is replaced", "[symbol_cache]") {
  Case c;
  const std::string path = TheFile(c.directory);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string flipped = bytes, newer = bytes;
  flipped[bytes.size() - 3] ^= 0x10;
  newer[offsetof(PackedHeader, version)]++;
  for (const std::string& damaged : {flipped, newer, bytes.substr(0, bytes.size() / 2), std::string()}) {
    std::ofstream(path, std::ios::binary) << damaged;
    CHECK_FALSE(Knows(c.directory));
    SymbolCache(c.directory).Store(NamesOf(kId, {2}));
    CHECK(Knows(c.directory));
    CHECK(FilesIn(c.directory).size() == 1);
  }
}

TEST_CASE("Symbolic links are not followed", "[symbol_cache]") {
  Case c;
  const std::string path = TheFile(c.directory), outside = c.home / "outside";
  std::filesystem::rename(path, outside);
  std::filesystem::create_symlink(outside, path);
  CHECK_FALSE(Knows(c.directory));
  SymbolCache(c.directory).Store(NamesOf(kId, {2}));  // takes the link's place, and leaves what it led to
  CHECK(std::filesystem::symlink_status(path).type() == std::filesystem::file_type::regular);
  CHECK(Knows(c.directory));
  CHECK(std::filesystem::is_regular_file(outside));

  std::filesystem::create_directory_symlink(c.directory, c.home / "link");
  CHECK_FALSE(Knows(c.home / "link"));
  std::filesystem::create_directory_symlink(c.home / "nowhere", c.home / "dangling");
  SymbolCache(c.home / "dangling").Store(NamesOf(kId, {2}));
  CHECK_FALSE(std::filesystem::exists(c.home / "nowhere"));
}

TEST_CASE("What others may write, and what is theirs, is not used", "[symbol_cache]") {
  Case c;
  const std::string path = TheFile(c.directory);
  for (const std::string& what : {path, c.directory}) {
    const mode_t mode = ModeOf(what);
    chmod(what.c_str(), mode | S_IWOTH);
    CHECK_FALSE(Knows(c.directory));
    chmod(what.c_str(), mode);
    CHECK(Knows(c.directory));
    if (geteuid() == 0) {
      REQUIRE(chown(what.c_str(), 12345, 12345) == 0);
      CHECK_FALSE(Knows(c.directory));
      REQUIRE(chown(what.c_str(), 0, 0) == 0);
    }
  }
  if (geteuid() == 0) {  // sudo in somebody's home
    std::filesystem::create_directory(c.home / "theirs");
    REQUIRE(chown((c.home / "theirs").c_str(), 12345, 12345) == 0);
    SymbolCache(c.home / "theirs/cadastre").Store(NamesOf(kId, {2}));
    CHECK(FilesIn(c.home / "theirs").empty());
  }
}

TEST_CASE("A home that cannot be written is as good as none", "[symbol_cache]") {
  Case c;
  std::ofstream(c.home / "file") << "x";
  for (const std::string& place : {c.home / "file/cadastre", std::string("/proc/1/cadastre"), std::string()}) {
    SymbolCache cache(place);
    cache.Store(NamesOf(kId, {1}));
    CHECK_FALSE(cache.Load(kId, kSources).has_value());
    cache.Trim();
  }
  // A file where the temporary one should be: this process cannot write, and what was there is kept.
  const std::string half = c.directory + "/.cadastre-" + std::to_string(getpid()) + ".tmp";
  std::ofstream(half) << "x";
  SymbolCache(c.directory).Store(NamesOf(kId, {7}));
  CHECK(SymbolCache(c.directory).Load(kId, kSources)->names.size() == 2);
}

TEST_CASE("The longest unused files go first, old ones in any case, and foreign ones never", "[symbol_cache]") {
  TemporaryDirectory home;
  const std::string directory = home / "cadastre";
  SymbolCache(directory).Store(NamesOf("aa", {1}));
  const uint64_t each = std::filesystem::file_size(TheFile(directory));
  SetAge(TheFile(directory), 31 * 86400);
  for (const char* foreign : {"notes.txt", "budget.names", ".cadastre-1.tmp"})
    std::ofstream(directory + "/" + foreign) << std::string(5000, 'x');
  SymbolCache cache(directory, /*max_bytes=*/2 * each);
  int age = 400;
  for (const char* id : {"bb", "cc", "dd"}) {
    cache.Store(NamesOf(id, {1}));
    for (const std::string& name : FilesIn(directory))
      if (name.substr(0, 2) == id) SetAge(directory + "/" + name, age);
    age -= 100;
  }
  cache.Trim();
  CHECK_FALSE(cache.Load("aa", kSources).has_value());
  CHECK_FALSE(cache.Load("bb", kSources).has_value());
  CHECK(cache.Load("cc", kSources).has_value());
  CHECK(cache.Load("dd", kSources).has_value());
  CHECK(std::filesystem::exists(directory + "/notes.txt"));
  CHECK(std::filesystem::exists(directory + "/budget.names"));
  CHECK(std::filesystem::exists(directory + "/.cadastre-1.tmp"));  // somebody may be writing it
  SetAge(directory + "/.cadastre-1.tmp", 7200);
  cache.Trim();
  CHECK_FALSE(std::filesystem::exists(directory + "/.cadastre-1.tmp"));
}

TEST_CASE("A file that is used stays young", "[symbol_cache]") {
  Case c;
  SetAge(TheFile(c.directory), 29 * 86400);
  CHECK(Knows(c.directory));
  struct stat status {};
  REQUIRE(stat(TheFile(c.directory).c_str(), &status) == 0);
  CHECK(time(nullptr) - status.st_mtime < 60);
}

TEST_CASE("Commands that store at once leave whole files", "[symbol_cache]") {
  Case c;
  std::vector<pid_t> children;
  for (uint64_t child = 0; child < 4; child++) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (uint64_t i = 0; i < 100; i++) {
      SymbolCache cache(c.directory);
      std::optional<CachedNames> known = cache.Load(kId, kSources);
      if (!known.has_value() || known->names.empty()) _exit(1);  // half a file, or none for a moment
      cache.Store(NamesOf(kId, {1000 * child + i}));
      cache.Trim();
    }
    _exit(0);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  // Whoever was last has its last name there, whatever it has overwritten.
  const std::vector<NameOfAddress> names = SymbolCache(c.directory).Load(kId, kSources)->names;
  CHECK(std::any_of(names.begin(), names.end(), [](const NameOfAddress& name) { return name.first % 1000 == 99; }));
  CHECK(FilesIn(c.directory).size() == 1);
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { before_.has_value() ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_CASE("The cache lies where the user says, else where caches lie, else nowhere", "[symbol_cache]") {
  Variable home("HOME", "/home/ann"), caches("XDG_CACHE_HOME", "/var/ann"), own("CADASTRE_SYMBOL_CACHE", "/srv/names");
  CHECK(DefaultSymbolCache() == "/srv/names");
  Variable off("CADASTRE_SYMBOL_CACHE", "off");
  CHECK(DefaultSymbolCache().empty());
  Variable unset("CADASTRE_SYMBOL_CACHE", nullptr);
  CHECK(DefaultSymbolCache() == "/var/ann/cadastre");
  Variable relative("XDG_CACHE_HOME", "ann");  // the specification: to be ignored
  CHECK(DefaultSymbolCache() == "/home/ann/.cache/cadastre");
  Variable homeless("HOME", nullptr);
  CHECK(DefaultSymbolCache().empty());
}

}  // namespace
}  // namespace cadastre
