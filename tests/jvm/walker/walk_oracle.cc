// The Java walker against the JVM's own walks, inside malloc, in one call: this library is preloaded and is the JVM's
// agent at the same time. Test only: it locks, allocates and uses JVMTI as it likes.
//
// AsyncGetCallTrace names frames by (jmethodID, bytecode index); a jmethodID points to the Method*, so what the walker
// should have written for each frame can be computed and compared word for word, line included. Where the thread is in
// native code, JVMTI GetStackTrace may be asked too: it decides between the two where they differ.
//
// Environment: CADASTRE_ORACLE=jvmti compares with JVMTI GetStackTrace alone, where the stress's own native methods
// allocate (for -Xcomp, in which AsyncGetCallTrace takes the wrong debug information for many a frame, or none);
// CADASTRE_ORACLE=time compares nothing and says how long warm captures of about 20 native and 30 Java frames take;
// CADASTRE_ORACLE_EVERY compares each Nth allocation (default 1); CADASTRE_ORACLE_OUT gets the counts, one
// "name value" a line (finished_from_heap: stacks of which a part came from the Java heap); CADASTRE_ORACLE_SHOW shows
// that many differences on stderr (default 3).
#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "interposer/elf_lookup.h"
#include "interposer/interned_strings.h"
#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/frozen_stack.h"
#include "interposer/jvm/java_thread.h"
#include "interposer/jvm/jvm.h"
#include "interposer/jvm/method_names.h"
#include "interposer/library_map.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"
#include "tests/support/allocation_hooks.h"

