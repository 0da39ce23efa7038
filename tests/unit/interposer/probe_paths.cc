// Compiled once per set of flags, each time with another CADASTRE_PROBE_NAMESPACE (CMakeLists.txt).
#include "tests/unit/interposer/probe_paths.h"

#include <alloca.h>
#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/interposer/stack_oracle.h"

#define NOINLINE __attribute__((noinline))

namespace CADASTRE_PROBE_NAMESPACE {

volatile int g_sink;
volatile long g_opaque = 3;

NOINLINE void Leaf(int value) {
  Probe();
  g_sink = value;
}
NOINLINE int TailTarget(int value) {
  Probe();
  g_sink = value;
  return value + 1;
}
NOINLINE int TailCaller(int value) { return TailTarget(value * 2); }  // a jump where sibling calls are optimised

NOINLINE void Alloca(int bytes) {
  char* block = static_cast<char*>(alloca(static_cast<size_t>(bytes)));
  memset(block, bytes, static_cast<size_t>(bytes));
  Leaf(block[bytes / 2]);
  g_sink = block[0];
}
NOINLINE void VariableArray(int count) {
  long array[count];
  for (int i = 0; i < count; i++) array[i] = i;
  Leaf(static_cast<int>(array[count - 1]));
  g_sink = static_cast<int>(array[0]);
}
NOINLINE void Realigned(int value) {  // a frame found through r10, then through a saved copy of it
  alignas(64) char block[256];
  memset(block, value, sizeof(block));
  Leaf(block[7]);
  g_sink = block[3];
}
NOINLINE void RealignedWithAlloca(int value) {
  alignas(128) char block[128];
  memset(block, value, sizeof(block));
  char* more = static_cast<char*>(alloca(static_cast<size_t>(value + 16)));
  memset(more, 1, static_cast<size_t>(value + 16));
  Leaf(block[7] + more[3]);
  g_sink = block[3] + more[1];
}
NOINLINE void LargeFrame(int value) {
  volatile char block[300000];
  block[value] = 1;
  Leaf(value);
  g_sink = block[value];
}
NOINLINE long ManyArguments(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
  Leaf(static_cast<int>(a));
  return a + b + c + d + e + f + g + h + i;
}
NOINLINE long AllRegisters(long a, long b, long c, long d, long e, long f) {  // rbp and rbx hold values, not frames
  long x = a * b + g_opaque, y = c * d + g_opaque, z = e * f + g_opaque, w = a ^ c ^ g_opaque, v = b + d + g_opaque;
  Leaf(static_cast<int>(x));
  long sum = x + y * z + w * v;
  Leaf(static_cast<int>(sum));
  return sum + x + y + z + w + v + a + b + c + d + e + f;
}
NOINLINE int Recursion(int depth) {
  if (depth == 0) {
    Probe();
    return 1;
  }
  int result = Recursion(depth - 1) + 1;
  g_sink = result;
  return result;
}

int CompareInts(const void* a, const void* b) {
  static int calls = 0;
  if (++calls % 16 == 0) Probe();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
int CompareWithContext(const void* a, const void* b, void* context) {
  if (++*static_cast<int*>(context) % 16 == 0) Probe();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
NOINLINE void LibcCallbacks() {
  int values[64];
  for (int i = 0; i < 64; i++) values[i] = (i * 37) % 64;
  int calls = 0;
  qsort_r(values, 64, sizeof(int), CompareWithContext, &calls);
  qsort(values, 64, sizeof(int), CompareInts);
  int key = 17;
  bsearch(&key, values, 64, sizeof(int), [](const void* a, const void* b) {
    Probe();
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  size_t count = 64;
  lfind(&key, values, &count, sizeof(int), CompareInts);
  void* tree = nullptr;
  for (int& value : values) tsearch(&value, &tree, CompareInts);
  twalk(tree, [](const void*, VISIT visit, int) {
    if (visit == leaf) Probe();
  });
  tdestroy(tree, [](void*) {});
  dirent** names = nullptr;
  int found = scandir(
      "/proc/self", &names,
      [](const dirent*) -> int {
        Probe();
        return 1;
      },
      alphasort);
  for (int i = 0; i < found; i++) free(names[i]);
  free(names);
  ftw(
      "/proc/self/net",
      [](const char*, const struct stat*, int) -> int {
        Probe();
        return 0;
      },
      4);
  glob_t matches;
  memset(&matches, 0, sizeof(matches));
  matches.gl_opendir = [](const char* name) -> void* {
    Probe();
    return opendir(name);
  };
  matches.gl_readdir = reinterpret_cast<dirent* (*)(void*)>(readdir);
  matches.gl_closedir = [](void* directory) {
    Probe();
    closedir(static_cast<DIR*>(directory));
  };
  matches.gl_lstat = lstat;
  matches.gl_stat = stat;
  if (glob("/proc/se*/f*", GLOB_ALTDIRFUNC, nullptr, &matches) == 0) globfree(&matches);
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { Probe(); });
}

void* ZlibAllocate(void*, unsigned items, unsigned size) {
  Probe();
  return calloc(items, size);
}
void ZlibFree(void*, void* block) {
  Probe();
  free(block);
}
NOINLINE void Zlib() {
  z_stream stream;
  memset(&stream, 0, sizeof(stream));
  stream.zalloc = ZlibAllocate;
  stream.zfree = ZlibFree;
  if (deflateInit(&stream, 6) == Z_OK) deflateEnd(&stream);
  if (inflateInit(&stream) == Z_OK) inflateEnd(&stream);
}

struct ProbingBuffer : std::streambuf {
  int overflow(int c) override {
    Probe();
    return c;
  }
};
NOINLINE void CppLibrary() {
  std::vector<int> values;
  for (int i = 0; i < 100; i++) values.push_back((i * 37) % 100);
  int calls = 0;
  std::sort(values.begin(), values.end(), [&](int a, int b) {
    if (++calls % 16 == 0) Probe();
    return a < b;
  });
  std::function<void(int)> nested = [&](int depth) {
    if (depth == 0) {
      Probe();
    } else {
      nested(depth - 1);
    }
  };
  nested(6);
  ProbingBuffer buffer;
  std::ostream stream(&buffer);
  stream << 12345 << " " << 1.5 << std::string("abc");
  std::thread([] {
    NoteThreadStack();
    Leaf(1);
    AllRegisters(1, 2, 3, 4, 5, 6);
  }).join();
}

struct ProbeOnExit {
  ~ProbeOnExit() { Probe(); }  // a cleanup, called by the unwinder's landing pad
};
NOINLINE void Throw(int depth) {
  ProbeOnExit guard;
  if (depth == 0) throw std::runtime_error("probe");
  Throw(depth - 1);
  g_sink = depth;
}
NOINLINE void Exceptions() {
  try {
    Throw(4);
  } catch (const std::exception& error) {
    Probe();
    g_sink = error.what()[0];
  }
}

jmp_buf g_back;
[[noreturn]] NOINLINE void Never(int value) {
  Probe();
  g_sink = value;
  longjmp(g_back, 1);
}
// The call is the last instruction: the return address already belongs to the next function.
NOINLINE void CallsNever(int value) {
  if (value > 0) Never(value);
  g_sink = 1;
}
[[noreturn]] NOINLINE void EndsInNever(int value) { Never(value + 1); }
NOINLINE void NoReturn() {
  if (setjmp(g_back) == 0) CallsNever(1);
  if (setjmp(g_back) == 0) EndsInNever(1);
}

void OnSignal(int) { Probe(); }
void OnSignalInfo(int, siginfo_t*, void*) { Leaf(2); }
NOINLINE void Signals() {
  struct sigaction action, old_action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = OnSignal;
  sigaction(SIGUSR1, &action, &old_action);
  raise(SIGUSR1);
  pthread_kill(pthread_self(), SIGUSR1);
  static char alternate[256 << 10];
  stack_t stack = {}, old_stack = {};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof(alternate);
  sigaltstack(&stack, &old_stack);
  action.sa_sigaction = OnSignalInfo;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  sigaction(SIGUSR1, &old_action, nullptr);
}

void RunAll(int rounds) {
  for (int round = 0; round < rounds; round++) {
    Leaf(round);
    TailCaller(round);
    Alloca(16 + round % 400);
    VariableArray(1 + round % 50);
    Realigned(round % 100);
    RealignedWithAlloca(round % 100);
    LargeFrame(round % 1000);
    ManyArguments(1, 2, 3, 4, 5, 6, 7, 8, round);
    AllRegisters(1, 2, 3, 4, 5, round);
    Recursion(round % 100);
    LibcCallbacks();
    Zlib();
    CppLibrary();
    Exceptions();
    NoReturn();
    Signals();
  }
}

}  // namespace CADASTRE_PROBE_NAMESPACE
