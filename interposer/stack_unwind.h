// Steps that the unwind rules cannot express, done by libunwind: the one file that names it.
//
// libunwind is a copy of our own, libcadastre-unwind.so, which lies beside libcadastre.so. make_private_unwind.cc says
// what is changed in it and why: above all its SONAME, so that the program never gets it in place of its own, and its
// locks. It works through our accessors alone: registers from the caller, stack words from StackMemory, unwind tables
// from the library map. Its guess by frame pointer where there is no table is out of reach: find_proc_info fails with
// an error that ends the walk.
//
// Thread- and signal-safety: Init runs in the constructor, outside hooks. Step is safe in hooks: no lock, no
// allocation, no system call. Errors: without the library Step returns false, and the stack ends there, marked.
#ifndef CADASTRE_INTERPOSER_STACK_UNWIND_H_
#define CADASTRE_INTERPOSER_STACK_UNWIND_H_

#include <stdint.h>

#include "interposer/stack_capture.h"
#include "interposer/stack_memory.h"

namespace cadastre {

// Loads libcadastre-unwind.so from the directory of `own_path`. Leaves errno and dlerror as they were.
void StackUnwindInit(const char* own_path);
bool StackUnwindAvailable();

struct UnwoundFrame {
  uint64_t pc, sp, rbp;
  bool exact;  // it was interrupted: pc is the instruction itself
};

// Walks `steps` frames outwards from the registers of the leaf (libunwind needs every callee-saved register, and only
// the leaf's are known).
bool StackUnwindStep(const EntryRegisters& registers, uint32_t steps, StackMemory* memory, UnwoundFrame* frame);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_STACK_UNWIND_H_
