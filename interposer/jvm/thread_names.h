// The whole name of a thread, where the kernel keeps 15 characters of it.
//
// A JavaThread refers to its java.lang.Thread, that to its name. It is read with the care that heap_path.h describes,
// and counts only if the object says that it belongs to this very thread (Thread.eetop) and the name is what the
// kernel's was cut from. HotSpot's own threads (NamedThread) keep a C string. Thread- and signal-safety: safe in hooks;
// six system calls, under 2 KiB of stack. Errors: see ThreadNameAnswer.
#ifndef CADASTRE_INTERPOSER_JVM_THREAD_NAMES_H_
#define CADASTRE_INTERPOSER_JVM_THREAD_NAMES_H_

#include <stddef.h>
#include <stdint.h>

#include "interposer/jvm/jvm.h"
#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// Of the thread whose Thread* is `thread`, which must be the calling one.
ThreadNameAnswer ReadThreadName(const VmLayout& layout, uint64_t thread, const char* kernel_name, ThreadName* name);

// How HotSpot writes a name for the kernel (modified UTF-8, Java Native Interface Specification, chapter 3), and how
// the profile has it: in UTF-8, half a surrogate pair replaced by U+FFFD, control characters by '?'.
enum class NameForm { kKernel, kProfile };

// latin1: one byte for each character; else UTF-16. Returns the length; 0 if it does not fit.
size_t WriteName(const void* characters, uint32_t count, bool latin1, NameForm form, char* out, size_t capacity);

// Can kernel_name be what is left of the name (in the kernel's form)? All of 15 bytes, or the first 15, or since JDK 21
// seven, "..", and the last six (OpenJDK, src/hotspot/os/linux/os_linux.cpp, os::set_native_thread_name).
bool IsCutFrom(const char* kernel_name, const char* name, size_t length);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_THREAD_NAMES_H_
