#include "interposer/jvm/thread_names.h"

#include <string.h>

#include "interposer/jvm/checked_read.h"
#include "interposer/jvm/class_fields.h"
#include "interposer/jvm/heap_path.h"
#include "interposer/jvm/heap_references.h"
#include "interposer/jvm/java_thread.h"
#include "interposer/jvm/lasting_memory.h"
#include "interposer/jvm/learn_once.h"

namespace cadastre {
namespace {

constexpr size_t kKernelBytes = 15;
constexpr size_t kCutHead = 7, kCutTail = 6;
constexpr size_t kUsualNameBytes = 48;  // most names are shorter: they come with their length, in one copy

// Where the names of Java threads are, learnt once.
struct JavaForm {
  HeapForm heap;
  int32_t thread_owner, thread_name;  // java.lang.Thread: eetop (the JavaThread*), name
  int32_t string_value, string_coder;
  bool name_is_array;  // char[] (8)
};
JavaForm g_form;
LearnOnce g_learnt;

Learnt LearnForm(const VmLayout& layout, JavaForm* form) {
  if (layout.thread_class == nullptr || layout.string_class == nullptr || !KnowsPauses(layout) ||
      (layout.thread_object < 0 && layout.thread_object_handle < 0)) {
    return Learnt::kCannot;
  }
  const uint64_t thread_class = __atomic_load_n(layout.thread_class, __ATOMIC_ACQUIRE);
  const uint64_t string_class = __atomic_load_n(layout.string_class, __ATOMIC_ACQUIRE);
  if (thread_class == 0 || string_class == 0) return Learnt::kNotYet;
  ClassField owner, name, value, coder;
  if (!ReadHeapForm(layout, &form->heap) || !FindClassField(layout, thread_class, "eetop", &owner) ||
      !FindClassField(layout, thread_class, "name", &name) || !FindClassField(layout, string_class, "value", &value)) {
    return Learnt::kCannot;
  }
  form->thread_owner = owner.offset;
  form->thread_name = name.offset;
  form->name_is_array = name.type_first == '[';
  form->string_value = value.offset;
  form->string_coder = FindClassField(layout, string_class, "coder", &coder) ? coder.offset : kNoField;
  return Learnt::kKnown;
}

// From a thread along its java.lang.Thread and the String to the characters.
class NameReader {
 public:
  NameReader(const VmLayout& layout, const JavaForm& form) : form_(form), path_(layout, form.heap) {}

  // The name of the java.lang.Thread to which the JVM's variable at `slot` refers. False: it is not this thread's, or
  // not now.
  bool FindName(uint64_t slot, uint64_t thread) {
    uint64_t object, owner;
    Reference name = {form_.thread_name, 0};
    return path_.Start(slot, &object) && CopyBoth(&object, &name, form_.thread_owner, &owner, sizeof(owner)) &&
           owner == thread && path_.FollowCopied(object, name.field, name.value, &string_);
  }

  ThreadNameAnswer Read(const char* kernel_name, ThreadName* name) {
    constexpr size_t kLengthBytes = 8;  // with what lies before the first character, if anything
    uint8_t copy[kLengthBytes + kMaxThreadNameCharacters * 2];
    const int32_t length_at = form_.heap.array_length;
    const auto data_at = static_cast<size_t>(form_.heap.array_data - length_at);
    uint64_t array;
    bool latin1;
    if (data_at > kLengthBytes || !FindArray(&array, &latin1)) return ThreadNameAnswer::kLater;
    // Behind a short array there is more heap, but where that ends.
    const size_t ahead = path_.Copy(&array, length_at, copy, data_at + kUsualNameBytes) ? kUsualNameBytes : 0;
    uint32_t count;
    if (ahead == 0 && !path_.Copy(&array, length_at, copy, sizeof(count))) return ThreadNameAnswer::kLater;
    memcpy(&count, copy, sizeof(count));
    if (!latin1 && form_.string_coder >= 0) count /= 2;  // a byte[] in either case
    if (count > kMaxThreadNameCharacters) return ThreadNameAnswer::kKernels;
    const size_t bytes = count * (latin1 ? 1 : 2);
    if (bytes > ahead && !path_.Copy(&array, form_.heap.array_data, copy + data_at, bytes)) {
      return ThreadNameAnswer::kLater;
    }
    return Judge(copy + data_at, count, latin1, kernel_name, name);
  }

 private:
  struct Reference {
    int32_t field;
    uint64_t value;
  };

  // A reference and another field of *object; in one copy where they lie together, as they do.
  bool CopyBoth(uint64_t* object, Reference* reference, int32_t field, void* to, size_t bytes) {
    const size_t reference_bytes = form_.heap.reference_bytes;
    const int32_t first = reference->field < field ? reference->field : field;
    const auto reference_at = static_cast<size_t>(reference->field - first), at = static_cast<size_t>(field - first);
    const size_t reference_end = reference_at + reference_bytes, end = at + bytes;
    char copy[64];
    const size_t all = reference_end > end ? reference_end : end;
    if (all > sizeof(copy)) {
      return path_.Copy(object, field, to, bytes) &&
             path_.Copy(object, reference->field, &reference->value, reference_bytes);
    }
    if (!path_.Copy(object, first, copy, all)) return false;
    memcpy(&reference->value, copy + reference_at, reference_bytes);
    memcpy(to, copy + at, bytes);
    return true;
  }

  bool FindArray(uint64_t* array, bool* latin1) {
    uint8_t coder = 1;
    *array = string_;
    if (string_ == 0) return false;
    if (!form_.name_is_array) {
      Reference value = {form_.string_value, 0};
      const bool is_copied = form_.string_coder >= 0
                                 ? CopyBoth(&string_, &value, form_.string_coder, &coder, sizeof(coder))
                                 : path_.Copy(&string_, value.field, &value.value, form_.heap.reference_bytes);
      if (!is_copied || !path_.FollowCopied(string_, value.field, value.value, array)) return false;
    }
    *latin1 = coder == 0;
    return *array != 0 && coder <= 1;
  }

