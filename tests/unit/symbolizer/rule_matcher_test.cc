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

TEST_CASE("On 1,000 random rule sets the trie agrees with trying every prefix", "[rule_matcher]") {
  std::mt19937_64 random(11);
  auto word = [&](size_t most) {
    std::string text;
    for (size_t i = random() % (most + 1); i > 0; i--) text += "ab.\xff"[random() % 4];
    return text;
  };
  for (int set = 0; set < 1000; set++) {
    RuleMatcher matcher;
    std::vector<std::string> prefixes;
    // Few long edges in some sets, many short ones in others; equal prefixes in most.
    size_t longest = 1 + random() % 12;
    for (size_t i = 0, rules = random() % 60; i < rules; i++) {
      prefixes.push_back(word(longest) + "a");
      matcher.Add(prefixes.back(), static_cast<int>(i));
    }
    for (int frame = 0; frame < 100; frame++) {
      std::string text = word(20);
      if (frame % 2 == 0 && !prefixes.empty()) text = prefixes[random() % prefixes.size()] + text;
      int best = -1;
      bool leads_on = false;
      for (size_t rule = 0; rule < prefixes.size(); rule++) {
        leads_on |= prefixes[rule].size() > text.size() && prefixes[rule].compare(0, text.size(), text) == 0;
        if (text.compare(0, prefixes[rule].size(), prefixes[rule]) != 0) continue;
        if (best < 0 || prefixes[rule].size() > prefixes[static_cast<size_t>(best)].size()) {
          best = static_cast<int>(rule);
        }
      }
      RuleMatch match = matcher.Longest(text);
      REQUIRE(match.rule == best);
      REQUIRE(match.length == (best < 0 ? 0 : prefixes[static_cast<size_t>(best)].size()));
      REQUIRE(matcher.LeadsOn(text) == leads_on);
    }
  }
}

}  // namespace
}  // namespace cadastre
