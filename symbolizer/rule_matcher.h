// A compiled set of prefixes: which rule has the longest prefix of a text. One matcher per key kind.
//
// Speed: one step per character of the text, however many rules there are. Memory: one node per distinct prefix
// character. Errors: none. Thread-safety: const after the last Add.
//
// Example:
//   RuleMatcher matcher;
//   matcher.Add("acme::", 0);
//   matcher.Add("acme::billing::", 1);
//   matcher.Longest("acme::billing::Writer::Grow");  // {rule 1, length 15}
#ifndef CADASTRE_SYMBOLIZER_RULE_MATCHER_H_
#define CADASTRE_SYMBOLIZER_RULE_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace cadastre {

struct RuleMatch {
  int rule = -1;  // -1: none
  size_t length = 0;
};

class RuleMatcher {
 public:
  RuleMatcher() : nodes_(1) {}

  // Of equal prefixes the one that was added first counts.
  void Add(std::string_view prefix, int rule);
  RuleMatch Longest(std::string_view text) const;
  // True if some prefix begins with `text` and goes on.
  bool LeadsOn(std::string_view text) const;

 private:
  struct Node {
    int rule = -1;
    std::vector<std::pair<char, uint32_t>> next;  // sorted by character
  };
  static constexpr uint32_t kNowhere = 0;  // nothing leads back to the root
  uint32_t Step(uint32_t node, char c) const;

  std::vector<Node> nodes_;  // [0] is the root
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_RULE_MATCHER_H_
