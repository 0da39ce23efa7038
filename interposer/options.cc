#include "interposer/options.h"

#include <string.h>

#include "interposer/decimal.h"

namespace cadastre {
namespace {

bool ParseNumber(const char* text, size_t length, unsigned base, uint64_t* value, size_t* used) {
  uint64_t result = 0;
  size_t i = 0;
  for (; i < length && text[i] >= '0' && text[i] < static_cast<char>('0' + base); i++) {
    if (__builtin_mul_overflow(result, base, &result) || __builtin_add_overflow(result, text[i] - '0', &result))
      return false;
  }
  *value = result;
  *used = i;
  return i > 0;
}

bool ParseWhole(const char* text, size_t length, unsigned base, uint64_t* value) {
  size_t used;
  return ParseNumber(text, length, base, value, &used) && used == length;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool Is(const char* text, size_t length, const char* word) {
  return strlen(word) == length && memcmp(text, word, length) == 0;
}

bool CopyText(const char* text, size_t length, char* out) {
  if (length >= kOptionTextBytes) return false;
  memcpy(out, text, length);
  out[length] = '\0';
  return true;
}

// ---- one function a knob; false = not understood

bool SetInterval(Options* o, const char* text, size_t length) {
  uint64_t bytes;
  if (!ParseSize(text, length, &bytes) || bytes == 0 || bytes > (1ull << 50)) return false;
  o->interval_bytes = bytes;
  return true;
}
bool SetMemory(Options* o, const char* text, size_t length) {
  uint64_t bytes;
  if (!ParseSize(text, length, &bytes) || bytes < (1 << 20) || bytes > (1ull << 38)) return false;
  o->memory_bytes = bytes;
  return true;
}
bool SetOut(Options* o, const char* text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (text[i] != '%') continue;
    if (++i == length || strchr("pthe%", text[i]) == nullptr) return false;
  }
  return length > 0 && CopyText(text, length, o->out);
}
bool SetExe(Options* o, const char* text, size_t length) { return length > 0 && CopyText(text, length, o->exe); }
bool SetExpect(Options* o, const char* text, size_t length) { return CopyText(text, length, o->expect); }
bool SetMinLife(Options* o, const char* text, size_t length) { return ParseDuration(text, length, &o->min_life_ns); }
bool SetSeed(Options* o, const char* text, size_t length) { return ParseWhole(text, length, 10, &o->seed); }
bool SetForPid(Options* o, const char* text, size_t length) {
  uint64_t pid;
  if (!ParseWhole(text, length, 10, &pid) || pid > 0x7fffffff) return false;
  o->for_pid = static_cast<uint32_t>(pid);
  return true;
}
bool SetKeep(Options* o, const char* text, size_t length) {
  uint64_t count;
  if (Is(text, length, "all")) {
    o->keep = kKeepAll;
    return true;
  }
  if (!ParseWhole(text, length, 10, &count) || count >= kKeepAll) return false;
  o->keep = static_cast<uint32_t>(count);
  return true;
}
bool SetMode(Options* o, const char* text, size_t length) {
  uint64_t mode;
  if (!ParseWhole(text, length, 8, &mode) || mode > 0777) return false;
  o->mode = static_cast<uint32_t>(mode);
  return true;
}
bool SetStart(Options* o, const char* text, size_t length) {
  if (!Is(text, length, "paused") && !Is(text, length, "now")) return false;
  o->start_paused = Is(text, length, "paused");
  return true;
}
bool SetCommand(Options* o, const char* text, size_t length) {
  if (Is(text, length, "exe")) return o->command = CommandDetail::kExe, true;
  if (Is(text, length, "full")) return o->command = CommandDetail::kFull, true;
  if (Is(text, length, "none")) return o->command = CommandDetail::kNone, true;
  return false;
}
bool SetChildren(Options* o, const char* text, size_t length) {
  if (length == 0) return false;
  if (Is(text, length, "yes")) return o->children = Children::kYes, true;
  if (Is(text, length, "no")) return o->children = Children::kNo, true;
  o->children = Children::kPattern;
  return CopyText(text, length, o->children_pattern);
}
bool AddLabel(Options* o, const char* text, size_t length) {
  const void* colon = memchr(text, ':', length);
  size_t used = strlen(o->labels);
  if (colon == nullptr || colon == text || used + length + 2 > kOptionTextBytes) return false;
  if (used > 0) o->labels[used++] = '\n';
  memcpy(o->labels + used, text, length);
  o->labels[used + length] = '\0';
  return true;
}

// help == nullptr: no user's business.
const Knob kKnobs[] = {
    {"interval", "mean bytes between samples (default 512k); 1 records every allocation",
     "a size from 1 to 1024t, as in 512k or 2m", SetInterval},
    {"out", "directory of the live file (default /dev/shm, else $XDG_RUNTIME_DIR), or DIR/NAME.cad; %p %t %h %e",
     "a directory, or a directory and NAME.cad, with %p (pid), %t (start), %h (host) and %e (program)", SetOut},
    {"memory", "largest size of the profile (default 64m or a quarter of the free space)",
     "a size from 1m to 256g, as in 64m", SetMemory},
    {"exe", "record only programs whose name matches", "a program's name or a pattern with * and ?, as in java*",
     SetExe},
    {"min-life", "a clean exit sooner than this leaves no profile", "a time, as in 500ms, 10s, 5m or 1h", SetMinLife},
    {"keep", "remove dead profiles of the same program beyond this many", "a number, or all", SetKeep},
    {"children", "yes, no or a pattern: programs that the program starts", "yes, no, or a pattern with * and ?",
     SetChildren},
    {"start", "now or paused", "now or paused", SetStart},
    {"seed", "makes sampling repeatable", "a whole number", SetSeed},
    {"mode", "permissions of the profile (default 600)", "octal permissions from 0 to 777, as in 640", SetMode},
    {"command", "exe, full or none: what of the command line is kept", "exe, full or none", SetCommand},
    {"label", "K:V, kept in the profile; may be repeated", "KEY:VALUE; all of them have 255 bytes together", AddLabel},
    {"expect", "the allocator that should serve malloc, e.g. jemalloc", "an allocator's name, as in jemalloc",
     SetExpect},
    {"for", nullptr, "a process id", SetForPid},
};
constexpr size_t kKnobCount = sizeof(kKnobs) / sizeof(kKnobs[0]);

}  // namespace

void SetDefaultOptions(Options* options) {
  memset(options, 0, sizeof(*options));
  options->interval_bytes = kDefaultIntervalBytes;
  options->keep = kKeepAll;
  options->mode = 0600;
  options->exe[0] = '*';
}

const Knob* Knobs(size_t* count) {
  *count = kKnobCount;
  return kKnobs;
}

const Knob* FindKnob(const char* name, size_t length) {
  for (const Knob& knob : kKnobs) {
    if (Is(name, length, knob.name)) return &knob;
  }
  return nullptr;
}

void ParseOptions(const char* text, Options* options, void (*warn)(const char* what, const char* item, size_t length)) {
  while (*text != '\0') {
    size_t length = 0;
    while (text[length] != '\0' && text[length] != ',') length++;
    const char* equals = static_cast<const char*>(memchr(text, '=', length));
    const size_t name_length = equals != nullptr ? static_cast<size_t>(equals - text) : length;
    if (length > 0) {
      const Knob* knob = FindKnob(text, name_length);
      if (knob == nullptr) {
        warn("unknown option", text, length);
      } else if (equals == nullptr || !knob->set(options, equals + 1, length - name_length - 1)) {
        warn("option not understood", text, length);
      }
    }
    text += length;
    if (*text == ',') text++;
  }
}

bool ParseSize(const char* text, size_t length, uint64_t* bytes) {
  size_t used;
  uint64_t value;
  if (!ParseNumber(text, length, 10, &value, &used)) return false;
  int shift = 0;
  if (used < length) {
    char unit = Lower(text[used]);
    if (unit == 'k') shift = 10;
    if (unit == 'm') shift = 20;
    if (unit == 'g') shift = 30;
    if (unit == 't') shift = 40;
    if (shift == 0) return false;
    used++;
    if (used < length && Lower(text[used]) == 'i') used++;
    if (used < length && Lower(text[used]) == 'b') used++;
  }
  if (used != length || (shift != 0 && value >> (64 - shift) != 0)) return false;
  *bytes = value << shift;
  return true;
}

bool ParseDuration(const char* text, size_t length, uint64_t* nanoseconds) {
  struct Unit {
    char name[3];
    uint64_t nanoseconds;
  };
  static const Unit kUnits[] = {{"", 1000000000ull},   {"ms", 1000000ull},      {"s", 1000000000ull},
                                {"m", 60000000000ull}, {"h", 3600000000000ull}, {"d", 86400000000000ull}};
  size_t used;
  uint64_t value;
  if (!ParseNumber(text, length, 10, &value, &used)) return false;
  for (const Unit& unit : kUnits) {
    if (Is(text + used, length - used, unit.name)) return !__builtin_mul_overflow(value, unit.nanoseconds, nanoseconds);
  }
  return false;
}

bool ExpandOutput(const char* text, const OutputNames& names, char* to, size_t capacity, const char** first) {
  size_t used = 0;
  bool fits = true;
  auto put = [&](char c) {
    if (used + 1 < capacity) {
      to[used++] = c;
    } else {
      fits = false;
    }
  };
  // Names come from elsewhere: none may lead out of its directory or end an option.
  auto put_name = [&](const char* name) {
    for (; *name != '\0'; name++) {
      const auto byte = static_cast<unsigned char>(*name);
      put(byte <= ' ' || byte == 0x7f || byte == '/' || byte == '@' || byte == ',' ? '_' : *name);
    }
  };
  auto put_number = [&](uint64_t value) {
    const Decimal number(value);
    for (const char* digit = number.text(); *digit != '\0'; digit++) put(*digit);
  };
  *first = nullptr;
  for (; *text != '\0'; text++) {
    if (*text != '%') {
      put(*text);
      continue;
    }
    if (*first == nullptr) *first = to + used;
    switch (*++text) {
      case 'e':
        put_name(names.exe);
        break;
      case 'h':
        put_name(names.host);
        break;
      case 'p':
        put_number(names.pid);
        break;
      case 't':
        put_number(names.start_seconds);
        break;
      case '%':
        put('%');
        break;
      default:
        return false;
    }
  }
  to[used] = '\0';
  return fits;
}

void SplitOutput(const char* text, char* directory, size_t directory_capacity, char* name, size_t name_capacity) {
  auto copy = [](const char* from, size_t length, char* to, size_t capacity) {
    if (length >= capacity) length = capacity - 1;
    memcpy(to, from, length);
    to[length] = '\0';
  };
  size_t length = strlen(text);
  name[0] = '\0';
  if (length > 4 && memcmp(text + length - 4, ".cad", 4) == 0) {
    const char* slash = strrchr(text, '/');
    const char* file = slash != nullptr ? slash + 1 : text;
    copy(file, strlen(file), name, name_capacity);
    if (slash == nullptr) return copy(".", 1, directory, directory_capacity);
    length = slash == text ? 1 : static_cast<size_t>(slash - text);
  }
  copy(text, length, directory, directory_capacity);
}

bool GlobMatches(const char* pattern, const char* text) {
  const char* star = nullptr;
  const char* retry = nullptr;
  while (*text != '\0') {
    if (*pattern == '*') {
      star = pattern++;
      retry = text;
    } else if (*pattern == '?' || *pattern == *text) {
      pattern++;
      text++;
    } else if (star != nullptr) {
      pattern = star + 1;
      text = ++retry;
    } else {
      return false;
    }
  }
  while (*pattern == '*') pattern++;
  return *pattern == '\0';
}

}  // namespace cadastre
