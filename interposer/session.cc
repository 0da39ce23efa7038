#include "interposer/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/auxv.h>

#include "interposer/bus_guard.h"
#include "interposer/complaints.h"
#include "interposer/elf_lookup.h"
#include "interposer/interned_strings.h"
#include "interposer/jvm/jvm.h"
#include "interposer/library_map.h"
#include "interposer/live_table.h"
#include "interposer/live_thinning.h"
#include "interposer/mapping_map.h"
#include "interposer/mapping_queue.h"
#include "interposer/optional_entries.h"
#include "interposer/output_place.h"
#include "interposer/process_facts.h"
#include "interposer/profile_file.h"
#include "interposer/profile_name.h"
#include "interposer/profile_retention.h"
#include "interposer/raw_syscall.h"
#include "interposer/real_allocator.h"
#include "interposer/recorder.h"
#include "interposer/sampler.h"
#include "interposer/site_table.h"
#include "interposer/stack_capture.h"
#include "interposer/thread_buffer.h"
#include "interposer/thread_state.h"
#include "interposer/thread_table.h"

extern "C" int __register_atfork(void (*)(), void (*)(), void (*)(), void*);
// quick_exit calls its handlers and no destructors (glibc 2.10).
extern "C" int __cxa_at_quick_exit(void (*)(void*), void*) __attribute__((weak));
extern "C" void* __dso_handle __attribute__((visibility("hidden")));

