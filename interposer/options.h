// The knobs: one table from which the parser takes its names, and `cadastre run` its flags, their help and their
// checks.
//
// Sources: CADASTRE_OPTIONS="name=value,name=value" in the environment the program was started with.
// Errors: an unknown name or a bad value is one warning line on stderr; the default is kept and the target goes on.
// Thread- and signal-safety: parsed once at start-up, before recording; no allocation, no libc state.
#ifndef CADASTRE_INTERPOSER_OPTIONS_H_
#define CADASTRE_INTERPOSER_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

namespace cadastre {

enum class CommandDetail { kExe, kFull, kNone };
enum class Children { kYes, kNo, kPattern };

inline constexpr size_t kOptionTextBytes = 256;

struct Options {
  uint64_t interval_bytes;     // interval=512k      mean bytes between samples; 1 = every allocation
  uint64_t memory_bytes;       // memory=0           cap of the profile; 0 = min(64m, a quarter of the free space)
  uint64_t min_life_ns;        // min-life=0         a clean exit sooner leaves no file
  uint64_t seed;               // seed=0             0 = random
  uint32_t keep;               // keep=all           dead, saved profiles of the same program beyond N are removed
  uint32_t mode;               // mode=600           permissions of the file, octal
  bool start_paused;           // start=now|paused
  CommandDetail command;       // command=exe|full|none
  Children children;           // children=yes|no|PATTERN
  uint32_t for_pid;            // for=PID            (set by `cadastre run`) the process that it has started
  char out[kOptionTextBytes];  // out=DIR or DIR/NAME.cad, with %p %t %h %e
  char exe[kOptionTextBytes];  // exe=GLOB of program names
  char children_pattern[kOptionTextBytes];
  char expect[kOptionTextBytes];  // expect=jemalloc
  char labels[kOptionTextBytes];  // label=K:V, repeatable; newline-separated here
};

inline constexpr uint32_t kKeepAll = 0xffffffffu;
inline constexpr uint64_t kDefaultIntervalBytes = 512 * 1024;
inline constexpr uint64_t kDefaultMemoryBytes = 64ull << 20;
inline constexpr uint64_t kDefaultExactMemoryBytes =
    1ull << 30;  // exact mode keeps every live block: 48 bytes each and its stack

struct Knob {
  const char* name;
  const char* help;     // one line for `cadastre run --help`; nullptr: set by `cadastre run` alone
  const char* accepts;  // completes "write ..."
  bool (*set)(Options*, const char* text, size_t length);  // false = not understood; the options stay as they were
};
const Knob* Knobs(size_t* count);
const Knob* FindKnob(const char* name, size_t length);  // nullptr = no such option

void SetDefaultOptions(Options* options);

// warn is called with one line for each thing that is not understood.
void ParseOptions(const char* text, Options* options,
                  void (*warn)(const char* what, const char* item, size_t item_length));

// "512k", "64Mi", "1g", "10": powers of 1024. False if it is not a size.
bool ParseSize(const char* text, size_t length, uint64_t* bytes);
// "10m", "90s", "1h", "500ms", "2d", "0".
bool ParseDuration(const char* text, size_t length, uint64_t* nanoseconds);

// What stands for %e, %h, %p and %t in `out`.
struct OutputNames {
  const char* exe;
  const char* host;
  uint64_t pid, start_seconds;
};
// Puts them in. `first` is where the first one begins in `to`, or null. False: there is no room, or another letter
// after "%" ("%%" is a percent sign).
bool ExpandOutput(const char* text, const OutputNames& names, char* to, size_t capacity, const char** first);
// An expanded `out` that ends in ".cad" is a directory and a name; else a directory, and the name becomes empty.
void SplitOutput(const char* text, char* directory, size_t directory_capacity, char* name, size_t name_capacity);

// Shell-like match with * and ?, of the whole text.
bool GlobMatches(const char* pattern, const char* text);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_OPTIONS_H_
