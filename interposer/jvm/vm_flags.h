// The JVM's own flags, as far as a reader of a profile wants to know them.
//
// Source: JVMFlag::flags (OpenJDK, src/hotspot/share/runtime/flags/jvmFlag.hpp), found by the tables of vm_structs.h.
// Thread- and signal-safety: reads only; a thousand string comparisons. Errors: nullptr, false.
#ifndef CADASTRE_INTERPOSER_JVM_VM_FLAGS_H_
#define CADASTRE_INTERPOSER_JVM_VM_FLAGS_H_

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// "G1", "serial", "parallel", "Z", "Shenandoah", "CMS", "epsilon": the one switched on. Known once Java code has run.
const char* CollectorInUse(const VmLayout& layout);

// Is the flag switched on? False also for a name that this JVM does not know. *known, if asked for, says whether it
// does.
bool IsFlagOn(const VmLayout& layout, const char* name, bool* known = nullptr);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_VM_FLAGS_H_
