#include "interposer/jvm/vm_structs.h"

#include <string.h>

#include "interposer/elf_lookup.h"

namespace cadastre {
namespace {

// The rows of the three tables, as vmStructs.hpp declares them; the tables end with a null name.
struct VmStructRow {
  const char* type;
  const char* field;
  const char* field_type;
  int32_t is_static;
  uint64_t offset;
  void* address;  // of static fields
};
struct VmTypeRow {
  const char* type;
  const char* super;
  int32_t is_oop, is_integer, is_unsigned;
  uint64_t bytes;
};
struct VmIntRow {
  const char* name;
  int32_t value;
};
struct VmLongRow {
  const char* name;
  int64_t value;
};
static_assert(sizeof(VmStructRow) == 48 && sizeof(VmTypeRow) == 40 && sizeof(VmIntRow) == 16 &&
              sizeof(VmLongRow) == 16);

struct OffsetWanted {
  const char* type;
  const char* field;
  int32_t VmLayout::*offset;
};
// The same target twice: releases name it differently.
constexpr OffsetWanted kOffsets[] = {
    {"JVMFlag", "_name", &VmLayout::flag_name},
    {"JVMFlag", "_addr", &VmLayout::flag_address},
    {"Flag", "_name", &VmLayout::flag_name},
    {"Flag", "_addr", &VmLayout::flag_address},
    {"GrowableArrayBase", "_len", &VmLayout::array_length},
    {"GenericGrowableArray", "_len", &VmLayout::array_length},
    {"GrowableArray<int>", "_data", &VmLayout::array_data},
    {"CodeHeap", "_memory", &VmLayout::heap_memory},
    {"CodeHeap", "_segmap", &VmLayout::heap_segmap},
    {"CodeHeap", "_log2_segment_size", &VmLayout::heap_log2_segment_bytes},
    {"VirtualSpace", "_low", &VmLayout::space_low},
    {"VirtualSpace", "_high", &VmLayout::space_high},
    {"HeapBlock::Header", "_used", &VmLayout::block_used},
    {"StubQueue", "_stub_buffer", &VmLayout::stubs_begin},
    {"StubQueue", "_buffer_limit", &VmLayout::stubs_bytes},
    {"CodeBlob", "_name", &VmLayout::blob_name},
    {"CodeBlob", "_size", &VmLayout::blob_bytes},
    {"CodeBlob", "_frame_size", &VmLayout::blob_frame_words},
    {"CodeBlob", "_code_begin", &VmLayout::blob_code_begin},
    {"CodeBlob", "_code_offset", &VmLayout::blob_code_offset},
    {"CodeBlob", "_data_offset", &VmLayout::blob_data_offset},
    {"CodeBlob", "_mutable_data", &VmLayout::blob_mutable_data},
    {"CodeBlob", "_relocation_size", &VmLayout::blob_relocation_bytes},
    {"nmethod", "_method", &VmLayout::nmethod_method},
    {"CompiledMethod", "_method", &VmLayout::nmethod_method},
    {"nmethod", "_orig_pc_offset", &VmLayout::nmethod_original_pc},
    {"nmethod", "_compile_id", &VmLayout::nmethod_compile_id},
    {"nmethod", "_immutable_data", &VmLayout::nmethod_immutable_data},
    {"nmethod", "_scopes_pcs_offset", &VmLayout::nmethod_pcs},
    {"nmethod", "_dependencies_offset", &VmLayout::nmethod_pcs_end},
    {"nmethod", "_scopes_data_offset", &VmLayout::nmethod_scopes_offset},
    {"CompiledMethod", "_scopes_data_begin", &VmLayout::nmethod_scopes_begin},
    {"nmethod", "_metadata_offset", &VmLayout::nmethod_metadata},
    {"CompiledMethod", "_deopt_handler_begin", &VmLayout::nmethod_deopt_begin},
    {"CompiledMethod", "_deopt_mh_handler_begin", &VmLayout::nmethod_deopt_mh_begin},
    {"nmethod", "_deopt_handler_offset", &VmLayout::nmethod_deopt_offset},
    {"nmethod", "_deopt_handler_entry_offset", &VmLayout::nmethod_deopt_offset},
    {"nmethod", "_deopt_mh_handler_offset", &VmLayout::nmethod_deopt_mh_offset},
    {"nmethod", "_deoptimize_offset", &VmLayout::nmethod_deopt_offset},
    {"PcDesc", "_pc_offset", &VmLayout::pc_desc_pc},
    {"PcDesc", "_scope_decode_offset", &VmLayout::pc_desc_scope},
    {"Method", "_constMethod", &VmLayout::method_constants},
    {"Method", "_access_flags", &VmLayout::method_flags},
    {"ConstMethod", "_constants", &VmLayout::const_pool},
    {"ConstMethod", "_flags", &VmLayout::const_flags},
    {"ConstMethod", "_flags._flags", &VmLayout::const_flags},
    {"ConstMethod", "_code_size", &VmLayout::const_code_bytes},
    {"ConstMethod", "_name_index", &VmLayout::const_name_index},
    {"ConstantPool", "_pool_holder", &VmLayout::pool_holder},
    {"ConstantPool", "_source_file_name_index", &VmLayout::pool_source_file_index},
    {"Klass", "_name", &VmLayout::klass_name},
    {"Symbol", "_length", &VmLayout::symbol_length},
    {"Symbol", "_body", &VmLayout::symbol_body},
    {"JavaThread", "_anchor", &VmLayout::thread_anchor},
    {"JavaThread", "_osthread", &VmLayout::thread_os_thread},
    {"Thread", "_osthread", &VmLayout::thread_os_thread},
    {"JavaThread", "_vframe_array_head", &VmLayout::thread_unpacking},
    {"OSThread", "_thread_id", &VmLayout::os_thread_id},
    {"JavaFrameAnchor", "_last_Java_sp", &VmLayout::anchor_sp},
    {"JavaFrameAnchor", "_last_Java_pc", &VmLayout::anchor_pc},
    {"JavaFrameAnchor", "_last_Java_fp", &VmLayout::anchor_fp},
    {"JavaCallWrapper", "_anchor", &VmLayout::call_wrapper_anchor},
    {"CompilerThread", "_env", &VmLayout::compiler_env},
    {"ciEnv", "_task", &VmLayout::env_task},
    {"CompileTask", "_method", &VmLayout::task_method},
    {"JavaThread", "_threadObj", &VmLayout::thread_object},
    {"NamedThread", "_name", &VmLayout::named_thread_name},
    {"CollectedHeap", "_is_gc_active", &VmLayout::heap_in_pause},
    {"CollectedHeap", "_is_stw_gc_active", &VmLayout::heap_in_pause},
    {"CollectedHeap", "_total_collections", &VmLayout::heap_collections},
    {"oopDesc", "_mark", &VmLayout::oop_mark},
    {"oopDesc", "_metadata._klass", &VmLayout::oop_class},
    {"oopDesc", "_metadata._compressed_klass", &VmLayout::oop_narrow_class},
    {"Klass", "_super", &VmLayout::class_super},
    {"Klass", "_layout_helper", &VmLayout::class_instance_bytes},
    {"InstanceKlass", "_constants", &VmLayout::class_constants},
    {"InstanceKlass", "_methods", &VmLayout::class_methods},
    {"InstanceKlass", "_fields", &VmLayout::class_fields},
    {"InstanceKlass", "_java_fields_count", &VmLayout::class_field_count},
    {"InstanceKlass", "_fieldinfo_stream", &VmLayout::class_field_stream},
    {"Array<int>", "_length", &VmLayout::vm_array_length},
    {"Array<u1>", "_data", &VmLayout::u1_array_data},
    {"Array<u2>", "_data", &VmLayout::u2_array_data},
    {"Array<Method*>", "_data", &VmLayout::method_array_data},
    {"ZGlobalsForVMStructs", "_ZAddressWeakBadMask", &VmLayout::z_weak_bad_mask},
    {"XGlobalsForVMStructs", "_XAddressWeakBadMask", &VmLayout::x_weak_bad_mask},
    {"ZGlobalsForVMStructs", "_ZPointerLoadBadMask", &VmLayout::z_load_bad_mask},
    {"ZGlobalsForVMStructs", "_ZPointerLoadShift", &VmLayout::z_load_shift},
};

struct StaticWanted {
  const char* type;
  const char* field;
  const uint64_t* VmLayout::*address;
};
constexpr StaticWanted kStatics[] = {
    {"JVMFlag", "flags", &VmLayout::flags},
    {"JVMFlag", "numFlags", &VmLayout::flag_count},
    {"Flag", "flags", &VmLayout::flags},
    {"Flag", "numFlags", &VmLayout::flag_count},
    {"CodeCache", "_heaps", &VmLayout::code_heaps},
    {"CodeCache", "_heap", &VmLayout::code_heap},
    {"CodeCache", "_low_bound", &VmLayout::code_low},
    {"CodeCache", "_high_bound", &VmLayout::code_high},
    {"AbstractInterpreter", "_code", &VmLayout::interpreter},
    {"StubRoutines", "_call_stub_return_address", &VmLayout::call_stub_return_pc},
    {"vmClasses", "_klasses[static_cast<int>(vmClassID::Thread_klass_knum)]", &VmLayout::thread_class},
    {"vmClasses", "_klasses[static_cast<int>(vmClassID::String_klass_knum)]", &VmLayout::string_class},
    {"SystemDictionary", "_well_known_klasses[SystemDictionary::Thread_klass_knum]", &VmLayout::thread_class},
    {"SystemDictionary", "_well_known_klasses[SystemDictionary::String_klass_knum]", &VmLayout::string_class},
    {"SystemDictionary", "_well_known_klasses[SystemDictionary::WK_KLASS_ENUM_NAME(Thread_klass)]",
     &VmLayout::thread_class},
    {"SystemDictionary", "_well_known_klasses[SystemDictionary::WK_KLASS_ENUM_NAME(String_klass)]",
     &VmLayout::string_class},
    {"Symbol", "_vm_symbols[0]", &VmLayout::vm_symbols},
    {"Universe", "_collectedHeap", &VmLayout::collected_heap},
    {"CompressedOops", "_base", &VmLayout::narrow_oop_base},
    {"CompressedOops", "_narrow_oop._base", &VmLayout::narrow_oop_base},
    {"Universe", "_narrow_oop._base", &VmLayout::narrow_oop_base},
    {"CompressedOops", "_shift", &VmLayout::narrow_oop_shift},
    {"CompressedOops", "_narrow_oop._shift", &VmLayout::narrow_oop_shift},
    {"Universe", "_narrow_oop._shift", &VmLayout::narrow_oop_shift},
    {"CompressedKlassPointers", "_base", &VmLayout::narrow_class_base},
    {"CompressedKlassPointers", "_narrow_klass._base", &VmLayout::narrow_class_base},
    {"Universe", "_narrow_klass._base", &VmLayout::narrow_class_base},
    {"CompressedKlassPointers", "_shift", &VmLayout::narrow_class_shift},
    {"CompressedKlassPointers", "_narrow_klass._shift", &VmLayout::narrow_class_shift},
    {"Universe", "_narrow_klass._shift", &VmLayout::narrow_class_shift},
    {"ZGlobalsForVMStructs", "_instance_p", &VmLayout::z_globals},
    {"XGlobalsForVMStructs", "_instance_p", &VmLayout::x_globals},
};

// Bits by number.
struct BitWanted {
  const char* name;
  uint32_t VmLayout::*bit;
};
constexpr BitWanted kBits[] = {
    {"FieldInfo::FieldFlags::_ff_initialized", &VmLayout::field_initialized},
    {"FieldInfo::FieldFlags::_ff_injected", &VmLayout::field_injected},
    {"FieldInfo::FieldFlags::_ff_generic", &VmLayout::field_generic},
    {"FieldInfo::FieldFlags::_ff_stable", &VmLayout::field_stable},
    {"FieldInfo::FieldFlags::_ff_contended", &VmLayout::field_contended},
};

struct SizeWanted {
  const char* type;
  int32_t VmLayout::*bytes;
};
constexpr SizeWanted kSizes[] = {
    {"JVMFlag", &VmLayout::flag_bytes},
    {"Flag", &VmLayout::flag_bytes},
    {"HeapBlock", &VmLayout::block_bytes},
    {"PcDesc", &VmLayout::pc_desc_bytes},
    {"ConstMethod", &VmLayout::const_method_bytes},
    {"ConstantPool", &VmLayout::pool_bytes},
};

// Nearly all names differ in their first character: without a call.
__attribute__((always_inline)) inline bool Is(const char* text, const char* wanted) {
  return text != nullptr && text[0] == wanted[0] && strcmp(text, wanted) == 0;
}

// What the exported variable points to.
template <typename Row>
const Row* Table(const link_map* libjvm, const char* name) {
  auto* table = static_cast<const Row* const*>(FindInLibrary(libjvm, name));
  return table != nullptr ? *table : nullptr;
}

constexpr char kVersionType[] = "Abstract_VM_Version";
constexpr char kReleaseField[] = "_s_vm_release", kMajorField[] = "_vm_major_version";

// A bit for each name that was added, by its hash (FNV-1a): of other names one in five is let through.
class NameFilter {
 public:
  constexpr void Add(const char* name) { bits_[HashOf(name) / 64] |= 1ull << HashOf(name) % 64; }
  bool MayHave(const char* name) const {
    return name != nullptr && (bits_[HashOf(name) / 64] >> HashOf(name) % 64 & 1) != 0;
  }

