// What /proc says about a process, as seen from outside. No ptrace, no signal.
//
// Errors: a process that is gone or may not be looked at gives empty or 0. Units: bytes. Thread-safety: reads files.
//
// Example: std::vector<MappedProfile> profiles = MappedProfilesOf(4242);
#ifndef CADASTRE_REPORT_PROCESS_INFO_H_
#define CADASTRE_REPORT_PROCESS_INFO_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cadastre {

struct MappedProfile {
  std::string path;       // as the process sees it, without " (deleted)"
  std::string open_path;  // what opens the same file from here; empty = nothing does
};

// The live profiles that process `pid` maps (one, as a rule).
std::vector<MappedProfile> MappedProfilesOf(pid_t pid);

// Of a process whose main thread has ended the kernel shows no memory at its pid, but at its other threads'. Such a
// thread, else the pid.
pid_t TaskWithMemory(pid_t pid);

bool ProcessExists(pid_t pid);
std::string ProgramOf(pid_t pid);     // file name of its executable, else the kernel's name for it; empty = not known
uint64_t ResidentBytesOf(pid_t pid);  // VmRSS; 0 = not known
uint64_t PeakResidentBytesOf(pid_t pid);            // VmHWM: of its program, since the exec; 0 = not known
uint64_t StartTicksOf(pid_t pid);                   // field 22 of stat; 0 = not known
bool IsEnding(pid_t pid);                           // it exits, or has a signal that it has not met yet
std::string WhyNoProfile(pid_t pid);                // of a process that maps libcadastre, what follows "process 42 "
uint64_t PidNamespaceOf(pid_t pid);                 // inode of ns/pid; 0 = not known
std::vector<std::string> MappedFilesOf(pid_t pid);  // paths, each once
int ImagesOf(pid_t pid, const char* name);        // how often a file of that name is mapped from its beginning: loaded
bool MapsFileNamed(pid_t pid, const char* part);  // some mapping's path contains `part`
bool IsDirectory(const std::string& path);        // or a link to one
std::string ReadWholeFile(const std::string& path, size_t limit = 16 << 20);  // "" if it cannot be read

// The value behind "Name:" in the text of /proc/PID/status; empty = not there.
absl::string_view StatusField(absl::string_view status, absl::string_view name);
// The last number of "NSpid: 4242 17 7": what the pid namespace of the process, or thread, calls it; 0 = not there.
uint32_t InnermostId(absl::string_view status);

// The pid by which this pid namespace knows the process that wrote a profile: checks pid, start time and namespace, and
// looks among the processes of namespaces below ours. 0 = not here, or gone.
pid_t RunningProcessOf(uint32_t pid, uint64_t pid_namespace, uint64_t start_ticks);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PROCESS_INFO_H_
