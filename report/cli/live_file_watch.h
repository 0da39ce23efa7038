// Finds the live file of a program that was told its name, as soon as it appears, and holds it open.
//
// The file appears at the program's first due sample, or never. A program that becomes another by exec (a start script
// and its `java`) makes one more file of the same stem: "NAME-2.cad", and so on; the last one is the program's. A
// descriptor is held so that the profile outlives its name. Errors: none; without inotify the directory is looked at
// when Poll is called. Thread-safety: not thread-safe.
//
// Example:
//   LiveFileWatch watch("/dev/shm", "cadastre-pay-java-7-1.cad");
//   watch.Poll();
//   if (watch.found()) WriteOutcome(watch.file(), outcome);
#ifndef CADASTRE_REPORT_CLI_LIVE_FILE_WATCH_H_
#define CADASTRE_REPORT_CLI_LIVE_FILE_WATCH_H_

#include <string>
#include <vector>

namespace cadastre {

class LiveFileWatch {
 public:
  LiveFileWatch(std::string directory, std::string name);
  ~LiveFileWatch();
  LiveFileWatch(const LiveFileWatch&) = delete;

  int descriptor() const { return inotify_; }  // readable when something happened; -1: call Poll now and then
  // Takes up files that have appeared; true if there is a new one.
  bool Poll();

  bool found() const { return file_ >= 0; }
  int file() const { return file_; }  // of the newest image; for reading and, if that is allowed, writing
  const std::string& path() const { return path_; }
  bool was_removed() const;  // the file has no name any more (min-life=, or somebody's rm)
  // Why the program could not make its file; empty if it said nothing. What it left for that is removed.
  std::string TakeReason();
  const std::vector<std::string>& earlier() const { return earlier_; }  // files of the images before the last exec

 private:
  std::string PathOf(int image) const;

  std::string directory_, name_, path_;
  std::vector<std::string> earlier_;
  int inotify_ = -1, file_ = -1, images_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_LIVE_FILE_WATCH_H_
