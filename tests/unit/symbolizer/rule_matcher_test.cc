// "Longest matching prefix wins, wherever it stands in the file; order only breaks ties": the heart of the ownership
// rules.
#include "symbolizer/rule_matcher.h"

#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

TEST_CASE("The longest prefix wins whatever the order", "[rule_matcher]") {
  for (bool reversed : {false, true}) {
    RuleMatcher matcher;
    const std::vector<std::string> prefixes = {"acme::", "acme::billing::", "acme::billing::Index"};
    for (size_t i = 0; i < prefixes.size(); i++) {
      size_t rule = reversed ? prefixes.size() - 1 - i : i;
      matcher.Add(prefixes[rule], static_cast<int>(rule));
    }
    CHECK(matcher.Longest("acme::billing::Index::add").rule == 2);
    CHECK(matcher.Longest("acme::billing::Ind").rule == 1);
    CHECK(matcher.Longest("acme::x").rule == 0);
    CHECK(matcher.Longest("acme:").rule == -1);
    CHECK(matcher.Longest("").rule == -1);
  }
}

TEST_CASE("Of equal prefixes the first counts", "[rule_matcher]") {
  RuleMatcher matcher;
  matcher.Add("a", 5);
  matcher.Add("a", 3);
  CHECK(matcher.Longest("abc").rule == 5);
  CHECK(matcher.Longest("abc").length == 1);
}

TEST_CASE("The trie agrees with trying every prefix", "[rule_matcher]") {
  std::mt19937_64 random(11);
  auto word = [&](size_t most) {
    std::string text;
    for (size_t i = random() % (most + 1); i > 0; i--) text += "ab\xc3\xff"[random() % 4];
    return text;
  };
  RuleMatcher matcher;
  std::vector<std::string> prefixes;
  for (int i = 0; i < 200; i++) {
    prefixes.push_back(word(6) + "a");
    matcher.Add(prefixes.back(), i);
  }
  for (int i = 0; i < 5000; i++) {
    std::string text = word(12);
    int best = -1;
    for (size_t rule = 0; rule < prefixes.size(); rule++) {
      if (text.compare(0, prefixes[rule].size(), prefixes[rule]) != 0) continue;
      if (best < 0 || prefixes[rule].size() > prefixes[best].size()) best = static_cast<int>(rule);
    }
    REQUIRE(matcher.Longest(text).rule == best);
  }
}

}  // namespace
}  // namespace cadastre
