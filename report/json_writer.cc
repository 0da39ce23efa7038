#include "report/json_writer.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

bool IsPlain(unsigned char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

}  // namespace

void AppendJsonString(absl::string_view text, std::string* out) {
  *out += '"';
  size_t plain = 0;  // where what needs no other spelling began
  for (size_t at = 0; at < text.size();) {
    const unsigned char c = text[at];
    if (IsPlain(c)) {
      at++;
      continue;
    }
    const size_t length = Utf8Length(text, at);
    if (length > 1) {
      at += length;
      continue;
    }
    out->append(text.data() + plain, at - plain);
    if (length == 0) {
      *out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      *out += '\\';
      *out += static_cast<char>(c);
    } else {
      absl::StrAppendFormat(out, "\\u%04x", c);
    }
    plain = ++at;
  }
  out->append(text.data() + plain, text.size() - plain);
  *out += '"';
}

std::string JsonString(absl::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  AppendJsonString(text, &out);
  return out;
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = absl::StrFormat("%.6f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

JsonObject::JsonObject(std::string* out) : out_(out != nullptr ? out : &own_) { *out_ += '{'; }

std::string& JsonObject::Value(absl::string_view key) {
  out_->append(is_first_ ? "\"" : ", \"");
  is_first_ = false;
  out_->append(key.data(), key.size()).append("\": ");
  return *out_;
}

JsonObject& JsonObject::Raw(absl::string_view key, absl::string_view json) {
  Value(key).append(json.data(), json.size());
  return *this;
}
JsonObject& JsonObject::Null(absl::string_view key) { return Raw(key, "null"); }
JsonObject& JsonObject::Text(absl::string_view key, absl::string_view text) {
  AppendJsonString(text, &Value(key));
  return *this;
}
JsonObject& JsonObject::TextOrNull(absl::string_view key, absl::string_view text) {
  return text.empty() ? Null(key) : Text(key, text);
}
JsonObject& JsonObject::Integer(absl::string_view key, uint64_t value) {
  absl::StrAppend(&Value(key), value);
  return *this;
}
JsonObject& JsonObject::IntegerOrNull(absl::string_view key, uint64_t value) {
  return value == 0 ? Null(key) : Integer(key, value);
}
JsonObject& JsonObject::Number(absl::string_view key, double value) { return Raw(key, JsonNumber(value)); }
JsonObject& JsonObject::Bool(absl::string_view key, bool value) { return Raw(key, value ? "true" : "false"); }
std::string JsonObject::Done() {
  *out_ += '}';
  return std::move(own_);
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
