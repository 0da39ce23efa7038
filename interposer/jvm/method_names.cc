#include "interposer/jvm/method_names.h"

#include <string.h>

#include "interposer/interned_strings.h"
#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/java_names.h"
#include "interposer/profile_format.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"
#include "interposer/word_cache.h"

namespace cadastre {
namespace {

constexpr uint16_t kAccessNative = 0x0100;  // Java Virtual Machine Specification, table 4.6-A
constexpr size_t kMaxNameBytes = 512;
constexpr uint32_t kMaxLineEntries = 65536;

WordCache g_frames;  // hash of method and place -> frame word, class symbol, method symbol

struct MethodParts {
  uint64_t constants, pool, class_symbol, method_symbol;
};

// Asked once in a method's life. In a sandbox the question might be punished, and the address is believed.
bool IsReadable(uint64_t address) { return IsSandboxed() || IsWordReadable(address); }

bool LooksLikePointer(uint64_t address) { return (address & 7) == 0 && address >= 65536 && address < (1ull << 47); }

MethodParts ReadParts(const VmLayout& layout, uint64_t method) {
  MethodParts parts;
  parts.constants = LoadField<uint64_t>(method, layout.method_constants);
  parts.pool = LoadField<uint64_t>(parts.constants, layout.const_pool);
  const uint64_t holder = LoadField<uint64_t>(parts.pool, layout.pool_holder);
  parts.class_symbol = LoadField<uint64_t>(holder, layout.klass_name);
  const uint16_t name_index = LoadField<uint16_t>(parts.constants, layout.const_name_index);
  parts.method_symbol = LoadField<uint64_t>(parts.pool, layout.pool_bytes + name_index * 8);
  return parts;
}

TextSpan SymbolText(const VmLayout& layout, uint64_t symbol) {
  return {reinterpret_cast<const char*>(symbol + static_cast<uint64_t>(layout.symbol_body)),
          LoadField<uint16_t>(symbol, layout.symbol_length)};
}

TextSpan SourceFile(const VmLayout& layout, uint64_t pool) {
  if (layout.pool_source_file_index < 0) return {nullptr, 0};
  const uint16_t index = LoadField<uint16_t>(pool, layout.pool_source_file_index);
  if (index == 0) return {nullptr, 0};
  const uint64_t symbol = LoadField<uint64_t>(pool, layout.pool_bytes + index * 8);
  // The lowest bit marks a slot that is not resolved to a symbol.
  return LooksLikePointer(symbol) ? SymbolText(layout, symbol) : TextSpan{nullptr, 0};
}

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t hash = (a ^ (b * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
  hash ^= hash >> 32;
  return hash == 0 || hash == ~0ull ? 1 : hash;
}

__attribute__((noinline)) uint32_t InternName(const VmLayout& layout, const MethodParts& parts) {
  char text[kMaxNameBytes];
  const size_t length =
      WriteJavaMethodName(SymbolText(layout, parts.class_symbol), SymbolText(layout, parts.method_symbol),
                          SourceFile(layout, parts.pool), text, sizeof(text));
  return InternString(text, length);
}

uint32_t LineOf(const VmLayout& layout, uint64_t constants, int32_t bytecode) {
  if (bytecode < 0 || layout.const_flags < 0 || layout.has_line_numbers == 0) return 0;
  const uint32_t flags = layout.const_flags_bytes == 2 ? LoadField<uint16_t>(constants, layout.const_flags)
                                                       : LoadField<uint32_t>(constants, layout.const_flags);
  if ((flags & layout.has_line_numbers) == 0) return 0;
  // The table follows the bytecode, which follows the ConstMethod itself.
  const uint64_t table = constants + static_cast<uint64_t>(layout.const_method_bytes) +
                         LoadField<uint16_t>(constants, layout.const_code_bytes);
  return LineAt(table, static_cast<uint32_t>(bytecode), layout.unsigned5_excluded);
}

bool IsNative(const VmLayout& layout, uint64_t method) {
  return (LoadField<uint16_t>(method, layout.method_flags) & kAccessNative) != 0;
}

uint64_t MakeFrame(const VmLayout& layout, uint64_t method, const MethodParts& parts, int32_t bytecode) {
  const uint32_t name = InternName(layout, parts);
  if (name == 0) return 0;
  const bool native = IsNative(layout, method);
  return format::MakeJavaFrame(native ? format::kJavaNativeMethod : format::kJavaMethod, name,
                               native ? 0 : LineOf(layout, parts.constants, bytecode));
}

bool IsKnown(const VmLayout& layout, uint64_t method, const CachedWords& words, MethodParts* parts) {
  *parts = ReadParts(layout, method);
  return words.second == parts->class_symbol && words.third == parts->method_symbol;
}

// A method that was not seen at this place before: is it one at all?
bool ReadNewMethod(const VmLayout& layout, uint64_t method, MethodParts* parts) {
  if (!LooksLikePointer(method) || !IsReadable(method)) return false;
  const uint64_t constants = LoadField<uint64_t>(method, layout.method_constants);
  if (!LooksLikePointer(constants) || !IsReadable(constants)) return false;
  const uint64_t pool = LoadField<uint64_t>(constants, layout.const_pool);
  if (!LooksLikePointer(pool) || !IsReadable(pool)) return false;
  const uint64_t holder = LoadField<uint64_t>(pool, layout.pool_holder);
  if (!LooksLikePointer(holder) || !IsReadable(holder)) return false;
  *parts = ReadParts(layout, method);
  return LooksLikePointer(parts->class_symbol) && LooksLikePointer(parts->method_symbol) &&
         IsReadable(parts->class_symbol) && IsReadable(parts->method_symbol);
}

}  // namespace

uint64_t JavaFrameAtIndex(const VmLayout& layout, uint64_t method, int32_t bytecode) {
  const uint64_t key = Mix(method, static_cast<uint64_t>(bytecode) + 1);
  CachedWords words;
  MethodParts parts;
  if (g_frames.Find(key, &words) && IsKnown(layout, method, words, &parts)) return words.first;
  if (!ReadNewMethod(layout, method, &parts)) return 0;
  const uint64_t frame = MakeFrame(layout, method, parts, bytecode);
  if (frame != 0) g_frames.Insert(key, {frame, parts.class_symbol, parts.method_symbol});
  return frame;
}

uint64_t JavaFrameAtAddress(const VmLayout& layout, uint64_t method, uint64_t bytecode_address, bool careful) {
  // Addresses and indices cannot be mistaken for each other: an index is below 65536.
  const uint64_t key = Mix(method, bytecode_address);
  CachedWords words;
  MethodParts parts;
  if (!careful && g_frames.Find(key, &words) && IsKnown(layout, method, words, &parts)) return words.first;
  if (!ReadNewMethod(layout, method, &parts)) return 0;
  const uint64_t code = parts.constants + static_cast<uint64_t>(layout.const_method_bytes);
  int32_t bytecode = -1;
  if (!IsNative(layout, method)) {
    const uint64_t index = bytecode_address - code;
    if (bytecode_address != 0 && index >= LoadField<uint16_t>(parts.constants, layout.const_code_bytes)) return 0;
    bytecode = bytecode_address != 0 ? static_cast<int32_t>(index) : -1;
  }
  const uint64_t frame = MakeFrame(layout, method, parts, bytecode);
  if (frame != 0) g_frames.Insert(key, {frame, parts.class_symbol, parts.method_symbol});
  return frame;
}

uint32_t JavaMethodName(const VmLayout& layout, uint64_t method) {
  return format::JavaNameOf(JavaFrameAtIndex(layout, method, -1));
}

bool IsMethod(const VmLayout& layout, uint64_t method, const char* class_name, const char* method_name) {
  const MethodParts parts = ReadParts(layout, method);
  return IsSymbol(layout, parts.method_symbol, method_name) && IsSymbol(layout, parts.class_symbol, class_name);
}

bool IsSymbol(const VmLayout& layout, uint64_t symbol, const char* text) {
  const TextSpan span = SymbolText(layout, symbol);
  return span.length == strlen(text) && memcmp(span.begin, text, span.length) == 0;
}

uint32_t LineAt(uint64_t table, uint32_t bytecode, uint32_t excluded) {
  auto read_signed = [&] {
    const uint32_t value = ReadUnsigned5(&table, excluded);
    return (value >> 1) ^ (0u - (value & 1));
  };
  uint32_t at = 0, line = 0, best = 0, best_line = 0;
  for (uint32_t i = 0; i < kMaxLineEntries; i++) {
    const uint8_t next = LoadField<uint8_t>(table++, 0);
    if (next == 0) break;
    if (next == 0xff) {
      at += read_signed();
      line += read_signed();
    } else {
      at += next >> 3;
      line += next & 7;
    }
    if (at == bytecode) return line;
    if (at < bytecode && at >= best) {
      best = at;
      best_line = line;
    }
  }
  return best_line;
}

}  // namespace cadastre