  ThreadNameAnswer Judge(const uint8_t* characters, uint32_t count, bool latin1, const char* kernel_name,
                         ThreadName* name) {
    name->length = WriteName(characters, count, latin1, NameForm::kKernel, name->bytes, sizeof(name->bytes));
    // The main thread belongs to the launcher: HotSpot leaves its name alone.
    const bool is_main = name->length == 4 && memcmp(name->bytes, "main", 4) == 0;
    if (!is_main && !IsCutFrom(kernel_name, name->bytes, name->length)) return ThreadNameAnswer::kKernels;
    name->length = WriteName(characters, count, latin1, NameForm::kProfile, name->bytes, sizeof(name->bytes));
    return ThreadNameAnswer::kWhole;
  }

  const JavaForm& form_;
  HeapPath path_;
  uint64_t string_ = 0;
};

// A NamedThread's. Of any other thread this reads something else, which IsCutFrom refuses.
bool ReadNativeName(const VmLayout& layout, uint64_t thread, const char* kernel_name, ThreadName* name) {
  LastingMemory own;
  uint64_t text;
  if (layout.named_thread_name < 0 || !own.Load(thread + static_cast<uint64_t>(layout.named_thread_name), &text) ||
      text == 0) {
    return false;
  }
  constexpr size_t kMostBytes = 64;  // HotSpot's own names are shorter
  const size_t read = CheckedReadSome(text, name->bytes, kMostBytes);
  name->length = strnlen(name->bytes, read);
  return name->length < read && name->length > 0 && IsCutFrom(kernel_name, name->bytes, name->length);
}

class NameWriter {
 public:
  NameWriter(NameForm form, char* out, size_t capacity) : form_(form), out_(out), capacity_(capacity) {}

  void AddUnit(uint32_t unit) {
    const bool trailing = unit >= 0xdc00 && unit < 0xe000;
    if (form_ == NameForm::kKernel) return AddCode(unit);
    if (high_ != 0 && trailing) {
      AddCode(0x10000 + ((high_ - 0xd800) << 10) + (unit - 0xdc00));
      high_ = 0;
      return;
    }
    Finish();
    if (unit >= 0xd800 && unit < 0xdc00) {
      high_ = unit;
    } else {
      AddCode(trailing ? kReplacement : unit < 0x20 || unit == 0x7f ? '?' : unit);
    }
  }

  // Half a pair at the end.
  void Finish() {
    if (high_ != 0) AddCode(kReplacement);
    high_ = 0;
  }

  size_t length() const { return length_ <= capacity_ ? length_ : 0; }

 private:
  static constexpr uint32_t kReplacement = 0xfffd;

  void Add(uint32_t byte) {
    if (length_ < capacity_) out_[length_] = static_cast<char>(byte);
    length_++;
  }
  void AddCode(uint32_t code) {
    if (code < 0x80 && code != 0) return Add(code);
    if (code < 0x800) {
      Add(0xc0 | code >> 6);  // modified UTF-8 writes 0 like this too
    } else if (code < 0x10000) {
      Add(0xe0 | code >> 12);
      Add(0x80 | (code >> 6 & 63));
    } else {
      Add(0xf0 | code >> 18);
      Add(0x80 | (code >> 12 & 63));
      Add(0x80 | (code >> 6 & 63));
    }
    Add(0x80 | (code & 63));
  }

  NameForm form_;
  char* out_;
  size_t capacity_, length_ = 0;
  uint32_t high_ = 0;  // the first half of a surrogate pair
};

}  // namespace

size_t WriteName(const void* characters, uint32_t count, bool latin1, NameForm form, char* out, size_t capacity) {
  NameWriter writer(form, out, capacity);
  const auto* bytes = static_cast<const uint8_t*>(characters);
  for (uint32_t i = 0; i < count; i++) {
    uint16_t unit = bytes[latin1 ? i : 0];
    if (!latin1) memcpy(&unit, bytes + i * sizeof(unit), sizeof(unit));
    writer.AddUnit(unit);
  }
  writer.Finish();
  return writer.length();
}

bool IsCutFrom(const char* kernel_name, const char* name, size_t length) {
  const size_t kernel_length = strnlen(kernel_name, kKernelBytes);
  if (length <= kKernelBytes) return length == kernel_length && memcmp(kernel_name, name, length) == 0;
  if (kernel_length != kKernelBytes) return false;
  if (memcmp(kernel_name, name, kKernelBytes) == 0) return true;
  return memcmp(kernel_name, name, kCutHead) == 0 && memcmp(kernel_name + kCutHead, "..", 2) == 0 &&
         memcmp(kernel_name + kKernelBytes - kCutTail, name + length - kCutTail, kCutTail) == 0;
}

__attribute__((noinline)) ThreadNameAnswer ReadThreadName(const VmLayout& layout, uint64_t thread,
                                                          const char* kernel_name, ThreadName* name) {
  const Learnt learnt = g_learnt.Ask([&layout] { return LearnForm(layout, &g_form); });
  if (learnt == Learnt::kKnown) {
    NameReader reader(layout, g_form);
    if (reader.FindName(ThreadObjectSlot(layout, thread), thread)) return reader.Read(kernel_name, name);
  }
  if (ReadNativeName(layout, thread, kernel_name, name)) return ThreadNameAnswer::kWhole;
  return learnt == Learnt::kCannot ? ThreadNameAnswer::kKernels : ThreadNameAnswer::kLater;
}

}  // namespace cadastre
