// What this process is: name, host, clocks, first thread's stack, environment. Read once at start-up by system calls
// and from the memory that the kernel prepared, before libc is ready and without allocating.
//
// Thread- and signal-safety: plain data after ReadProcessFacts; the clocks use the vDSO (no system call where it has
// one).
#ifndef CADASTRE_INTERPOSER_PROCESS_FACTS_H_
#define CADASTRE_INTERPOSER_PROCESS_FACTS_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

namespace cadastre {

struct ProcessFacts {
  char exe[PATH_MAX];   // the program's file, also where `ld.so ./program` started it; empty if it cannot be read
  char started_as[64];  // file name under which that file was executed (a link: python3); empty if it is exe_name
  char host[65];
  uint64_t pid_namespace;  // inode; 0 = not known
  uint64_t start_ticks;    // field 22 of /proc/self/stat; 0 = not known
  uint64_t start_realtime_ns, start_monotonic_ns;
  uint64_t main_thread_pointer;  // fs base of the first thread
  uint64_t main_stack_low, main_stack_high;
  uint64_t default_thread_stack_bytes;  // glibc's default: the stack limit at start, or 2 MiB where that is unlimited
  uint64_t stderr_device, stderr_inode;
  char** environ_start;
  const char *arguments_start, *arguments_end;  // all of them, each with its NUL; equal: not known
  bool loader_was_started;                      // as `ld.so ./program`: the kernel knows the loader as the program

  const char* exe_name() const;                     // file name of exe
  const char* environment(const char* name) const;  // as the program was started; nullptr if not set
};

void ReadProcessFacts(ProcessFacts* facts);

uint64_t MonotonicNow();
// As of the kernel's last tick, up to 10 ms ago; does not read the processor's counter, which is slow in many virtual
// machines.
uint64_t MonotonicNowRoughly();
uint64_t RealtimeNow();

// From here on both stand still: the time-stamp counter that they read may not be read any more.
void StopClocks();

const char* BaseName(const char* path);

// Up to capacity bytes of a small file; 0 on any error.
size_t ReadSmallFile(const char* path, char* out, size_t capacity);

// "cadastre-HOST-EXE-PID-SECONDS.cad"
void MakeProfileName(const ProcessFacts& facts, uint32_t pid, char* out, size_t capacity);

// The command line as the program sees it, NUL-separated: without the loader's own arguments. Returns its length.
size_t ReadCommandLine(const ProcessFacts& facts, char* out, size_t capacity);

// Of NUL-separated arguments keeps argv[0] and, for java, what it runs (main class, -jar FILE, -m MODULE); in place;
// returns the new length.
size_t KeepProgramAndMainClass(char* arguments, size_t length);

// File descriptor 2 is still the file that it was at start (a daemon may have closed it and got the number for a file
// of its own).
bool StandardErrorIsUnchanged(const ProcessFacts& facts);

const char* ErrorText(int error);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_PROCESS_FACTS_H_
