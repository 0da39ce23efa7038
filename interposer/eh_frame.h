// Finds the unwind table entry (FDE) that covers a pc, in the .eh_frame of a loaded library.
//
// Format: Linux Standard Base, "Exception Frames" (.eh_frame_hdr with its binary search table, .eh_frame), and DWARF
// 5, 6.4. Thread- and signal-safety: reads mapped read-only tables, nothing else: safe in hooks. The library must stay
// loaded meanwhile. Errors: false if nothing covers pc, or the tables are damaged: every read stays inside
// [tables_start, tables_end).
//
// Example:
//   FrameTable table;
//   if (FindFrameTable(library, pc - 1, &table)) rule = BuildUnwindRule(table, pc - 1);
#ifndef CADASTRE_INTERPOSER_EH_FRAME_H_
#define CADASTRE_INTERPOSER_EH_FRAME_H_

#include <stdint.h>

#include "interposer/library_map.h"

namespace cadastre {

// A bounded reader. After the first read past the end ok is false and every value is 0.
struct TableCursor {
  const uint8_t* at;
  const uint8_t* end;
  bool ok = true;

  bool done() const { return !ok || at >= end; }
  uint8_t U8() { return Fixed<uint8_t>(); }
  uint16_t U16() { return Fixed<uint16_t>(); }
  uint32_t U32() { return Fixed<uint32_t>(); }
  uint64_t U64() { return Fixed<uint64_t>(); }
  uint64_t Uleb();
  int64_t Sleb();
  void Skip(uint64_t bytes);
  // A pointer in one of the DW_EH_PE_* encodings; `data_base` is what datarel means here.
  uint64_t Pointer(uint8_t encoding, uint64_t data_base);

 private:
  template <typename T>
  T Fixed() {
    T value = 0;
    if (!ok || static_cast<uint64_t>(end - at) < sizeof(T)) {
      ok = false;
      return 0;
    }
    __builtin_memcpy(&value, at, sizeof(T));
    at += sizeof(T);
    return value;
  }
};

// One FDE with what its CIE says.
struct FrameTable {
  uint64_t start, end;                         // the code it covers
  const uint8_t *initial_begin, *initial_end;  // the CIE's program
  const uint8_t *program_begin, *program_end;  // the FDE's program
  uint64_t code_alignment;
  int64_t data_alignment;
  uint64_t return_register;
  uint8_t pointer_encoding;
  bool signal_frame;  // 'S': the frame outside this one was interrupted, its pc is exact
};

bool FindFrameTable(const LibraryEntry& library, uint64_t pc, FrameTable* table);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_EH_FRAME_H_
