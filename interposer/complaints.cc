#include "interposer/complaints.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "interposer/decimal.h"
#include "interposer/raw_syscall.h"

namespace cadastre {
namespace {

// What ParseOptions found, to be said once it is known that this process is meant.
struct Complaint {
  const char* what;
  const char* item;
  size_t length;
};
Complaint complaints[4];
size_t complaint_count;

// Was the parent started with the same options, and meant by them? Then it has said all there is to say: a shell script
// whose hundred children each complained would not be the script that somebody wrote.
bool ParentHasComplained(const Options& options, const char* options_text) {
  static constexpr char kName[] = "CADASTRE_OPTIONS=";
  alignas(4096) static char text[128 * 1024];
  char path[40] = "/proc/";
  const Decimal parent(static_cast<uint64_t>(RawSyscall(SYS_getppid)));
  size_t used = 6;
  memcpy(path + used, parent.text(), parent.length());
  used += parent.length();
  memcpy(path + used, "/exe", 5);
  const long link = RawSyscall(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(text),
                               sizeof(text) - 1);
  if (link <= 0) return false;
  text[link] = '\0';
  if (!GlobMatches(options.exe, BaseName(text))) return false;
  memcpy(path + used, "/environ", 9);
  const size_t length = ReadSmallFile(path, text, sizeof(text) - 1);
  text[length] = '\0';
  for (size_t begin = 0; begin < length; begin += strlen(text + begin) + 1) {
    const char* entry = text + begin;
    if (strncmp(entry, kName, sizeof(kName) - 1) == 0) return strcmp(entry + sizeof(kName) - 1, options_text) == 0;
  }
  return false;
}

// One line, "cadastre: WHAT: ITEM". Only while file descriptor 2 is what it was when the process began: later it may be
// a file of the program's.
void SayOnStandardError(const ProcessFacts& facts, const char* what, const char* item, size_t item_length) {
  if (!StandardErrorIsUnchanged(facts)) return;
  static char line[PATH_MAX + 256];
  size_t used = 0;
  auto add = [&](const char* text, size_t length) {
    for (size_t i = 0; i < length && used + 2 < sizeof(line); i++) line[used++] = text[i] == '\n' ? ' ' : text[i];
  };
  add("cadastre: ", 10);
  add(what, strlen(what));
  add(": ", 2);
  add(item, item_length);
  line[used++] = '\n';
  RawSyscall(SYS_write, 2, reinterpret_cast<long>(line), static_cast<long>(used));
}

}  // namespace

void Complain(const char* what, const char* item, size_t length) {
  if (complaint_count < sizeof(complaints) / sizeof(complaints[0]))
    complaints[complaint_count++] = {what, item, length};
}

void SayComplaints(const ProcessFacts& facts, const Options& options, const char* options_text) {
  if (complaint_count == 0 || ParentHasComplained(options, options_text)) return;
  constexpr size_t kQuoted = 100;  // enough to find it by; an environment variable may have 128 KiB
  for (size_t i = 0; i < complaint_count; i++) {
    const Complaint& complaint = complaints[i];
    if (complaint.length <= kQuoted) {
      SayOnStandardError(facts, complaint.what, complaint.item, complaint.length);
      continue;
    }
    char quoted[kQuoted + 3];
    memcpy(quoted, complaint.item, kQuoted);
    memcpy(quoted + kQuoted, "...", 3);
    SayOnStandardError(facts, complaint.what, quoted, sizeof(quoted));
  }
}

}  // namespace cadastre
