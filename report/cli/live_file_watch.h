// Finds the live files of a process that was started with `for=` its pid, as soon as they appear, and holds the newest
// open.
//
// The first one appears at the program's first due sample, or never. A program that becomes another by exec (a start
// script and its `java`) makes one more; the last one is the program's. Which of the files in a place are this
// process's is read from their headers, not from their names: other programs, and other runs, may have the same `out`.
// A descriptor is held so that the profile outlives its name. Errors: none; without inotify the place is looked at when
// Poll is called. Thread-safety: not thread-safe.
//
// Example:
//   LiveFileWatch watch(*LivePlace::Find("/dev/shm"), child.pid());   // before the child goes on
//   watch.Poll();
//   if (watch.found()) WriteOutcome(watch.file(), outcome);
#ifndef CADASTRE_REPORT_CLI_LIVE_FILE_WATCH_H_
#define CADASTRE_REPORT_CLI_LIVE_FILE_WATCH_H_

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/live_place.h"

namespace cadastre {

class LiveFileWatch {
 public:
  LiveFileWatch(LivePlace place, pid_t pid);
  ~LiveFileWatch();
  LiveFileWatch(const LiveFileWatch&) = delete;

  int descriptor() const { return inotify_; }  // readable when something happened; -1: call Poll now and then
  // Takes up files that have appeared; true if there is a new one.
  bool Poll();

  const LivePlace& place() const { return place_; }
  bool found() const { return file_ >= 0; }
  int file() const { return file_; }  // of the newest image; for reading and, if that is allowed, writing
  const std::string& path() const { return path_; }
  bool was_removed() const;  // the file has no name any more (min-life=, or somebody's rm)
  // Why the program could not make its file; empty if it said nothing. What it left for that is removed.
  std::string TakeReason();
  const std::vector<std::string>& earlier() const { return earlier_; }  // files of the images before the last exec

 private:
  struct Image {
    uint64_t start_realtime_ns;
    std::string path;
    int file;
  };
  void WatchDirectories();
  bool IsOfThisProcess(int file, const std::string& path, uint64_t* start_realtime_ns);

  LivePlace place_;
  pid_t pid_;
  uint64_t start_ticks_;
  std::string path_;
  std::vector<std::string> earlier_;
  std::set<std::pair<uint64_t, std::string>> taken_;  // when the image began, and its file
  std::set<std::string> waited_for_;
  int inotify_ = -1, file_ = -1;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_LIVE_FILE_WATCH_H_
