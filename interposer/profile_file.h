// The mapped profile: creating the file, its regions, and growing them without ever raising SIGBUS.
//
// The file is created at the first due sample (never before), mapped MAP_SHARED, its descriptor closed. Pages are
// populated with MADV_POPULATE_WRITE before they are touched, so a full tmpfs is an error code here, not a signal in
// the target. Thread- and signal-safety: Ensure*, Intern* and the views are lock-free and safe in hooks. Open runs once
// (the caller decides who). Errors: functions return false or 0; the reason is kept in the header's counters or,
// without a file, in one line on stderr.
#ifndef CADASTRE_INTERPOSER_PROFILE_FILE_H_
#define CADASTRE_INTERPOSER_PROFILE_FILE_H_

#include <stddef.h>
#include <stdint.h>

#include "interposer/profile_format.h"

namespace cadastre {

// Base addresses and capacities (in records). All null and 0 until the profile is open; never read back from the file.
struct ProfileView {
  format::Header* header;
  uint64_t* strings;
  uint64_t string_units;
  format::LibraryRecord* libraries;
  uint32_t library_capacity;
  format::ThreadRecord* threads;
  uint32_t thread_capacity;
  format::MappingRecord* mappings;
  uint32_t mapping_capacity;
  format::BufferRecord* buffers;
  uint32_t buffer_capacity;
  format::SiteRecord* sites;
  uint32_t site_capacity;
  uint64_t* frames;
  uint64_t frame_capacity;
  format::LiveRecord* live;
  uint32_t live_capacity;
};

extern ProfileView g_profile;

struct ProfileSpec {
  const char* directory;
  const char* name;       // file name in it; where that is taken a number follows it
  uint32_t mode;          // permissions
  uint64_t memory_bytes;  // cap; 0 = min(default_memory_bytes, a quarter of the free space there)
  uint64_t default_memory_bytes;
  bool exact;           // more room for live samples and less for buffers
  uint64_t data_share;  // the profile's part of `ulimit -d`: the tables beside it are private memory, and count there
};

// What went wrong, and the kernel's error number. what == nullptr: nothing.
struct ProfileError {
  const char* what;
  int error;
};

// Creates, sizes, maps and lays out the file. path_out receives its full name (of path_bytes capacity).
// The header holds only what this file knows (sizes and regions): the caller fills the rest and then publishes the
// magic.
ProfileError ProfileCreate(const ProfileSpec& spec, char* path_out, size_t path_bytes);

// Takes back what ProfileCreate has made, before it was published.
void ProfileDiscard(const char* path);

// From here on hooks write into it: call once everything else in the header is filled.
void ProfilePublish();

// Is the file as long as it was made? False: somebody has cut it (`> FILE`, truncate, copytruncate of a log rotation),
// and its pages are gone. Asks the kernel, which writes a word into the file's last page and answers with an error
// where a touch would be a signal: 0.2 us. What is left: a cut kills if it falls between a look and a touch. No lock,
// no allocation. Not to be asked in a sandbox, where the call may be punished.
bool ProfileIsWhole();

// In a fork child, or where the file has been cut: anonymous memory over the mapping, so that no touch can reach the
// file. False: the kernel gave none, and a touch is what it was. Async-signal-safe.
bool ProfileDetach();
bool ProfileContains(const void* address);

// True once the profile is open and may be written to.
bool ProfileIsOpen();

// Makes room of that many bytes more in each region, and none later: a sandbox may punish the call that does.
void ProfileGrowAndStop(uint64_t bytes_each);

// Makes [address, address+bytes) of the mapping safe to touch. False: no space left; do not touch it.
bool ProfileEnsure(const void* address, size_t bytes);

// Copies bytes into the strings region. 0 if empty or there is no room (counted).
uint32_t ProfileAddString(const char* bytes, size_t length);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_PROFILE_FILE_H_