namespace {

using namespace cadastre;

// AsyncGetCallTrace's interface, as forte.cpp describes it.
struct AsgctFrame {
  jint bytecode;  // -3: native method
  jmethodID method;
};
struct AsgctTrace {
  JNIEnv* env;
  jint count;  // or an error, below 0
  AsgctFrame* frames;
};
using AsyncGetCallTrace = void (*)(AsgctTrace*, jint, void*);

constexpr jint kDepth = 1024;
constexpr jint kNativeBytecode = -3;
constexpr char kVirtualThreadRoot[] = "jdk.internal.vm.Continuation.enterSpecial:0";

std::atomic<bool> g_started{false};
std::atomic<uint64_t> g_allocations{0};
uint64_t g_every = 1;
int64_t g_show = 3;
bool g_ask_jvmti = false;
bool g_only_time = false;
JavaVM* g_vm;
jvmtiEnv* g_jvmti;
AsyncGetCallTrace g_asgct;
VmLayout g_layout;
int32_t g_thread_state = -1, g_stack_base = -1, g_stack_size = -1;
__thread int t_inside __attribute__((tls_model("initial-exec")));

__thread bool t_finished_from_heap __attribute__((tls_model("initial-exec")));

struct Counts {
  std::atomic<uint64_t> walks, equal, different, walker_only, oracle_only, neither, oracle_errors, frames, cut,
      continuations, finished_from_heap, finished_equal, skipped_native, unknown_ids, decided_for_walker,
      decided_for_oracle, undecided;
};
Counts g_counts;

uint64_t ExpectedWord(jmethodID id, jint bytecode) {
  if (id == nullptr) return 0;
  const uint64_t method = *reinterpret_cast<const uint64_t*>(id);
  if (method == 0) return 0;
  return JavaFrameAtIndex(g_layout, method, bytecode == kNativeBytecode ? -1 : bytecode);
}

std::string NameOf(uint64_t word) {
  const uint32_t string = format::JavaNameOf(word);
  const auto* header = reinterpret_cast<const format::StringHeader*>(g_profile.strings + string);
  std::string name(reinterpret_cast<const char*>(header + 1), header->length);
  return name.substr(0, name.find('\n')) + ":" + std::to_string(format::JavaLineOf(word));
}

// 0: equal as far as both go. An id that is not known may be any method.
bool Equal(const std::vector<uint64_t>& walked, const std::vector<uint64_t>& expected, bool cut) {
  if (cut ? walked.size() > expected.size() : walked.size() != expected.size()) return false;
  for (size_t i = 0; i < walked.size(); i++) {
    if (expected[i] != 0 && walked[i] != expected[i]) return false;
  }
  return true;
}

void Show(const char* what, const std::vector<uint64_t>& walked, const std::vector<uint64_t>& expected,
          const uint64_t* frames, uint32_t count, uint32_t flags) {
  static std::atomic<int64_t> shown{0};
  if (shown.fetch_add(1) >= g_show) return;
  std::string text = std::string(what) + ": flags " + std::to_string(flags) + ", native frames before Java:";
  for (uint32_t i = 0; i < count && format::FrameTagOf(frames[i]) != format::kFrameJava; i++) {
    char word[64];
    snprintf(word, sizeof(word), " %lu+0x%lx", format::FrameLibraryOf(frames[i]), format::FrameAddressOf(frames[i]));
    text += word;
  }
  text += "\n";
  for (size_t i = 0; i < walked.size() || i < expected.size(); i++) {
    text += "  " + (i < walked.size() ? NameOf(walked[i]) : std::string("-")) + "  |  " +
            (i < expected.size() ? (expected[i] != 0 ? NameOf(expected[i]) : std::string("?")) : std::string("-")) +
            "\n";
  }
  fputs(text.c_str(), stderr);
}

bool IsInNative() {
  const uint64_t thread = CurrentVmThread();
  return thread != 0 && g_thread_state >= 0 && LoadField<int32_t>(thread, g_thread_state) == 4;  // _thread_in_native
}

bool AskJvmti(std::vector<uint64_t>* expected) {
  std::vector<jvmtiFrameInfo> infos(kDepth);
  jint count = 0;
  if (g_jvmti->GetStackTrace(nullptr, 0, kDepth, infos.data(), &count) != JVMTI_ERROR_NONE) return false;
  expected->clear();
  for (jint i = 0; i < count; i++) {
    expected->push_back(
        ExpectedWord(infos[i].method, infos[i].location < 0 ? kNativeBytecode : static_cast<jint>(infos[i].location)));
  }
  return true;
}

// Only below the stress's own native methods: they hold nothing that a wait for a safepoint could block on.
void CompareWithJvmti(std::vector<uint64_t> walked, const uint64_t* frames, uint32_t count, uint32_t flags, bool cut) {
  std::vector<uint64_t> expected;
  // JVMTI leaves out the root of a virtual thread.
  if (walked.size() > 1 && NameOf(walked.back()) == kVirtualThreadRoot) walked.pop_back();
  if (walked.empty() || !IsInNative() || NameOf(walked[0]).rfind("com.acme.stress.", 0) != 0 || !AskJvmti(&expected)) {
    g_counts.neither++;
    return;
  }
  if (Equal(walked, expected, cut)) {
    g_counts.equal++;
    g_counts.finished_equal += t_finished_from_heap;
    return;
  }
  g_counts.different++;
  Show("different (walker | JVMTI)", walked, expected, frames, count, flags);
}

// The stack of a Java thread as HotSpot knows it. (pthread_getattr_np allocates under a lock of its own: not from
// here.)
StackBounds OwnStack() {
  const uint64_t thread = CurrentVmThread();
  if (thread == 0 || g_stack_base < 0 || g_stack_size < 0) return {0, 0};
  const uint64_t high = LoadField<uint64_t>(thread, g_stack_base);
  return {high - LoadField<uint64_t>(thread, g_stack_size), high};
}

// One thread's times.
std::vector<uint32_t> g_times;
uint64_t g_timed_native, g_timed_java;

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

void Measure(const EntryRegisters& registers) {
  uint64_t frames[kMaxFrames];
  uint32_t flags = 0;
  const uint64_t begin = Now();
  const uint32_t count = CaptureStack(registers, OwnStack(), frames, kMaxFrames, &flags);
  const uint64_t end = Now();
  uint64_t java = 0;
  for (uint32_t i = 0; i < count; i++) java += format::FrameTagOf(frames[i]) == format::kFrameJava;
  if (java < 28 || count - java < 18 || java > 34 || count - java > 30) return;
  g_timed_native += count - java;
  g_timed_java += java;
  g_times.push_back(static_cast<uint32_t>(end - begin));
}

void Compare(const EntryRegisters& registers) {
  if (g_only_time) return Measure(registers);
  uint64_t frames[kMaxFrames];
  uint32_t flags = 0;
  t_finished_from_heap = false;
  const uint32_t count = CaptureStack(registers, OwnStack(), frames, kMaxFrames, &flags);
  g_counts.walks++;
  g_counts.finished_from_heap += t_finished_from_heap;
  g_counts.frames += count;
  const bool cut = (flags & format::kSiteTruncatedMask) != 0;
  if ((flags & format::kSiteTruncatedContinuation) != 0) g_counts.continuations++;
  if ((flags & format::kSiteSkippedNative) != 0) g_counts.skipped_native++;
  if (cut && (flags & (format::kSiteTruncatedContinuation | format::kSiteTruncatedDepth)) == 0) g_counts.cut++;
  std::vector<uint64_t> walked;
  for (uint32_t i = 0; i < count; i++) {
    if (format::FrameTagOf(frames[i]) == format::kFrameJava) walked.push_back(frames[i]);
  }
  JNIEnv* env = nullptr;
  if (g_vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_6) != JNI_OK || env == nullptr) {
    // No JavaThread: there can be no Java frames.
    if (!walked.empty()) {
      g_counts.different++;
      Show("frames without a Java thread", walked, {}, frames, count, flags);
    } else {
      g_counts.neither++;
    }
    return;
  }
  if (g_ask_jvmti) return CompareWithJvmti(walked, frames, count, flags, cut);
  std::vector<AsgctFrame> buffer(kDepth);
  AsgctTrace trace = {env, 0, buffer.data()};
  ucontext_t context = {};
  context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(registers.pc);
  context.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(registers.sp);
  context.uc_mcontext.gregs[REG_RBP] = static_cast<greg_t>(registers.rbp);
  g_asgct(&trace, kDepth, &context);
  if (trace.count <= 0) {
    if (trace.count < 0) g_counts.oracle_errors++;
    walked.empty() ? g_counts.neither++ : g_counts.walker_only++;
    return;
  }
  std::vector<uint64_t> expected;
  bool all_known = true;
  for (jint i = 0; i < trace.count; i++) {
    expected.push_back(ExpectedWord(buffer[i].method, buffer[i].bytecode));
    all_known &= expected.back() != 0;
  }
  if (!all_known) g_counts.unknown_ids++;
  if (walked.empty()) {
    g_counts.oracle_only++;
    Show("no frames", walked, expected, frames, count, flags);
    return;
  }
  if (Equal(walked, expected, cut)) {
    g_counts.equal++;
    return;
  }
  // Of a virtual thread AsyncGetCallTrace goes on into the thread that carries it.
  if (expected.size() > walked.size() && walked.size() > 1) {
    if (NameOf(walked.back()) == kVirtualThreadRoot &&
        Equal(walked, std::vector<uint64_t>(expected.begin(), expected.begin() + static_cast<long>(walked.size())),
              false)) {
      g_counts.equal++;
      return;
    }
  }
  g_counts.different++;
  std::vector<uint64_t> decided;
  if (IsInNative() && AskJvmti(&decided)) {
    if (Equal(walked, decided, cut)) {
      g_counts.decided_for_walker++;
      return;
    }
    if (Equal(expected, decided, false)) g_counts.decided_for_oracle++;
  } else {
    g_counts.undecided++;
  }
  Show("different (walker | oracle)", walked, expected, frames, count, flags);
}

