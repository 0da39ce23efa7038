#include "interposer/jvm/thread_names.h"

#include <string.h>

#include "interposer/jvm/checked_read.h"
#include "interposer/jvm/class_fields.h"
#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/heap_references.h"

namespace cadastre {
namespace {

constexpr size_t kKernelBytes = 15;
constexpr size_t kCutHead = 7, kCutTail = 6;

// Where the names of Java threads are, learnt once.
struct JavaForm {
  HeapForm heap;
  int32_t thread_owner, thread_name;  // java.lang.Thread: eetop (the JavaThread*), name
  int32_t string_value, string_coder;
  bool name_is_array;  // char[] (8)
};
enum FormState : uint32_t { kNotKnown = 0, kLearning = 1, kCannotRead = 2, kKnown = 3 };
JavaForm g_form;
uint32_t g_form_state;

bool LearnForm(const VmLayout& layout, uint64_t thread_class, uint64_t string_class, JavaForm* form) {
  ClassField owner, name, value, coder;
  if (!ReadHeapForm(layout, &form->heap) || !FindClassField(layout, thread_class, "eetop", &owner) ||
      !FindClassField(layout, thread_class, "name", &name) || !FindClassField(layout, string_class, "value", &value)) {
    return false;
  }
  form->thread_owner = owner.offset;
  form->thread_name = name.offset;
  form->name_is_array = name.type_first == '[';
  form->string_value = value.offset;
  form->string_coder = FindClassField(layout, string_class, "coder", &coder) ? coder.offset : kNoField;
  return true;
}

// The form, or nullptr: never (then *answer says so), or not yet.
const JavaForm* FormOf(const VmLayout& layout, ThreadNameAnswer* answer) {
  *answer = ThreadNameAnswer::kLater;
  uint32_t state = __atomic_load_n(&g_form_state, __ATOMIC_ACQUIRE);
  if (state == kNotKnown) {
    if (layout.thread_class == nullptr || layout.string_class == nullptr || layout.heap == nullptr ||
        layout.heap_paused < 0 || layout.heap_cycles < 0 ||
        (layout.thread_object < 0 && layout.thread_object_handle < 0)) {
      *answer = ThreadNameAnswer::kKernels;
      return nullptr;
    }
    const uint64_t thread_class = __atomic_load_n(layout.thread_class, __ATOMIC_ACQUIRE);
    const uint64_t string_class = __atomic_load_n(layout.string_class, __ATOMIC_ACQUIRE);
    if (thread_class == 0 || string_class == 0) return nullptr;
    if (!__atomic_compare_exchange_n(&g_form_state, &state, kLearning, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return nullptr;
    }
    state = LearnForm(layout, thread_class, string_class, &g_form) ? kKnown : kCannotRead;
    __atomic_store_n(&g_form_state, state, __ATOMIC_RELEASE);
  }
  if (state == kCannotRead) *answer = ThreadNameAnswer::kKernels;
  return state == kKnown ? &g_form : nullptr;
}

class JavaNameReader {
 public:
  JavaNameReader(const VmLayout& layout, const JavaForm& form, uint64_t thread)
      : layout_(layout), form_(form), thread_(thread) {}

  // Is the thread a JavaThread with its java.lang.Thread? Then the object's and the name's addresses are known.
  bool FindObject() {
    if (layout_.thread_object_handle >= 0) {
      slot_ = LoadField<uint64_t>(thread_, layout_.thread_object_handle);
      if (slot_ == 0 || !CheckedLoad(slot_, &root_)) return false;
    } else {
      slot_ = thread_ + static_cast<uint64_t>(layout_.thread_object);
      root_ = LoadField<uint64_t>(slot_, 0);
    }
    object_ = AddressOfRoot(form_.heap, root_);
    uint64_t owner;
    return object_ != 0 &&
           CheckedRead({{object_ + static_cast<uint64_t>(form_.thread_owner), &owner, sizeof(owner)},
                        {NameField(), &name_, form_.heap.reference_bytes}}) &&
           owner == thread_;
  }

  ThreadNameAnswer Read(const char* kernel_name, ThreadName* name) {
    // The array from its length on.
    uint8_t bytes[kMostPadding + kMaxThreadNameCharacters * 2];
    const size_t data = static_cast<size_t>(form_.heap.array_data - form_.heap.array_length);
    if (!FindArray()) return ThreadNameAnswer::kLater;
    const size_t read = CheckedReadSome(array_ + static_cast<uint64_t>(form_.heap.array_length), bytes, sizeof(bytes));
    uint32_t count;
    if (read < data || !IsUnchanged()) return ThreadNameAnswer::kLater;
    memcpy(&count, bytes, sizeof(count));
    if (!latin1_ && form_.string_coder >= 0) count /= 2;  // a byte[] in either case
    if (count > kMaxThreadNameCharacters) return ThreadNameAnswer::kKernels;
    if (data + count * (latin1_ ? 1 : 2) > read) return ThreadNameAnswer::kLater;
    return Judge(bytes + data, count, kernel_name, name);
  }

 private:
  static constexpr size_t kMostPadding = 8;  // length and what may lie between it and the first element

  uint64_t NameField() const { return object_ + static_cast<uint64_t>(form_.thread_name); }
  uint64_t ValueField() const { return string_ + static_cast<uint64_t>(form_.string_value); }

  bool FindArray() {
    string_ = array_ = AddressOfField(layout_, form_.heap, name_);
    if (string_ == 0 || form_.name_is_array) return string_ != 0;
    uint8_t coder = 1;
    const CheckedPiece pieces[] = {{ValueField(), &value_, form_.heap.reference_bytes},
                                   {string_ + static_cast<uint64_t>(form_.string_coder), &coder, sizeof(coder)}};
    if (!CheckedRead(pieces, form_.string_coder >= 0 ? 2 : 1)) return false;
    latin1_ = coder == 0;
    array_ = AddressOfField(layout_, form_.heap, value_);
    return array_ != 0 && coder <= 1;
  }

  // All that led to the characters still leads there.
  bool IsUnchanged() const {
    uint64_t root, name = 0, value = 0;
    const CheckedPiece pieces[] = {{slot_, &root, sizeof(root)},
                                   {NameField(), &name, form_.heap.reference_bytes},
                                   {ValueField(), &value, form_.heap.reference_bytes}};
    return CheckedRead(pieces, form_.name_is_array ? 2 : 3) && root == root_ && name == name_ && value == value_ &&
           AddressOfRoot(form_.heap, root) == object_ && AddressOfField(layout_, form_.heap, name) == string_ &&
           (form_.name_is_array || AddressOfField(layout_, form_.heap, value) == array_);
  }

  ThreadNameAnswer Judge(const uint8_t* characters, uint32_t count, const char* kernel_name, ThreadName* name) {
    name->length = WriteName(characters, count, latin1_, NameForm::kKernel, name->bytes, sizeof(name->bytes));
    // The main thread belongs to the launcher: HotSpot leaves its name alone.
    const bool is_main = name->length == 4 && memcmp(name->bytes, "main", 4) == 0;
    if (!is_main && !IsCutFrom(kernel_name, name->bytes, name->length)) return ThreadNameAnswer::kKernels;
    name->length = WriteName(characters, count, latin1_, NameForm::kProfile, name->bytes, sizeof(name->bytes));
    return ThreadNameAnswer::kWhole;
  }

  const VmLayout& layout_;
  const JavaForm& form_;
  uint64_t thread_;
  uint64_t slot_ = 0, object_ = 0, string_ = 0, array_ = 0;  // addresses, from the thread to the characters
  uint64_t root_ = 0, name_ = 0, value_ = 0;                 // the references in slot, object and string
  bool latin1_ = false;
};

// A NamedThread's. Of any other thread this reads something else, which IsCutFrom refuses.
bool ReadNativeName(const VmLayout& layout, uint64_t thread, const char* kernel_name, ThreadName* name) {
  uint64_t text;
  if (layout.named_thread_name < 0 || !CheckedLoad(thread + static_cast<uint64_t>(layout.named_thread_name), &text)) {
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
  ThreadNameAnswer answer = ThreadNameAnswer::kKernels;
  HeapMoment before, after;
  const JavaForm* form = FormOf(layout, &answer);
  if (form != nullptr && ReadHeapMoment(layout, &before) && !before.paused) {
    JavaNameReader reader(layout, *form, thread);
    if (reader.FindObject()) {
      answer = reader.Read(kernel_name, name);
      const bool still = ReadHeapMoment(layout, &after) && !after.paused && after.cycles == before.cycles;
      return still ? answer : ThreadNameAnswer::kLater;
    }
  }
  return ReadNativeName(layout, thread, kernel_name, name) ? ThreadNameAnswer::kWhole : answer;
}

}  // namespace cadastre