namespace cadastre {
namespace {

using format::Header;

uint32_t state;  // SessionState
Options options;
const char* options_text;
uint64_t thread_count;
uint64_t random_base;
uint64_t interval_now;
uint64_t double_at;  // live slots in use at which the interval doubles next
constexpr uint64_t kPassUnderWay = ~0ull;
constexpr uint64_t kLargestInterval = 1ull << 50;
uint32_t own_pid;
char profile_path[PATH_MAX];
OutputPlace place;  // as chosen at the first due sample
ProcessFacts facts;

SessionState State() { return static_cast<SessionState>(__atomic_load_n(&state, __ATOMIC_ACQUIRE)); }
void SetState(SessionState to) { __atomic_store_n(&state, static_cast<uint32_t>(to), __ATOMIC_RELEASE); }
bool Advance(SessionState from, SessionState to) {
  uint32_t expected = static_cast<uint32_t>(from);
  return __atomic_compare_exchange_n(&state, &expected, static_cast<uint32_t>(to), false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

// By the file, or by the name under which it was started.
bool IsNamed(const char* glob) {
  return GlobMatches(glob, facts.exe_name()) || (facts.started_as[0] != '\0' && GlobMatches(glob, facts.started_as));
}

bool IsMeantForThisProcess() {
  if (RealAllocatorIsSanitizer()) return false;
  if (getauxval(AT_SECURE) != 0) return false;  // a setuid program is told nothing and tells nothing
  if (strcmp(facts.exe_name(), "cadastre") == 0) return false;
  if (!IsNamed(options.exe)) return false;
  const bool is_root = options.for_pid == 0 || options.for_pid == own_pid;
  if (!is_root && options.children == Children::kNo) return false;
  if (!is_root && options.children == Children::kPattern && !IsNamed(options.children_pattern)) return false;
  return true;
}

// Whose children a process is, only `cadastre run` can tell it. (Of a place that cannot be written to nothing is said:
// that is found out at the first due sample, when stderr is the program's alone.)
void ComplainUnderABarePreload() {
  if (options.for_pid == 0 && options.children != Children::kYes)
    Complain("only `cadastre run` knows whose children these are; every program is recorded", "children=", 9);
}

void SeedRandom() {
  // AT_RANDOM: 16 random bytes that the kernel gives every process; no system call.
  uint64_t words[2] = {0x5bd1e995, 0x1b873593};
  unsigned long random = getauxval(AT_RANDOM);
  if (random != 0) memcpy(words, reinterpret_cast<const void*>(random), sizeof(words));
  random_base = options.seed != 0 ? options.seed * 0x9e3779b97f4a7c15ull : words[0] ^ (words[1] << 1);
}

uint32_t AddText(const char* text) { return ProfileAddString(text, strlen(text)); }

uint32_t AddCommand() {
  alignas(4096) static char command[32 * 1024];
  if (options.command == CommandDetail::kNone) return 0;
  size_t length = ReadCommandLine(facts, command, sizeof(command));
  if (options.command == CommandDetail::kExe) length = KeepProgramAndMainClass(command, length);
  return ProfileAddString(command, length);
}

void FillHeader(Header* header) {
  header->run_state = options.start_paused ? format::kRunPaused : format::kRunRecording;
  header->pid = own_pid;
  header->pid_namespace = facts.pid_namespace;
  header->process_start_ticks = facts.start_ticks;
  header->start_realtime_ns = facts.start_realtime_ns;
  header->start_monotonic_ns = facts.start_monotonic_ns;
  uint64_t mixed = random_base ^ facts.start_realtime_ns ^ (static_cast<uint64_t>(own_pid) << 32);
  for (int i = 0; i < 2; i++) {
    uint64_t word = NextRandom(&mixed);
    memcpy(header->session_id + 8 * i, &word, sizeof(word));
  }
  header->interval_bytes = options.interval_bytes;
  header->seed = options.seed;
  header->control.paused = options.start_paused;
  if (options.start_paused) {
    header->control_log.paused_since_realtime_ns = facts.start_realtime_ns;
    header->control_log.first_pause_realtime_ns = facts.start_realtime_ns;
  }
  header->exe = AddText(facts.exe);
  header->command = AddCommand();
  header->host = AddText(facts.host);
  header->labels = AddText(options.labels);
  header->expect = AddText(options.expect);
  header->outcome.awaited = options.for_pid != 0;
  header->options = options_text != nullptr ? AddText(options_text) : 0;
  const link_map* before = nullptr;
  const link_map* allocator = MallocIsServedBeforeUs(&before) ? before : RealAllocatorLibrary();
  if (allocator != nullptr) {
    const char* path = allocator->l_name != nullptr && allocator->l_name[0] != '\0' ? allocator->l_name : facts.exe;
    header->allocator_path = AddText(path);
    header->allocator = AddText(BaseName(path));
  }
}

bool OpenTables() {
  return LiveTableInit(g_profile.live_capacity, options.interval_bytes, g_profile.buffer_capacity) &&
         SiteTableInit(g_profile.site_capacity) && InternedStringsInit(g_profile.string_units) &&
         ThreadTableInit(g_profile.thread_capacity) && MappingMapInit(g_profile.mapping_capacity) &&
         RecorderInit(g_profile.buffer_capacity);
}

bool LookIsDueAmongMany(uint8_t* until_look) {
  constexpr uint8_t kUnlooked = 63;
  if (*until_look != 0) {
    (*until_look)--;
    return false;
  }
  *until_look = kUnlooked;
  return true;
}

void OpenGate() {
  if (!RealAllocatorIsReached()) return;
  SessionGateOpen();
  if (__atomic_load_n(&state, __ATOMIC_SEQ_CST) != static_cast<uint32_t>(SessionState::kRecording)) SessionGateClose();
}

uint64_t Interval() {
  const uint64_t interval = __atomic_load_n(&interval_now, __ATOMIC_RELAXED);
  if (State() != SessionState::kRecording) return interval;
  const uint64_t wanted = __atomic_load_n(&g_profile.header->control.interval_bytes, __ATOMIC_RELAXED);
  return wanted != 0 && wanted <= kLargestInterval ? wanted : interval;
}

// The file is not what it was, or is not this process's.
bool EndWithoutFile() {
  SetState(SessionState::kOff);
  SessionGateClose();
  return ProfileDetach();
}

bool TakeFault(const void* address) { return ProfileContains(address) && EndWithoutFile(); }

void ChildAfterFork() { EndWithoutFile(); }

}  // namespace

SessionState SessionCurrentState() { return State(); }
const Options& SessionOptions() { return options; }

void SessionPrepare() {
  if (!Advance(SessionState::kNew, SessionState::kPreparing)) return;
  own_pid = static_cast<uint32_t>(RawSyscall(SYS_getpid));
  ReadProcessFacts(&facts);
  SetDefaultOptions(&options);
  options_text = facts.environment("CADASTRE_OPTIONS");
  if (getauxval(AT_SECURE) == 0 && options_text != nullptr) ParseOptions(options_text, &options, Complain);
  interval_now = options.interval_bytes;
  SeedRandom();
  if (!AlivePageMake() || !IsMeantForThisProcess()) return SetState(SessionState::kOff);
  ComplainUnderABarePreload();
  SayComplaints(facts, options, options_text);
  // Started as `ld.so ./program` the kernel's name for what runs is the loader's.
  LibraryMapInit(facts.loader_was_started ? "" : facts.exe);
  SetState(SessionState::kArmed);
}

bool SessionOpen() {
  if (State() != SessionState::kArmed || !Advance(SessionState::kArmed, SessionState::kOpening))
    return SessionIsRecording();
  if (!ChooseOutputPlace(options, facts, own_pid, &place)) {
    SetState(SessionState::kOff);
    return false;
  }
  const bool exact = options.interval_bytes <= 1;
  RemoveOldProfiles(place.directory, facts, options.keep);
  // Of private tables there is three quarters of the profile, and seven times as much where stacks are remembered: a
  // twentieth of the limit, and a tenth.
  const uint64_t data_share = SessionSamplesAreFrequent() ? 64 : 16;
  ProfileSpec spec = {place.directory,
                      place.name,
                      options.mode,
                      options.memory_bytes,
                      exact ? kDefaultExactMemoryBytes : kDefaultMemoryBytes,
                      exact,
                      data_share};
  ProfileError error = ProfileCreate(spec, profile_path, sizeof(profile_path));
  if (error.what == nullptr && !OpenTables()) {
    ProfileDiscard(profile_path);
    error = {"no memory for the profile", ENOMEM};
  }
  if (error.what != nullptr) {
    // Nothing on stderr: that is the program's. `cadastre run` says it at the end, `cadastre doctor` when asked.
    if (options.for_pid == own_pid) ProfileLeaveReason(place.directory, own_pid, error);
    SetState(SessionState::kOff);
    return false;
  }
  FillHeader(g_profile.header);
  double_at = NextDoubling(0, g_profile.live_capacity);
  ProfilePublish();
  LibraryMapPublish();
  JvmPublish();
  BusGuardPrepare(TakeFault);
  StackCaptureOpen();
  SetState(SessionState::kRecording);
  MappingQueueDrain();  // what an allocator has mapped before
  return true;
}

bool SessionIsRecording() {
  if (State() != SessionState::kRecording) return false;
  if (!AlivePageIsAlive()) return false;
  // Kernels before 4.14 cannot wipe: ask who we are. A sandbox may punish the question; there the atfork handler is
  // all there is.
  return AlivePageCanBeWiped() || IsSandboxed() || static_cast<uint32_t>(RawSyscall(SYS_getpid)) == own_pid;
}

bool SessionFileIsWholeSlow(uint8_t* until_look) {
  if (!SessionSamplesAreFrequent() || !BusGuardIsDecided()) return SessionFileIsWhole();
  // A look is dear, and the guard is better; until it stands there is nothing but the look.
  if (!LookIsDueAmongMany(until_look)) return SessionIsRecording();
  if (!SessionFileIsWhole()) return false;
  OpenGate();
  return true;
}

bool SessionFileIsWhole() {
  if (!SessionIsRecording()) return false;
  if (IsSandboxed()) return true;
  BusGuardNoteTouch();
  if (ProfileIsWhole()) return true;
  EndWithoutFile();
  return false;
}

uint64_t SessionInterval(bool* is_paused) {
  *is_paused = SessionIsPaused();
  return Interval();
}

bool SessionIsPaused() {
  if (State() != SessionState::kRecording) return options.start_paused;
  return __atomic_load_n(&g_profile.header->control.paused, __ATOMIC_RELAXED) != 0;
}

void SessionNoteFill(uint64_t* random) {
  uint64_t limit = __atomic_load_n(&double_at, __ATOMIC_RELAXED);
  const uint64_t interval = Interval();
  const bool is_due = interval > 1 && interval < kLargestInterval && LiveCount() >= limit;
  if (is_due &&
      __atomic_compare_exchange_n(&double_at, &limit, kPassUnderWay, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    const uint64_t doubled = interval * 2;
    __atomic_store_n(&interval_now, doubled, __ATOMIC_RELAXED);
    if (__atomic_load_n(&g_profile.header->control.interval_bytes, __ATOMIC_RELAXED) != 0) {
      __atomic_store_n(&g_profile.header->control.interval_bytes, doubled, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&g_profile.header->counters.interval_doublings, 1, __ATOMIC_RELAXED);
    ThinningStart(doubled);
  }
  if (ThinningStep(random))
    __atomic_store_n(&double_at, NextDoubling(LiveCount(), g_profile.live_capacity), __ATOMIC_RELEASE);
}

uint64_t SessionThreadSeed() {
  uint64_t seed = random_base + __atomic_add_fetch(&thread_count, 1, __ATOMIC_RELAXED) * 0xd1342543de82ef95ull;
  seed = NextRandom(&seed);
  return seed == 0 ? 1 : seed;
}

uint64_t SessionNow() { return MonotonicNow() - facts.start_monotonic_ns; }

bool SessionSamplesAreFrequent() {
  constexpr uint64_t kFrequentBytes = 4096;
  return options.interval_bytes <= kFrequentBytes;
}

uint64_t SessionSampleTime() {
  if (!SessionSamplesAreFrequent()) return SessionNow();
  const uint64_t now = MonotonicNowRoughly();
  return now > facts.start_monotonic_ns ? now - facts.start_monotonic_ns : 0;
}

bool IsMainThread() { return ThreadPointer() == facts.main_thread_pointer; }

void MainThreadStack(uint64_t* low, uint64_t* high) {
  *low = facts.main_stack_low;
  *high = facts.main_stack_high;
}

uint64_t DefaultThreadStackBytes() { return facts.default_thread_stack_bytes; }

void SessionBeforeSandbox() {
  ThreadState* thread = CurrentThreadState();
  if (thread == nullptr) return;
  ReentryGuard guard(thread);
  if (!guard.entered()) return;
  if (State() == SessionState::kArmed) SessionOpen();
  if (!SessionIsRecording()) return;
  ThreadRecordKeep(thread, SessionNow());
  BufferPrepare(thread);
  // For 5,000 live samples and 1,000 stacks more; four times as many where every allocation is one.
  constexpr uint64_t kRoom = 256 << 10;
  ProfileGrowAndStop(SessionSamplesAreFrequent() ? 4 * kRoom : kRoom);
  BufferEnterSandbox();
}

namespace {

void NoteCleanExit() {
  if (!SessionFileIsWhole()) return;
  ThreadTableMarkEnded();
  Header* header = g_profile.header;
  header->outcome.end_realtime_ns = RealtimeNow();
  __atomic_store_n(&header->outcome.end, format::kEndExit, __ATOMIC_RELEASE);
  if (IsSandboxed()) return;
  const bool too_short = options.min_life_ns != 0 && SessionNow() < options.min_life_ns;
  // `cadastre run` saves it, and then keeps as many as there should be.
  const bool is_awaited = options.for_pid != 0;
  if (too_short || (options.keep == 0 && !is_awaited))
    RawSyscall(SYS_unlinkat, AT_FDCWD, reinterpret_cast<long>(profile_path), 0);
  if (!too_short && !is_awaited && options.keep != kKeepAll && options.keep != 0)
    RemoveOldProfiles(place.directory, facts, options.keep - 1);  // this one is the last of them
}

void NoteQuickExit(void*) { SessionNoteEnd(); }

__attribute__((constructor)) void StartAtLoad() {
  if (!RealAllocatorResolve()) return;
  SessionPrepare();
  if (State() == SessionState::kOff || State() == SessionState::kNew) return;
  ReentryGuard guard(CurrentThreadState(), kGuardOwnWork);
  __register_atfork(nullptr, nullptr, &ChildAfterFork, &__dso_handle);
  if (__cxa_at_quick_exit != nullptr) __cxa_at_quick_exit(&NoteQuickExit, &__dso_handle);
  ProbeOperators();
  StackCaptureInit();
  // Paused: the file must exist for `resume` to find it. Malloc served before us: no sample will ever come, and a
  // profile that says so is worth more than none. Every allocation: the first one is due as good as now, and a program
  // that gives up its descriptors, its directory or its file size limit first is recorded all the same.
  if (options.start_paused || options.interval_bytes == 1 || !RealAllocatorIsReached()) SessionOpen();
}

__attribute__((destructor)) void NoteExit() { NoteCleanExit(); }

}  // namespace

void SessionNoteEnd() {
  // A vfork child ends here with its parent's memory. A sandbox may punish the question who we are.
  if (!SessionIsRecording() || IsSandboxed() || static_cast<uint32_t>(RawSyscall(SYS_getpid)) != own_pid) return;
  NoteCleanExit();
}

}  // namespace cadastre
