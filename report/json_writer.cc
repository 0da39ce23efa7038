#include "report/json_writer.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "symbolizer/utf8.h"

namespace cadastre {

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  for (size_t at = 0; at < text.size();) {
    unsigned char c = text[at];
    size_t length = Utf8Length(text, at);
    if (length == 0) {
      out += "\\ufffd";
      at++;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
      at++;
    } else if (c < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
      at++;
    } else {
      absl::StrAppend(&out, text.substr(at, length));
      at += length;
    }
  }
  return out += '"';
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = absl::StrFormat("%.6f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string& JsonObject::Value(absl::string_view key) {
  absl::StrAppend(&text_, text_.size() == 1 ? "\"" : ", \"", key, "\": ");
  return text_;
}

JsonObject& JsonObject::Raw(absl::string_view key, absl::string_view json) {
  Value(key).append(json.data(), json.size());
  return *this;
}
JsonObject& JsonObject::Text(absl::string_view key, absl::string_view text) { return Raw(key, JsonString(text)); }
JsonObject& JsonObject::TextOrNull(absl::string_view key, absl::string_view text) {
  return text.empty() ? Raw(key, "null") : Text(key, text);
}
JsonObject& JsonObject::Integer(absl::string_view key, uint64_t value) { return Raw(key, absl::StrCat(value)); }
JsonObject& JsonObject::IntegerOrNull(absl::string_view key, uint64_t value) {
  return value == 0 ? Raw(key, "null") : Integer(key, value);
}
JsonObject& JsonObject::Number(absl::string_view key, double value) { return Raw(key, JsonNumber(value)); }
JsonObject& JsonObject::Bool(absl::string_view key, bool value) { return Raw(key, value ? "true" : "false"); }
std::string JsonObject::Done() {
  text_ += '}';
  return std::move(text_);
}

std::string JsonArray(const std::vector<std::string>& elements, absl::string_view indent) {
  if (elements.empty()) return "[]";
  std::string out = "[";
  for (size_t i = 0; i < elements.size(); i++) absl::StrAppend(&out, i == 0 ? "\n" : ",\n", indent, "  ", elements[i]);
  absl::StrAppend(&out, "\n", indent, "]");
  return out;
}

JsonStream::~JsonStream() {
  Append(is_first_ ? "{}\n" : "\n}\n");
  sink_(waiting_);
}

void JsonStream::Member(absl::string_view key, absl::string_view json) {
  Begin(key);
  Append(json);
}

void JsonStream::Begin(absl::string_view key) {
  Append(is_first_ ? "{\n  \"" : ",\n  \"");
  Append(key);
  Append("\": ");
  is_first_ = false;
}

void JsonStream::Append(absl::string_view text) {
  waiting_.append(text.data(), text.size());
  if (waiting_.size() < kTextPieceBytes) return;
  sink_(waiting_);
  waiting_.clear();
}

}  // namespace cadastre
