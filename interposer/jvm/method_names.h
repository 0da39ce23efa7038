// From a Method* and a place in its bytecode to a frame word of the profile, with the method's name interned there.
//
// The method must stand on the caller's own stack: then it cannot be unloaded, and its name may be read. What is
// remembered by Method* counts only while both of its symbols are the same, for a Method* is used again after
// unloading. Thread- and signal-safety: lock-free, safe in hooks; a system call only for a method never seen before.
// Errors: 0 where the method cannot be read or the profile has no room for its name.
#ifndef CADASTRE_INTERPOSER_JVM_METHOD_NAMES_H_
#define CADASTRE_INTERPOSER_JVM_METHOD_NAMES_H_

#include <stdint.h>

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// bytecode: index of the call in the method's bytecode; -1 = at its entry, or not known (no line).
uint64_t JavaFrameAtIndex(const VmLayout& layout, uint64_t method, int32_t bytecode);

// The same for a frame of the interpreter, which keeps an address in the bytecode (0 in a native method).
// careful: the frame may not be filled in yet, so nothing is taken for a method before it has been probed.
uint64_t JavaFrameAtAddress(const VmLayout& layout, uint64_t method, uint64_t bytecode_address, bool careful);

// Index of the method's name in the profile's strings. 0 as above.
uint32_t JavaMethodName(const VmLayout& layout, uint64_t method);

// Is it this method, whatever its parameters? class_name as HotSpot keeps it, with slashes.
bool IsMethod(const VmLayout& layout, uint64_t method, const char* class_name, const char* method_name);

// Is this the Symbol's text?
bool IsSymbol(const VmLayout& layout, uint64_t symbol, const char* text);

// The line of a call: HotSpot's compressed table of (bytecode, line) pairs at `table`
// (OpenJDK, src/hotspot/share/code/compressedStream.hpp and oops/method.cpp). 0 = not known.
uint32_t LineAt(uint64_t table, uint32_t bytecode, uint32_t excluded);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_METHOD_NAMES_H_