void LoadMethodIds(jvmtiEnv* jvmti, jclass type) {
  jint count;
  jmethodID* ids;
  if (jvmti->GetClassMethods(type, &count, &ids) == JVMTI_ERROR_NONE)
    jvmti->Deallocate(reinterpret_cast<unsigned char*>(ids));
}
void JNICALL OnClassLoad(jvmtiEnv*, JNIEnv*, jthread, jclass) {}  // AsyncGetCallTrace answers only if this is enabled
void JNICALL OnClassPrepare(jvmtiEnv* jvmti, JNIEnv*, jthread, jclass type) { LoadMethodIds(jvmti, type); }
void JNICALL OnInit(jvmtiEnv* jvmti, JNIEnv*, jthread) {
  jint count;
  jclass* classes;
  if (jvmti->GetLoadedClasses(&count, &classes) != JVMTI_ERROR_NONE) return;
  for (jint i = 0; i < count; i++) LoadMethodIds(jvmti, classes[i]);
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(classes));
  g_started = true;
}

void Report() {
  g_started = false;
  const char* path = getenv("CADASTRE_ORACLE_OUT");
  FILE* file = path != nullptr ? fopen(path, "we") : nullptr;
  if (file == nullptr) return;
  const std::pair<const char*, uint64_t> rows[] = {
      {"walks", g_counts.walks},
      {"equal", g_counts.equal},
      {"different", g_counts.different},
      {"walker_only", g_counts.walker_only},
      {"oracle_only", g_counts.oracle_only},
      {"neither", g_counts.neither},
      {"oracle_errors", g_counts.oracle_errors},
      {"frames", g_counts.frames},
      {"cut", g_counts.cut},
      {"continuations", g_counts.continuations},
      {"finished_from_heap", g_counts.finished_from_heap},
      {"finished_equal", g_counts.finished_equal},
      {"skipped_native", g_counts.skipped_native},
      {"unknown_ids", g_counts.unknown_ids},
      {"decided_for_walker", g_counts.decided_for_walker},
      {"decided_for_oracle", g_counts.decided_for_oracle},
      {"undecided", g_counts.undecided},
  };
  for (const auto& [name, value] : rows) fprintf(file, "%s %lu\n", name, value);
  if (!g_times.empty()) {
    const size_t count = g_times.size();
    std::sort(g_times.begin(), g_times.end());
    fprintf(file, "timed %zu\nmedian_ns %u\np90_ns %u\nnative_frames %lu\njava_frames %lu\n", count, g_times[count / 2],
            g_times[count / 10 * 9], g_timed_native / count, g_timed_java / count);
  }
  fclose(file);
}

