#include "report/frame_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "report/function_name.h"

namespace cadastre {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool ConsumeMarker(std::string_view* text, std::string_view marker) {
  // `lib::` is a namespace.
  if (text->substr(0, marker.size()) != marker || text->substr(marker.size(), 1) == ":") return false;
  text->remove_prefix(marker.size());
  return true;
}

// FlameGraph's and async-profiler's marks: jitted, interpreted, inlined, kernel, C1.
std::string_view WithoutMark(std::string_view text) {
  for (std::string_view mark : {"_[j]", "_[i]", "_[k]", "_[0]", "_[1]"}) {
    if (text.size() > mark.size() && EndsWith(text, mark)) return text.substr(0, text.size() - mark.size());
  }
  return text;
}

// "Invoice.java:88", "writer.cc": a dot and an extension that no library has, or a line.
bool IsSourcePlace(std::string_view place) {
  size_t colon = place.rfind(':');
  if (colon != std::string_view::npos && colon + 1 < place.size() &&
      std::all_of(place.begin() + static_cast<std::ptrdiff_t>(colon) + 1, place.end(), absl::ascii_isdigit)) {
    return true;
  }
  for (std::string_view extension :
       {".java", ".kt", ".scala", ".groovy", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs", ".go"}) {
    if (EndsWith(place, extension)) return true;
  }
  return false;
}

bool LooksLikeJava(std::string_view name) {
  return !Contains(name, "::") && !Contains(name, "(") && Contains(name, ".");
}

// "com/acme/Invoice.add": slashes alone up to the method's dot.
bool HasSlashedClass(std::string_view name) {
  size_t slash = name.find('/'), dot = name.find('.');
  return slash != std::string_view::npos && slash > 0 && dot != std::string_view::npos && dot > name.rfind('/') &&
         !Contains(name, "::") && !Contains(name, " ") && !Contains(name, ".so");
}

// Without the loader and the module that a stack trace of Java puts first: "java.base/", "app//", "app/m@1/". Go's
// "github.com/acme/shop.Add" has no version, and its first part is no module of the JDK's.
std::string_view WithoutModule(std::string_view name) {
  const std::string_view head = name.substr(0, name.find('('));
  const size_t slash = head.find('/'), two = head.find("//"), at = head.find('@');
  if (slash == 0 || slash == std::string_view::npos || Contains(head, " ") || Contains(head, ".so")) return name;
  if (two != std::string_view::npos) return name.substr(two + 2);
  const bool of_jdk = head.substr(0, 5) == "java." || head.substr(0, 4) == "jdk.";
  if (at == std::string_view::npos && !of_jdk) return name;
  const size_t behind = at == std::string_view::npos ? slash : head.find('/', at);
  return behind == std::string_view::npos ? name : name.substr(behind + 1);
}

void SetFunction(std::string_view name, Frame* frame) {
  name = WithoutModule(name);
  frame->function = name;
  frame->resolved = true;
  if (HasSlashedClass(name)) std::replace(frame->function.begin(), frame->function.end(), '/', '.');
  frame->java = LooksLikeJava(frame->function);
}

Frame PlainReading(std::string_view text) {
  Frame frame;
  if (ConsumeMarker(&text, "lib:")) {
    frame.library = text;
    return frame;
  }
  if (ConsumeMarker(&text, "src:")) {
    frame.file = text;
    return frame;
  }
  text = WithoutMark(text);
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (bracketed && Contains(text, ".so")) {
    frame.library = text.substr(1, text.size() - 2);
    return frame;
  }
  size_t offset = text.rfind("+0x");
  if (offset != std::string_view::npos && offset > 0 && Contains(text.substr(0, offset), ".so")) {
    frame.library = text.substr(0, offset);
    frame.function = text;
    return frame;
  }
  size_t place = text.rfind(" (");
  if (place != std::string_view::npos && place > 0 && text.back() == ')') {
    std::string_view where = text.substr(place + 2, text.size() - place - 3);
    SetFunction(text.substr(0, place), &frame);
    if (IsSourcePlace(where)) {
      frame.file = where.substr(0, where.rfind(':'));
    } else {
      frame.library = where;
      frame.java = false;
    }
    return frame;
  }
  size_t bang = text.find_first_of("!`");
  if (bang != std::string_view::npos && Contains(text.substr(0, bang), ".so")) {
    SetFunction(text.substr(bang + 1), &frame);
    frame.library = text.substr(0, bang);
    frame.java = false;
    return frame;
  }
  SetFunction(text, &frame);
  return frame;
}

}  // namespace

std::vector<Frame> ReadingsOfText(std::string_view text) {
  std::vector<Frame> readings;
  readings.push_back(PlainReading(text));  // a braced list would copy it
  const Frame& plain = readings.front();
  if (!plain.resolved || !Contains(plain.function, "(")) return readings;
  const std::string name = QualifiedName(plain.function);
  if (name == plain.function) return readings;
  Frame bare = plain;
  SetFunction(name, &bare);
  bare.java = bare.java && bare.library.empty();
  readings.insert(readings.begin(), std::move(bare));
  return readings;
}

const Rule* FindRuleOfText(const FrameOwner& owner, std::string_view text) {
  for (const Frame& frame : ReadingsOfText(text)) {
    if (const Rule* rule = owner.Find(frame)) return rule;
  }
  return nullptr;
}

}  // namespace cadastre
