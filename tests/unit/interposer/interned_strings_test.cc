// One text has one number for ever: while the table grows through its levels, from many threads at once, and where
// texts meet in one bucket.
#include "interposer/interned_strings.h"

#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "interposer/profile_file.h"
#include "tests/support/catch.h"

using namespace cadastre;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kTexts = 4000;
#else
constexpr int kTexts = 40000;  // several levels of the index
#endif
constexpr int kThreads = 4;

std::string Text(int i) { return "com.acme.billing.Generated" + std::to_string(i) + ".run"; }

std::string TextOf(uint32_t string) {
  const auto* header = reinterpret_cast<const format::StringHeader*>(g_profile.strings + string);
  return std::string(reinterpret_cast<const char*>(header + 1), header->length);
}

uint32_t Intern(const std::string& text) { return InternString(text.data(), text.size()); }

// Room for the strings in memory of the test's own (profile_stub.cc writes them there).
void OpenStrings() {
  if (g_profile.header != nullptr) return;
  static format::Header header;
  static std::vector<uint64_t> units(static_cast<size_t>(kTexts) * 8 * (kThreads + 1));
  g_profile.header = &header;
  g_profile.strings = units.data();
  g_profile.string_units = units.size();
  REQUIRE(InternedStringsInit(units.size()));
}

}  // namespace

TEST_CASE("A text keeps its number while the table grows", "[interned_strings]") {
  OpenStrings();
  std::vector<uint32_t> first(kTexts);
  for (int i = 0; i < kTexts; i++) first[static_cast<size_t>(i)] = Intern(Text(i));
  std::unordered_set<uint32_t> distinct;
  for (int i = 0; i < kTexts; i++) {
    const uint32_t string = first[static_cast<size_t>(i)];
    REQUIRE(string != 0);
    REQUIRE(TextOf(string) == Text(i));
    REQUIRE(Intern(Text(i)) == string);
    REQUIRE(FindInternedString(Text(i).data(), Text(i).size()) == string);
    distinct.insert(string);
  }
  CHECK(distinct.size() == static_cast<size_t>(kTexts));
}

TEST_CASE("What was not brought is not found, and an empty text is no string", "[interned_strings]") {
  OpenStrings();
  CHECK(FindInternedString("com.acme.Never", 14) == 0);
  CHECK(Intern("") == 0);
}

TEST_CASE("Threads that bring the same texts agree on their numbers", "[interned_strings]") {
  OpenStrings();
  std::vector<std::vector<uint32_t>> seen(kThreads, std::vector<uint32_t>(kTexts));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&seen, t] {
      for (int i = 0; i < kTexts; i++) {
        const int text = t % 2 == 0 ? i : kTexts - 1 - i;
        seen[static_cast<size_t>(t)][static_cast<size_t>(text)] = Intern("shared." + Text(text));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kTexts; i++) {
    const uint32_t string = seen[0][static_cast<size_t>(i)];
    REQUIRE(TextOf(string) == "shared." + Text(i));
    for (int t = 1; t < kThreads; t++) REQUIRE(seen[static_cast<size_t>(t)][static_cast<size_t>(i)] == string);
  }
}
