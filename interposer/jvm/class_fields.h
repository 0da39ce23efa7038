// Where the fields of a Java class lie in its objects, as the JVM has laid them out in this process.
//
// Source: InstanceKlass's own list of fields. Until JDK 20 an array of six u2 each (OpenJDK,
// src/hotspot/share/oops/fieldInfo.hpp of those releases), since 21 a stream of compressed numbers
// (oops/fieldInfo.hpp, fieldInfo.inline.hpp), which also has the fields that HotSpot adds to some classes. Thread- and
// signal-safety: reads only, by lasting_memory.h: the class must be one that is not unloaded meanwhile. Once
// for each field. Errors: false if the class itself has no such field, its list has a form that is not known, or cannot
// be read.
#ifndef CADASTRE_INTERPOSER_JVM_CLASS_FIELDS_H_
#define CADASTRE_INTERPOSER_JVM_CLASS_FIELDS_H_

#include <stdint.h>

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

struct ClassField {
  int32_t offset;   // bytes from the object's start
  char type_first;  // of its descriptor: 'L' a class, '[' an array, 'J' a long, ... (JVM Specification, 4.3.2)
};

// The field that class `klass` (InstanceKlass*) itself declares under this name.
bool FindClassField(const VmLayout& layout, uint64_t klass, const char* name, ClassField* field);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_CLASS_FIELDS_H_
