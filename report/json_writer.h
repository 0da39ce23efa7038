// Writes JSON piece by piece: a report on 100,000 sites has millions of values, too many to build as a tree first, and
// hundreds of megabytes, too many to hold.
//
// Numbers: integers as they are, doubles with at most six significant decimals, never NaN or infinity (null). Strings
// are valid UTF-8 whatever comes in: broken bytes become U+FFFD. Thread-safety: plain values.
//
// Example:
//   JsonObject row;
//   row.Text("module", "billing").Integer("live_bytes", 42).TextOrNull("team", "");
//   row.Done();   // {"module": "billing", "live_bytes": 42, "team": null}
//   JsonStream out(sink);   // the document, an object with one member a line
//   out.Member("schema", JsonString("cadastre.report/1"));
//   out.Array("modules", report.modules, [&](const Row& row) { return ModuleJson(report, row); });
#ifndef CADASTRE_REPORT_JSON_WRITER_H_
#define CADASTRE_REPORT_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace cadastre {

std::string JsonString(absl::string_view text);
void AppendJsonString(absl::string_view text, std::string* out);
std::string JsonNumber(double value);

class JsonObject {
 public:
  JsonObject() : JsonObject(nullptr) {}
  explicit JsonObject(std::string* out);  // is appended to it; nullptr: a text of its own, which Done returns
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  JsonObject& Raw(absl::string_view key, absl::string_view json);
  JsonObject& Text(absl::string_view key, absl::string_view text);
  JsonObject& TextOrNull(absl::string_view key, absl::string_view text);  // empty = null
  JsonObject& Null(absl::string_view key);
  JsonObject& Integer(absl::string_view key, uint64_t value);
  JsonObject& IntegerOrNull(absl::string_view key, uint64_t value);  // 0 = null
  JsonObject& Number(absl::string_view key, double value);
  JsonObject& Bool(absl::string_view key, bool value);
  // For a long value, which is to be appended to what is returned.
  std::string& Value(absl::string_view key);
  std::string Done();  // once

 private:
  std::string own_;
  std::string* out_;
  bool is_first_ = true;
};

// [a,b] with one element a line, indented.
std::string JsonArray(const std::vector<std::string>& elements, absl::string_view indent);

// Where a long text goes.
using TextSink = absl::FunctionRef<void(absl::string_view)>;
inline constexpr size_t kTextPieceBytes = 256 << 10;  // about as much as is handed on at once

class JsonStream {
 public:
  explicit JsonStream(TextSink sink) : sink_(sink) {}
  ~JsonStream();  // ends the document
  JsonStream(const JsonStream&) = delete;
  JsonStream& operator=(const JsonStream&) = delete;

  void Member(absl::string_view key, absl::string_view json);
  // One element a line, as JsonArray has them.
  template <typename Elements, typename JsonOf>
  void Array(absl::string_view key, const Elements& elements, JsonOf json_of) {
    ArrayOf(key, elements, [&](const auto& element, std::string* out) { out->append(json_of(element)); });
  }
  // The same for elements of kilobytes: append(element, out) appends what would be copied.
  template <typename Elements, typename AppendTo>
  void ArrayOf(absl::string_view key, const Elements& elements, AppendTo append) {
    Begin(key);
    const char* before = "[\n    ";
    for (const auto& element : elements) {
      Append(before);
      append(element, &waiting_);
      before = ",\n    ";
    }
    Append(before[0] == '[' ? "[]" : "\n  ]");
  }

 private:
  void Begin(absl::string_view key);
  void Append(absl::string_view text);

  TextSink sink_;
  bool is_first_ = true;
  std::string waiting_;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_JSON_WRITER_H_
