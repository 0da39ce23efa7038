// Names of code that a just-in-time compiler made: the file /tmp/perf-PID.map that node --perf-basic-prof, .NET,
// LuaJIT, PyPy and others write for perf. (Java frames do not need it: they bring their names along.)
//
// Format (Linux, tools/perf/Documentation/jit-interface.txt): lines "START SIZE NAME", hexadecimal without 0x; NAME
// goes to the end of the line. Memory is used again: a later line counts where two overlap. Errors: a line that is none
// is passed over; no file, or one that is not to be trusted, gives no names. Thread-safety: constant once it is read.
//
// Example:
//   JitSymbols jit = JitSymbols::Read("/tmp/perf-4711.map", start_of_the_process, owner_of_the_profile);
//   const std::string* name = jit.Find(pc);
#ifndef CADASTRE_SYMBOLIZER_JIT_SYMBOLS_H_
#define CADASTRE_SYMBOLIZER_JIT_SYMBOLS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace cadastre {

class JitSymbols {
 public:
  // A file of another user, one written before `start_realtime_ns` (of an earlier process with this number) or a
  // symbolic link is not read: anybody may write to /tmp.
  static JitSymbols Read(const std::string& path, uint64_t start_realtime_ns, uid_t owner);

  static JitSymbols Parse(absl::string_view text);

  // The code that covers pc; nullptr if none does.
  const std::string* Find(uint64_t pc) const;

 private:
  struct Code {
    uint64_t end;
    std::string name;
  };
  void Add(uint64_t start, uint64_t bytes, absl::string_view name);

  std::map<uint64_t, Code> codes_;  // by start; they do not overlap
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_JIT_SYMBOLS_H_
