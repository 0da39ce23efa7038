// Steps that the unwind rules cannot express, done by libunwind: the one file that names it.
//
// libunwind is a copy of the distribution's, libcadastre-unwind.so, which lies beside libcadastre.so and is mapped, not
// loaded (unwind_image.h says why). It works through our accessors alone: registers from the caller, stack words from
// StackMemory, unwind tables from the library map. Its guess by frame pointer where there is no table is out of reach:
// find_proc_info fails with an error that ends the walk.
//
// Thread- and signal-safety: Init runs in the constructor, outside hooks. Step is safe in hooks: no lock, no
// allocation; the first one makes the few system calls of preparing it. Errors: without the library Step returns false,
// and the stack ends there, marked.
#ifndef CADASTRE_INTERPOSER_STACK_UNWIND_H_
#define CADASTRE_INTERPOSER_STACK_UNWIND_H_

#include <stdint.h>

#include "interposer/stack_capture.h"
#include "interposer/stack_memory.h"

namespace cadastre {

// Maps libcadastre-unwind.so from the directory of `own_path`.
void StackUnwindInit(const char* own_path);
// What else the first step does, for whom it must not do it later (before a sandbox). False: there will be no steps.
bool StackUnwindPrepare();

struct UnwoundFrame {
  uint64_t pc, sp, rbp;
  bool exact;  // it was interrupted: pc is the instruction itself
};

// Walks `steps` frames outwards from the registers of the leaf (libunwind needs every callee-saved register, and only
// the leaf's are known).
bool StackUnwindStep(const EntryRegisters& registers, uint32_t steps, StackMemory* memory, UnwoundFrame* frame);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_STACK_UNWIND_H_
