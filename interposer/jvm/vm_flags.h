// The JVM's own flags, as far as a reader of a profile wants to know them.
//
// Source: JVMFlag::flags (OpenJDK, src/hotspot/share/runtime/flags/jvmFlag.hpp), found by the tables of vm_structs.h.
// Thread- and signal-safety: reads only; a thousand string comparisons. Errors: nullptr, or what the caller says.
#ifndef CADASTRE_INTERPOSER_JVM_VM_FLAGS_H_
#define CADASTRE_INTERPOSER_JVM_VM_FLAGS_H_

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// "G1", "serial", "parallel", "Z", "Shenandoah", "CMS", "epsilon": the one switched on. Known once Java code has run.
const char* CollectorInUse(const VmLayout& layout);

// Is the flag (a bool) on? otherwise: the answer where this JVM has no such flag, or its flags are not known. Flags are
// settled once the JVM has its first Java thread.
bool IsFlagOn(const VmLayout& layout, const char* name, bool otherwise);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_VM_FLAGS_H_