 private:
  static constexpr uint32_t kWords = 8;
  static constexpr uint32_t HashOf(const char* name) {
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++) hash = (hash ^ static_cast<uint8_t>(*name)) * 16777619u;
    return (hash ^ hash >> 16) % (kWords * 64);
  }

  uint64_t bits_[kWords] = {};
};

struct FieldFilters {
  NameFilter types, fields;

  constexpr FieldFilters() {
    for (const OffsetWanted& wanted : kOffsets) Add(wanted.type, wanted.field);
    for (const StaticWanted& wanted : kStatics) Add(wanted.type, wanted.field);
    Add(kVersionType, kReleaseField);
    Add(kVersionType, kMajorField);
  }
  constexpr void Add(const char* type, const char* field) {
    types.Add(type);
    fields.Add(field);
  }
};
constexpr FieldFilters kFilters;

void ReadField(const VmStructRow& row, VmLayout* layout) {
  if (row.is_static != 0) {
    for (const StaticWanted& wanted : kStatics) {
      if (Is(row.type, wanted.type) && Is(row.field, wanted.field)) {
        layout->*wanted.address = static_cast<const uint64_t*>(row.address);
      }
    }
    if (!Is(row.type, kVersionType) || row.address == nullptr) return;
    if (Is(row.field, kReleaseField)) layout->version = *static_cast<const char* const*>(row.address);
    if (Is(row.field, kMajorField)) layout->feature = *static_cast<const int32_t*>(row.address);
    return;
  }
  for (const OffsetWanted& wanted : kOffsets) {
    if (!Is(row.type, wanted.type) || !Is(row.field, wanted.field)) continue;
    layout->*wanted.offset = static_cast<int32_t>(row.offset);
    if (wanted.offset == &VmLayout::thread_object && Is(row.field_type, "OopHandle")) {
      layout->thread_object_handle = static_cast<int32_t>(row.offset);
      layout->thread_object = kNoField;
    }
    if (wanted.offset == &VmLayout::const_flags) layout->const_flags_bytes = Is(row.field_type, "u2") ? 2 : 4;
    if (wanted.offset == &VmLayout::nmethod_metadata) {
      layout->nmethod_metadata_width = Is(row.field_type, "u2") || Is(row.field_type, "uint16_t") ? 2 : 4;
    }
  }
}

// Each of these must be there; of a pair one of the two.
struct Needed {
  const char* name;
  int32_t VmLayout::*offset;
  int32_t VmLayout::*or_offset;
};
constexpr Needed kNeeded[] = {
    {"GrowableArrayBase::_len", &VmLayout::array_length, nullptr},
    {"GrowableArray<int>::_data", &VmLayout::array_data, nullptr},
    {"CodeHeap::_memory", &VmLayout::heap_memory, nullptr},
    {"CodeHeap::_segmap", &VmLayout::heap_segmap, nullptr},
    {"CodeHeap::_log2_segment_size", &VmLayout::heap_log2_segment_bytes, nullptr},
    {"VirtualSpace::_low", &VmLayout::space_low, nullptr},
    {"VirtualSpace::_high", &VmLayout::space_high, nullptr},
    {"HeapBlock::Header::_used", &VmLayout::block_used, nullptr},
    {"sizeof(HeapBlock)", &VmLayout::block_bytes, nullptr},
    {"StubQueue::_stub_buffer", &VmLayout::stubs_begin, nullptr},
    {"StubQueue::_buffer_limit", &VmLayout::stubs_bytes, nullptr},
    {"CodeBlob::_name", &VmLayout::blob_name, nullptr},
    {"CodeBlob::_size", &VmLayout::blob_bytes, nullptr},
    {"CodeBlob::_frame_size", &VmLayout::blob_frame_words, nullptr},
    {"CodeBlob::_code_begin", &VmLayout::blob_code_begin, &VmLayout::blob_code_offset},
    {"nmethod::_method", &VmLayout::nmethod_method, nullptr},
    {"nmethod::_orig_pc_offset", &VmLayout::nmethod_original_pc, nullptr},
    {"nmethod::_scopes_pcs_offset", &VmLayout::nmethod_pcs, nullptr},
    {"nmethod::_dependencies_offset", &VmLayout::nmethod_pcs_end, &VmLayout::nmethod_scopes_offset},
    {"CompiledMethod::_scopes_data_begin", &VmLayout::nmethod_scopes_begin, &VmLayout::nmethod_scopes_offset},
    {"nmethod::_metadata_offset", &VmLayout::nmethod_metadata, &VmLayout::blob_mutable_data},
    {"nmethod::_deopt_handler_offset", &VmLayout::nmethod_deopt_begin, &VmLayout::nmethod_deopt_offset},
    {"sizeof(PcDesc)", &VmLayout::pc_desc_bytes, nullptr},
    {"PcDesc::_pc_offset", &VmLayout::pc_desc_pc, nullptr},
    {"PcDesc::_scope_decode_offset", &VmLayout::pc_desc_scope, nullptr},
    {"Method::_constMethod", &VmLayout::method_constants, nullptr},
    {"Method::_access_flags", &VmLayout::method_flags, nullptr},
    {"sizeof(ConstMethod)", &VmLayout::const_method_bytes, nullptr},
    {"ConstMethod::_constants", &VmLayout::const_pool, nullptr},
    {"ConstMethod::_code_size", &VmLayout::const_code_bytes, nullptr},
    {"ConstMethod::_name_index", &VmLayout::const_name_index, nullptr},
    {"sizeof(ConstantPool)", &VmLayout::pool_bytes, nullptr},
    {"ConstantPool::_pool_holder", &VmLayout::pool_holder, nullptr},
    {"Klass::_name", &VmLayout::klass_name, nullptr},
    {"Symbol::_length", &VmLayout::symbol_length, nullptr},
    {"Symbol::_body", &VmLayout::symbol_body, nullptr},
};

const char* FindMissing(const VmLayout& layout) {
  if (layout.feature == 0) return "Abstract_VM_Version::_vm_major_version";
  if (layout.code_heaps == nullptr && layout.code_heap == nullptr) return "CodeCache::_heaps";
  if (layout.code_heap == nullptr && (layout.code_low == nullptr || layout.code_high == nullptr)) {
    return "CodeCache::_low_bound";
  }
  if (layout.interpreter == nullptr) return "AbstractInterpreter::_code";
  if (layout.call_stub_return_pc == nullptr) return "StubRoutines::_call_stub_return_address";
  for (const Needed& needed : kNeeded) {
    const bool there = layout.*needed.offset >= 0 || (needed.or_offset != nullptr && layout.*needed.or_offset >= 0);
    if (!there) return needed.name;
  }
  if (layout.blob_mutable_data >= 0 && layout.blob_relocation_bytes < 0) return "CodeBlob::_relocation_size";
  const bool relative_metadata = layout.nmethod_immutable_data >= 0 && layout.blob_mutable_data < 0;
  if (relative_metadata && layout.blob_data_offset < 0) return "CodeBlob::_data_offset";
  return nullptr;
}

}  // namespace

