#include "symbolizer/library_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace cadastre {
namespace {

constexpr size_t kUuidLength = 36;
constexpr size_t kRandomDigits = 4;  // shorter runs are versions: libcudart11.so, libz3.so
constexpr size_t kRandomHex = 8;

bool IsSeparator(char c) { return c == '-' || c == '_' || c == '.'; }

bool IsUuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  for (size_t i = 0; i < text.size(); i++) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !absl::ascii_isxdigit(text[i])) return false;
  }
  return true;
}

// Length of the random part at the end of a stem; 0 = none.
size_t RandomTail(std::string_view stem) {
  if (stem.size() > kUuidLength && IsUuid(stem.substr(stem.size() - kUuidLength))) return kUuidLength;
  size_t digits = 0, hex = 0;
  while (digits < stem.size() && absl::ascii_isdigit(stem[stem.size() - 1 - digits])) digits++;
  while (hex < stem.size() && absl::ascii_isxdigit(stem[stem.size() - 1 - hex])) hex++;
  // libnetty_tcnative_linux_x86_64123456.so: the 64 belongs to the name.
  std::string_view before = stem.substr(0, stem.size() - digits);
  for (std::string_view machine : {"x86_64", "aarch_64", "aarch64", "linux64", "linux-x86-64"}) {
    std::string_view head = machine.substr(0, machine.size() - 2);
    if (before.size() >= head.size() && before.substr(before.size() - head.size()) == head &&
        stem.substr(before.size(), 2) == "64" && digits >= 2 + kRandomDigits) {
      return digits - 2;
    }
  }
  // Hex only after a separator and with a digit in it: "libfacade.so" is a name.
  std::string_view run = stem.substr(stem.size() - hex);
  if (hex >= kRandomHex && hex < stem.size() && IsSeparator(stem[stem.size() - 1 - hex]) &&
      std::any_of(run.begin(), run.end(), absl::ascii_isdigit)) {
    return hex;
  }
  return digits >= kRandomDigits ? digits : 0;
}

// Where the extension begins: ".so", else the last dot.
size_t ExtensionAt(std::string_view name) {
  size_t at = name.find(".so");
  if (at != std::string_view::npos && at > 0) return at;
  at = name.rfind('.');
  return at == std::string_view::npos || at == 0 ? name.size() : at;
}

void AddOnce(std::string name, std::vector<std::string>* names) {
  if (!name.empty() && std::find(names->begin(), names->end(), name) == names->end()) names->push_back(std::move(name));
}

}  // namespace

std::string_view WithoutDeleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.size() > kDeleted.size() && path.substr(path.size() - kDeleted.size()) == kDeleted) {
    path.remove_suffix(kDeleted.size());
  }
  return path;
}

std::string_view FileNameOf(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::vector<std::string> LibraryNames(std::string_view path, std::string_view soname) {
  std::vector<std::string> names;
  path = WithoutDeleted(path);
  AddOnce(std::string(path), &names);
  std::string_view name = FileNameOf(path);
  AddOnce(std::string(name), &names);
  AddOnce(std::string(soname), &names);
  // A uuid inside: what comes after it is a name as well (snappy-1.1.10-<uuid>-libsnappyjava.so).
  for (size_t i = 0; i + kUuidLength + 1 < name.size(); i++) {
    if (IsUuid(name.substr(i, kUuidLength)) && IsSeparator(name[i + kUuidLength])) {
      AddOnce(std::string(name.substr(i + kUuidLength + 1)), &names);
      break;
    }
  }
  size_t extension_at = ExtensionAt(name);
  std::string_view stem = name.substr(0, extension_at);
  std::string extension(name.substr(extension_at));
  for (size_t tail = RandomTail(stem); tail > 0 && tail < stem.size(); tail = RandomTail(stem)) {
    stem.remove_suffix(tail);
    while (!stem.empty() && IsSeparator(stem.back())) stem.remove_suffix(1);
    if (stem.empty()) break;
    AddOnce(std::string(stem) + extension, &names);
  }
  return names;
}

}  // namespace cadastre
