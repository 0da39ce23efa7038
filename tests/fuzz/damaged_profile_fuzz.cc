// A profile is read from a disk that may have been full and from a process that may have died anywhere: whatever its
// bytes, the reader, the symbolizer and the report answer or refuse, and never crash, hang or index past an end. Cut at
// every 512th byte; 10,000 random bit flips, seeded. Most worth its time in the asan build, where a wrong index is an
// abort.
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "report/format.h"
#include "report/rows.h"
#include "symbolizer/owner_rules.h"
#include "symbolizer/profile.h"
#include "symbolizer/symbolizer.h"
#include "tests/support/catch.h"
#include "tests/support/target_process.h"

namespace cadastre {
namespace {

using testing::ProfileOf;
using testing::ScratchDirectory;
using testing::StartRecorded;
using testing::WaitFor;

std::string ReadBytes(const std::string& path) {
  std::string bytes;
  FILE* file = fopen(path.c_str(), "rb");
  if (file == nullptr) return bytes;
  char block[1 << 16];
  while (size_t got = fread(block, 1, sizeof(block), file)) bytes.append(block, got);
  fclose(file);
  return bytes;
}

// A real profile, small because the cap is: threads, thousands of stacks and live blocks, several libraries.
std::string RealProfile() {
  ScratchDirectory out("damaged");
  pid_t pid = StartRecorded({"/bin/bash", "-c", "for i in {1..300}; do x+=$i; a[i]=$x; done; unset a; :"},
                            "interval=1,memory=1m", out.path());
  if (WaitFor(pid) != 0) return "";
  return ReadBytes(ProfileOf(out.path(), pid));
}

const std::string& Original() {
  static const std::string* bytes = new std::string(RealProfile());
  return *bytes;
}

// Everything that a report does with a profile that was accepted. Reading the symbols of its libraries takes far longer
// than all the rest and depends little on the damage, so it is done now and then; otherwise no library is found.
void Report(const Profile& profile, bool with_symbols) {
  static const OwnerRules rules = {BuiltInRules(), ""};
  SymbolizerOptions options;
  options.source_lines = false;
  if (!with_symbols) options.root = "/nonexistent";
  Symbolizer symbolizer(profile, options);
  Attribution attribution(profile, rules, &symbolizer);
  cadastre::Report report = BuildReport(profile, rules, &attribution, &symbolizer, ReportOptions{});
  REQUIRE(!FormatText(report, TextOptions{}).empty());
  uint64_t json_bytes = 0;
  WriteJson(report, std::nullopt, [&](absl::string_view piece) { json_bytes += piece.size(); });
  REQUIRE(json_bytes > 0);
}

// True if it was accepted. `turn` counts the calls.
bool ReadDamaged(const std::string& bytes, uint64_t size, uint64_t turn) {
  // Its own allocation of just that size, so that reading past the end is an error and not luck.
  std::vector<char> exact(bytes.begin(), bytes.begin() + size);
  absl::StatusOr<Profile> profile = ParseProfile("damaged.cad", exact.data(), exact.size());
  if (!profile.ok()) {
    std::string message(profile.status().message());
    REQUIRE(message.find("damaged.cad") != std::string::npos);
    REQUIRE(message.find('\n') == std::string::npos);
    return false;
  }
  // One assertion for all: Catch2 needs more time for one than the reader for a record.
  bool inside = true;
  for (const LiveSample& sample : profile->live) {
    inside = inside && sample.site < profile->sites.size() && sample.thread < profile->threads.size();
  }
  REQUIRE(inside);
  if (turn % 16 == 0) Report(*profile, turn % 512 == 0);
  return true;
}

TEST_CASE("A whole profile is read and reported") {
  REQUIRE(Original().size() > (64 << 10));
  REQUIRE(ReadDamaged(Original(), Original().size(), 0));
}

TEST_CASE("A profile cut at every 512th byte is read as far as it is whole, or refused") {
  const std::string& bytes = Original();
  uint64_t accepted = 0, cuts = 0;
  for (uint64_t size = 0; size < bytes.size(); size += 512, cuts++) {
    INFO("cut at " << size);
    bool taken = ReadDamaged(bytes, size, cuts);
    REQUIRE(taken == (size >= 4096));  // the header is one page; what follows is data that may be missing
    accepted += taken;
  }
  printf("%lu cuts, %lu accepted\n", cuts, accepted);
}

TEST_CASE("10,000 random bit flips never crash the reader or the report") {
  std::string bytes = Original();
  std::mt19937_64 random(1234567);
  // Bytes that say something: a flip in the zeros of unused records is a different, rarer question and gets every
  // fourth turn.
  std::vector<uint64_t> written;
  for (uint64_t i = 0; i < bytes.size(); i++) {
    if (bytes[i] != 0) written.push_back(i);
  }
  REQUIRE(!written.empty());
  uint64_t accepted = 0;
  for (int flip = 0; flip < 10000; flip++) {
    uint64_t place = flip % 4 == 0 ? random() % bytes.size() : written[random() % written.size()];
    // Every fifth one in the header, where sizes and offsets of everything else stand.
    if (flip % 5 == 0) place = random() % 4096;
    char mask = static_cast<char>(1 << random() % 8);
    bytes[place] ^= mask;
    INFO("flip " << flip << ": byte " << place << ", mask " << static_cast<int>(static_cast<unsigned char>(mask)));
    accepted += ReadDamaged(bytes, bytes.size(), flip);
    bytes[place] ^= mask;
  }
  printf("10,000 flips, %lu accepted\n", accepted);
  REQUIRE(accepted > 5000);  // a flip costs the record it is in, not the profile
}

}  // namespace
}  // namespace cadastre
