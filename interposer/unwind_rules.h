// The unwind rule of one pc: how to get from a frame to its caller, in a form that is cheap to cache and to follow.
//
// A rule covers what compilers emit: CFA from rsp or rbp plus an offset, the return address at CFA-8, rbp unchanged or
// saved at a place relative to CFA or rbp; the realigned frames of gcc (CFA = *(rbp + offset)), PLT entries (whose
// expression is a constant once the pc is known) and the signal trampoline of glibc. Everything else is
// kUnwindByLibrary: libunwind steps over it. rbp is followed only where such a rule says so. Thread- and signal-safety:
// pure functions over mapped tables; safe in hooks.
#ifndef CADASTRE_INTERPOSER_UNWIND_RULES_H_
#define CADASTRE_INTERPOSER_UNWIND_RULES_H_

#include <stdint.h>

#include "interposer/eh_frame.h"

namespace cadastre {

enum UnwindKind : uint8_t {
  kUnwindNoTable = 0,    // no FDE, or a damaged one: the stack ends here, cut
  kUnwindEnd = 1,        // the return address is undefined: the stack ends here, whole
  kUnwindFromRsp = 2,    // CFA = rsp + cfa_offset
  kUnwindFromRbp = 3,    // CFA = rbp + cfa_offset
  kUnwindRspDeref = 4,   // CFA = *(rsp + cfa_offset) + cfa_addend
  kUnwindRbpDeref = 5,   // CFA = *(rbp + cfa_offset) + cfa_addend
  kUnwindSignal = 6,     // rsp points to the ucontext that the kernel left
  kUnwindByLibrary = 7,  // not expressible
};
enum SavedRbp : uint8_t {
  kRbpUnchanged = 0,
  kRbpAtCfa = 1,  // caller's rbp = *(CFA + rbp_offset)
  kRbpAtRbp = 2,  // caller's rbp = *(rbp + rbp_offset)
};

struct UnwindRule {
  int32_t cfa_offset = 0;
  int16_t rbp_offset = 0;
  UnwindKind kind = kUnwindNoTable;
  SavedRbp saved_rbp = kRbpUnchanged;
  uint8_t cfa_addend = 0;
};

// Interprets the programs up to pc: an exact pc as it is, a return address minus one (the call, not what follows it).
UnwindRule BuildUnwindRule(const FrameTable& table, uint64_t pc);

// Offsets of the interrupted registers in ucontext_t on x86-64 (kernel ABI: struct ucontext with struct sigcontext).
inline constexpr uint32_t kUcontextRbp = 120, kUcontextRsp = 160, kUcontextRip = 168;

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_UNWIND_RULES_H_