void JNICALL OnDeath(jvmtiEnv*, JNIEnv*) {
  t_inside = 1;
  Report();
}

__attribute__((constructor)) void Start() {
  t_inside = 1;
  if (const char* every = getenv("CADASTRE_ORACLE_EVERY")) g_every = strtoull(every, nullptr, 10);
  if (const char* show = getenv("CADASTRE_ORACLE_SHOW")) g_show = strtoll(show, nullptr, 10);
  if (const char* oracle = getenv("CADASTRE_ORACLE")) {
    g_ask_jvmti = strcmp(oracle, "jvmti") == 0;
    g_only_time = strcmp(oracle, "time") == 0;
  }
  if (g_every == 0) g_every = 1;
  // A profile without a file: 64 MiB of address space for names.
  static format::Header header;
  g_profile.string_units = 8 << 20;
  g_profile.strings = static_cast<uint64_t*>(calloc(g_profile.string_units, 8));
  g_profile.header = &header;
  InternedStringsInit(g_profile.string_units);
  LibraryMapInit("");
  StackCaptureInit();
  t_inside = 0;
}

}  // namespace

void oracle_allocation(const cadastre::EntryRegisters* registers) {
  if (!g_started.load(std::memory_order_relaxed) || t_inside) return;
  if (g_allocations.fetch_add(1, std::memory_order_relaxed) % g_every != 0) return;
  t_inside = 1;
  Compare(*registers);
  t_inside = 0;
}

// The walker's calls of FrozenStack::Next come here (--wrap), to count the stacks that it finished.
extern "C" cadastre::FrozenStep __real__ZN8cadastre11FrozenStack4NextEPNS_11FrozenFrameE(cadastre::FrozenStack* stack,
                                                                                         cadastre::FrozenFrame* frame);
extern "C" cadastre::FrozenStep __wrap__ZN8cadastre11FrozenStack4NextEPNS_11FrozenFrameE(cadastre::FrozenStack* stack,
                                                                                         cadastre::FrozenFrame* frame) {
  const cadastre::FrozenStep step = __real__ZN8cadastre11FrozenStack4NextEPNS_11FrozenFrameE(stack, frame);
  if (step == cadastre::FrozenStep::kRoot) t_finished_from_heap = true;
  return step;
}

extern "C" __attribute__((visibility("default"))) int pthread_key_create(pthread_key_t* key,
                                                                         void (*destructor)(void*)) {
  static auto* real =
      reinterpret_cast<int (*)(pthread_key_t*, void (*)(void*))>(dlsym(RTLD_NEXT, "pthread_key_create"));
  const int error = real(key, destructor);
  if (error == 0) cadastre::JvmNoteThreadKey(__builtin_return_address(0), *key);
  return error;
}

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char*, void*) {
  t_inside = 1;
  g_vm = vm;
  const link_map* libjvm = cadastre::LibraryOf(reinterpret_cast<const void*>(vm->functions->GetEnv));
  void* handle = dlopen("libjvm.so", RTLD_LAZY | RTLD_NOLOAD);
  g_asgct = handle != nullptr ? reinterpret_cast<AsyncGetCallTrace>(dlsym(handle, "AsyncGetCallTrace")) : nullptr;
  if (g_asgct == nullptr || !cadastre::ReadVmStructs(libjvm, &g_layout)) {
    fprintf(stderr, "walk_oracle: no AsyncGetCallTrace, or %s is missing\n", g_layout.missing);
    return JNI_ERR;
  }
  struct Row {
    const char *type, *field, *field_type;
    int32_t is_static;
    uint64_t offset;
    void* address;
  };
  for (const Row* row = *static_cast<Row* const*>(dlsym(handle, "gHotSpotVMStructs")); row->type != nullptr; row++) {
    if (strcmp(row->type, "JavaThread") != 0) continue;
    const auto offset = static_cast<int32_t>(row->offset);
    if (!strcmp(row->field, "_thread_state")) g_thread_state = offset;
    if (!strcmp(row->field, "_stack_base")) g_stack_base = offset;
    if (!strcmp(row->field, "_stack_size")) g_stack_size = offset;
  }
  if (vm->GetEnv(reinterpret_cast<void**>(&g_jvmti), JVMTI_VERSION_1_2) != JNI_OK) return JNI_ERR;
  jvmtiEventCallbacks callbacks = {};
  callbacks.ClassLoad = OnClassLoad;
  callbacks.ClassPrepare = OnClassPrepare;
  callbacks.VMInit = OnInit;
  callbacks.VMDeath = OnDeath;
  g_jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (jvmtiEvent event :
       {JVMTI_EVENT_CLASS_LOAD, JVMTI_EVENT_CLASS_PREPARE, JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH}) {
    g_jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  t_inside = 0;
  return JNI_OK;
}
