// Writes JSON straight into a string: a report on 100,000 sites has millions of values, too many to build as a tree
// first.
//
// Numbers: integers as they are, doubles with at most six significant decimals, never NaN or infinity (null). Strings
// are valid UTF-8 whatever comes in: broken bytes become U+FFFD. Thread-safety: plain values.
//
// Example:
//   JsonObject row;
//   row.Text("module", "billing").Integer("live_bytes", 42).TextOrNull("team", "");
//   out += row.Done();   // {"module":"billing","live_bytes":42,"team":null}
#ifndef CADASTRE_REPORT_JSON_WRITER_H_
#define CADASTRE_REPORT_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>
#include "absl/strings/string_view.h"

namespace cadastre {

std::string JsonString(absl::string_view text);
std::string JsonNumber(double value);

class JsonObject {
 public:
  JsonObject& Raw(absl::string_view key, absl::string_view json);
  JsonObject& Text(absl::string_view key, absl::string_view text);
  JsonObject& TextOrNull(absl::string_view key, absl::string_view text);  // empty = null
  JsonObject& Integer(absl::string_view key, uint64_t value);
  JsonObject& IntegerOrNull(absl::string_view key, uint64_t value);  // 0 = null
  JsonObject& Number(absl::string_view key, double value);
  JsonObject& Bool(absl::string_view key, bool value);
  std::string Done() const;

 private:
  std::string body_;
};

// [a,b] with one element a line, indented.
std::string JsonArray(const std::vector<std::string>& elements, absl::string_view indent);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_JSON_WRITER_H_
