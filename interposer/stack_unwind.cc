#include "interposer/stack_unwind.h"

#include <libunwind.h>
#include <string.h>

#include <atomic>

#include "interposer/eh_frame.h"
#include "interposer/library_map.h"
#include "interposer/unwind_image.h"

namespace cadastre {
namespace {

constexpr char kLibraryName[] = "libcadastre-unwind.so";

UnwindImage g_image;
// Found by name in it, never linked: libunwind.h names these functions by macros, _Ux86_64_init_remote and so on.
#define CADASTRE_UNWIND_NAME_(function) #function
#define CADASTRE_UNWIND_NAME(function) CADASTRE_UNWIND_NAME_(function)
decltype(&unw_init_remote) g_start;
decltype(&unw_step) g_step;
decltype(&unw_get_reg) g_register;
int (*g_search_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*, unw_proc_info_t*, int, void*);
// Set last.
unw_addr_space_t g_space = nullptr;
unw_accessors_t g_accessors;

struct Context {
  const EntryRegisters* registers;
  StackMemory* memory;
  LibraryEntry library;  // that the current pc lies in; end == 0: none yet
};

// Not -UNW_ENOINFO: on that unw_step would go on by frame pointer, guessing.
constexpr int kNoTable = -UNW_EBADFRAME;

// Where the search table begins, if .eh_frame_hdr has the one shape that libunwind can search: version 1, pcrel sdata4,
// udata4, datarel sdata4. Two words: {version and encodings, eh_frame}, {row count}.
bool FindSearchTable(const LibraryEntry& library, unw_dyn_info_t* table) {
  if (library.eh_frame_hdr == nullptr || library.eh_frame_hdr_bytes < 12) return false;
  uint32_t words[3];
  memcpy(words, library.eh_frame_hdr, sizeof(words));
  const bool usual = words[0] == 0x3b031b01;
  if (!usual || words[2] > (library.tables_end - reinterpret_cast<uint64_t>(library.eh_frame_hdr) - 12) / 8)
    return false;
  memset(table, 0, sizeof(*table));
  table->start_ip = library.start;
  table->end_ip = library.end;
  table->format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table->u.rti.segbase = reinterpret_cast<uint64_t>(library.eh_frame_hdr);
  table->u.rti.table_data = reinterpret_cast<uint64_t>(library.eh_frame_hdr) + 12;
  table->u.rti.table_len = words[2];  // rows of 8 bytes = words
  return true;
}

int FindProcInfo(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t* info, int need_unwind_info, void* data) {
  auto* context = static_cast<Context*>(data);
  LibraryEntry library;
  unw_dyn_info_t table;
  if (!LookupLibrary(pc, &library) || !FindSearchTable(library, &table)) return kNoTable;
  context->library = library;
  int result = g_search_table(space, pc, &table, info, need_unwind_info, data);
  return result == -UNW_ENOINFO ? kNoTable : result;
}

bool IsSignalTrampoline(uint64_t pc) {
  LibraryEntry library;
  FrameTable table;
  return LookupLibrary(pc - 1, &library) && FindFrameTable(library, pc - 1, &table) && table.signal_frame;
}

void PutUnwindInfo(unw_addr_space_t, unw_proc_info_t*, void*) {}
int GetDynamicInfoList(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

int AccessMemory(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void* data) {
  auto* context = static_cast<Context*>(data);
  if (write) return -UNW_EINVAL;
  const LibraryEntry& library = context->library;
  if (address >= library.start && address < library.end) {
    // libunwind rounds down to words, so the first and last word of the tables may reach over their edge, but never
    // over a page's.
    const bool in_tables =
        address >= (library.tables_start & ~7ull) && address + 8 <= ((library.tables_end + 7) & ~7ull);
    // What it reads elsewhere in the library is the address of the personality routine, which nobody here calls.
    *value = 0;
    if (in_tables) memcpy(value, reinterpret_cast<const void*>(address), sizeof(*value));
    return 0;
  }
  return context->memory->ReadAgain(address, value) ? 0 : -UNW_EINVAL;
}

int AccessRegister(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int write, void* data) {
  const EntryRegisters& registers = *static_cast<Context*>(data)->registers;
  if (write) return -UNW_EREADONLYREG;
  switch (number) {
    case UNW_X86_64_RIP:
      *value = registers.pc;
      return 0;
    case UNW_X86_64_RSP:
      *value = registers.sp;
      return 0;
    case UNW_X86_64_RBP:
      *value = registers.rbp;
      return 0;
    case UNW_X86_64_RBX:
      *value = registers.rbx;
      return 0;
    case UNW_X86_64_R12:
      *value = registers.r12;
      return 0;
    case UNW_X86_64_R13:
      *value = registers.r13;
      return 0;
    case UNW_X86_64_R14:
      *value = registers.r14;
      return 0;
    case UNW_X86_64_R15:
      *value = registers.r15;
      return 0;
    default:
      return -UNW_EBADREG;  // the others are lost at every call
  }
}

int AccessFloatRegister(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EBADREG; }
int Resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }
int GetProcName(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

// One thread at a time: the image has no locks (unwind_image.h). A thread that finds it busy tries for some
// microseconds, which is several steps of the other, and then gives up: its stack is marked as cut. Nobody waits for
// anybody.
constexpr int kEntryAttempts = 4096;
std::atomic<uint32_t> g_busy{0};

bool Enter() {
  for (int i = 0; i < kEntryAttempts; i++) {
    if (g_busy.load(std::memory_order_relaxed) == 0 && g_busy.exchange(1, std::memory_order_acquire) == 0) return true;
    __builtin_ia32_pause();
  }
  return false;
}
void Leave() { g_busy.store(0, std::memory_order_release); }

template <typename Function>
bool Find(const char* name, Function* function) {
  *function = reinterpret_cast<Function>(g_image.Find(name));
  return *function != nullptr;
}

// By who has entered; tried once.
__attribute__((noinline)) bool Resolve() {
  static bool is_tried;
  if (is_tried || !g_image.Prepare()) return false;
  is_tried = true;
  decltype(&unw_create_addr_space) create;
  decltype(&unw_set_caching_policy) set_caching;
  bool found = Find(CADASTRE_UNWIND_NAME(unw_create_addr_space), &create) &&
               Find(CADASTRE_UNWIND_NAME(unw_set_caching_policy), &set_caching) &&
               Find(CADASTRE_UNWIND_NAME(unw_init_remote), &g_start) && Find(CADASTRE_UNWIND_NAME(unw_step), &g_step) &&
               Find(CADASTRE_UNWIND_NAME(unw_get_reg), &g_register) &&
               Find("_Ux86_64_dwarf_search_unwind_table", &g_search_table);
  if (!found) return false;
  g_accessors.find_proc_info = FindProcInfo;
  g_accessors.put_unwind_info = PutUnwindInfo;
  g_accessors.get_dyn_info_list_addr = GetDynamicInfoList;
  g_accessors.access_mem = AccessMemory;
  g_accessors.access_reg = AccessRegister;
  g_accessors.access_fpreg = AccessFloatRegister;
  g_accessors.resume = Resume;
  g_accessors.get_proc_name = GetProcName;
  unw_addr_space_t space = create(&g_accessors, 0);
  if (space == nullptr) return false;
  set_caching(space, UNW_CACHE_NONE);  // nothing to go stale when a library is unloaded
  g_space = space;
  return true;
}

}  // namespace

void StackUnwindInit(const char* own_path) {
  char path[4096];
  const char* slash = own_path != nullptr ? strrchr(own_path, '/') : nullptr;
  if (slash == nullptr) return;
  const size_t directory_bytes = static_cast<size_t>(slash - own_path) + 1;
  if (directory_bytes + sizeof(kLibraryName) > sizeof(path)) return;
  memcpy(path, own_path, directory_bytes);
  memcpy(path + directory_bytes, kLibraryName, sizeof(kLibraryName));
  g_image.Map(path);
}

bool StackUnwindPrepare() {
  if (!Enter()) return false;
  const bool is_ready = g_space != nullptr || Resolve();
  Leave();
  return is_ready;
}

bool StackUnwindStep(const EntryRegisters& registers, uint32_t steps, StackMemory* memory, UnwoundFrame* frame) {
  if (!Enter()) return false;
  if (g_space == nullptr && !Resolve()) {
    Leave();
    return false;
  }
  Context context = {&registers, memory, {}};
  unw_cursor_t cursor;
  bool ok = g_start(&cursor, g_space, &context) == 0;
  for (uint32_t i = 0; i < steps && ok; i++) {
    ok = g_register(&cursor, UNW_REG_IP, &frame->pc) == 0 && g_step(&cursor) > 0;
  }
  // unw_is_signal_frame means the frame before or after, depending on the version.
  frame->exact = ok && IsSignalTrampoline(frame->pc);
  ok = ok && g_register(&cursor, UNW_REG_IP, &frame->pc) == 0 && g_register(&cursor, UNW_REG_SP, &frame->sp) == 0 &&
       g_register(&cursor, UNW_X86_64_RBP, &frame->rbp) == 0;
  Leave();
  return ok;
}

}  // namespace cadastre