bool IsHotSpot(const link_map* library) {
  return library != nullptr && FindInLibrary(library, "gHotSpotVMStructs") != nullptr;
}

bool ReadVmStructs(const link_map* libjvm, VmLayout* layout) {
  memset(layout, 0, sizeof(*layout));
  for (const OffsetWanted& wanted : kOffsets) layout->*wanted.offset = kNoField;
  for (const SizeWanted& wanted : kSizes) layout->*wanted.bytes = kNoField;
  layout->thread_object_handle = kNoField;
  layout->call_wrapper_slot = -6;
  const auto* fields = Table<VmStructRow>(libjvm, "gHotSpotVMStructs");
  const auto* types = Table<VmTypeRow>(libjvm, "gHotSpotVMTypes");
  const auto* constants = Table<VmIntRow>(libjvm, "gHotSpotVMIntConstants");
  if (fields == nullptr || types == nullptr || constants == nullptr) {
    layout->missing = "gHotSpotVMStructs";
    return false;
  }
  const char* type = nullptr;  // of the row before: rows of one type follow each other
  for (bool is_wanted = false; fields->type != nullptr; fields++) {
    if (fields->type != type) is_wanted = kFilters.types.MayHave(fields->type);
    type = fields->type;
    if (is_wanted && kFilters.fields.MayHave(fields->field)) ReadField(*fields, layout);
  }
  for (; types->type != nullptr; types++) {
    for (const SizeWanted& wanted : kSizes) {
      if (Is(types->type, wanted.type)) layout->*wanted.bytes = static_cast<int32_t>(types->bytes);
    }
  }
  for (; constants->name != nullptr; constants++) {
    const bool line_numbers = Is(constants->name, "ConstMethod::_has_linenumber_table") ||
                              Is(constants->name, "ConstMethodFlags::_misc_has_linenumber_table");
    if (line_numbers) layout->has_line_numbers = static_cast<uint32_t>(constants->value);
    if (Is(constants->name, "frame::entry_frame_call_wrapper_offset")) layout->call_wrapper_slot = constants->value;
    for (const BitWanted& wanted : kBits) {
      if (Is(constants->name, wanted.name)) layout->*wanted.bit = 1u << (constants->value & 31);
    }
  }
  const auto* longs = Table<VmLongRow>(libjvm, "gHotSpotVMLongConstants");
  for (; longs != nullptr && longs->name != nullptr; longs++) {
    if (Is(longs->name, "markWord::klass_shift")) layout->mark_class_shift = static_cast<uint32_t>(longs->value);
  }
  // JDK 8 calls its HotSpot "25". It alone has one code heap, and its code cache bounds are that heap's.
  if (layout->code_heaps == nullptr && layout->code_heap != nullptr) layout->feature = 8;
  // Frames of the interpreter, OpenJDK src/hotspot/cpu/x86/frame_x86.hpp: from 9 on a slot for the class mirror lies
  // between the method and the rest.
  layout->interpreter_bytecode_slot = layout->feature >= 9 ? -8 : -7;
  // OpenJDK src/hotspot/share/utilities/unsigned5.hpp: since 20 the byte 0 is not used.
  layout->unsigned5_excluded = layout->feature >= 20 ? 1 : 0;
  layout->missing = FindMissing(*layout);
  return layout->missing == nullptr;
}

}  // namespace cadastre
