// HotSpot's description of itself: where in its own structures the walker finds what it reads.
//
// Source: the tables gHotSpotVMStructs, gHotSpotVMTypes, gHotSpotVMIntConstants and gHotSpotVMLongConstants that every
// product libjvm.so exports (made for the serviceability agent; OpenJDK, src/hotspot/share/runtime/vmStructs.hpp).
// Offsets are bytes. Nothing is taken as known that the tables can tell; what they do not tell (the slots of an
// interpreter frame, the form of debug information) follows from the JDK's feature version. Thread- and signal-safety:
// ReadVmStructs runs once; afterwards the layout is constant. Errors: a field that is needed and not there makes the
// layout unusable; its name is kept.
//
// Example:
//   VmLayout layout;
//   if (!ReadVmStructs(libjvm, &layout)) Say(layout.missing);
#ifndef CADASTRE_INTERPOSER_JVM_VM_STRUCTS_H_
#define CADASTRE_INTERPOSER_JVM_VM_STRUCTS_H_

#include <link.h>
#include <stdint.h>

namespace cadastre {

inline constexpr int32_t kNoField = -1;

struct VmLayout {
  const char* missing;  // "Type::_field" of the first that is needed and not there; nullptr = usable
  const char* version;  // libjvm's own text, "17.0.15+6-Debian-1" (8: "25.392-b08"); nullptr = not known
  int feature;          // JDK 8, 11, 17, ...; 0 = not known

  // Variables of libjvm, by address. They get their values while the JVM starts.
  const uint64_t* code_heaps;  // GrowableArray<CodeHeap*>*; or code_heap
  const uint64_t* code_heap;   // CodeHeap* (8)
  const uint64_t* code_low;    // bounds of all code heaps; nullptr in 8
  const uint64_t* code_high;
  const uint64_t* interpreter;          // StubQueue*
  const uint64_t* call_stub_return_pc;  // where Java returns to the native code that called it

  const uint64_t* flags;  // JVMFlag[]; nullptr = not known, as are the next
  const uint64_t* flag_count;

  // For the Java heap (heap_references.h, class_fields.h); nullptr = not known.
  const uint64_t* thread_class;  // InstanceKlass* of java.lang.Thread
  const uint64_t* string_class;
  const uint64_t* vm_symbols;        // Symbol*[], names of fields that HotSpot adds to classes
  const uint64_t* collected_heap;    // CollectedHeap*
  const uint64_t* narrow_oop_base;   // address = base + (value << shift)
  const uint64_t* narrow_oop_shift;  // int, as the other shift
  const uint64_t* narrow_class_base;
  const uint64_t* narrow_class_shift;
  const uint64_t* z_globals;  // ZGlobalsForVMStructs*; XGlobalsForVMStructs*: the single-generation Z of 21 to 23
  const uint64_t* x_globals;

  int32_t flag_bytes, flag_name, flag_address;                // JVMFlag
  int32_t array_length, array_data;                           // GrowableArray
  int32_t heap_memory, heap_segmap, heap_log2_segment_bytes;  // CodeHeap
  int32_t space_low, space_high;                              // VirtualSpace
  int32_t block_used, block_bytes;                            // HeapBlock: header before each blob, and its size
  int32_t stubs_begin, stubs_bytes;                           // StubQueue

  int32_t blob_name, blob_bytes, blob_frame_words;  // CodeBlob
  int32_t blob_code_begin;                          // pointer; or
  int32_t blob_code_offset;                         // from the blob's start
  int32_t blob_data_offset;                         // from the blob's start
  int32_t blob_mutable_data, blob_relocation_bytes;

  int32_t nmethod_method, nmethod_original_pc;
  int32_t nmethod_compile_id;      // int, another one for each compilation; kNoField: frames are looked up each time
  int32_t nmethod_immutable_data;  // pointer that pcs and scopes are relative to; none: the blob's start
  int32_t nmethod_pcs, nmethod_pcs_end;
  int32_t nmethod_scopes_begin;   // pointer; or
  int32_t nmethod_scopes_offset;  // int
  int32_t nmethod_metadata;       // offset; its width in bytes:
  int32_t nmethod_metadata_width;
  int32_t nmethod_deopt_begin, nmethod_deopt_mh_begin;    // pointers; or
  int32_t nmethod_deopt_offset, nmethod_deopt_mh_offset;  // from the blob's start
  int32_t pc_desc_bytes, pc_desc_pc, pc_desc_scope;       // PcDesc

  int32_t method_constants, method_flags;  // Method::_constMethod, _access_flags
  int32_t const_method_bytes, const_pool, const_flags, const_flags_bytes, const_code_bytes, const_name_index;
  uint32_t has_line_numbers;  // bit in const_flags
  int32_t pool_bytes, pool_holder, pool_source_file_index, klass_name, symbol_length, symbol_body;

  int32_t thread_anchor, thread_os_thread, os_thread_id, thread_unpacking;  // JavaThread, OSThread
  int32_t anchor_sp, anchor_pc, anchor_fp, call_wrapper_anchor;
  int32_t compiler_env, env_task, task_method;

  // Of threads and the Java heap; any of them may be kNoField.
  int32_t thread_object;                    // JavaThread::_threadObj: the reference; or
  int32_t thread_object_handle;             // the address of one
  int32_t named_thread_name;                // NamedThread::_name: char*
  int32_t heap_in_pause, heap_collections;  // CollectedHeap: bool and u4
  int32_t oop_mark, oop_class, oop_narrow_class;
  int32_t class_super, class_instance_bytes;  // Klass: _super, _layout_helper
  int32_t class_constants, class_methods;     // InstanceKlass
  int32_t class_fields, class_field_count;    // Array<u2>* and u2, until 20; or
  int32_t class_field_stream;                 // Array<u1>*
  int32_t vm_array_length;                    // Array<T>::_length: int
  int32_t u1_array_data, u2_array_data, method_array_data;
  int32_t z_weak_bad_mask, x_weak_bad_mask;  // until 20; of x_globals
  int32_t z_load_bad_mask, z_load_shift;     // generational
  // Bits of a field's flags in the stream, and where the class begins in the mark of a compact header. 0 = not known.
  uint32_t field_initialized, field_injected, field_generic, field_stable, field_contended;
  uint32_t mark_class_shift;

  int32_t interpreter_bytecode_slot;  // words from rbp
  int32_t call_wrapper_slot;
  uint32_t unsigned5_excluded;  // lowest byte that the compressed numbers do not use
};

// False if libjvm cannot be walked; layout->missing says why.
bool ReadVmStructs(const link_map* libjvm, VmLayout* layout);

// Does this library describe itself as a HotSpot JVM?
bool IsHotSpot(const link_map* library);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_VM_STRUCTS_H_
