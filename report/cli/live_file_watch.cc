#include "report/cli/live_file_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/live_file.h"
#include "report/preload.h"
#include "report/process_info.h"

namespace cadastre {
namespace {

// A file has its name some hundred microseconds before its header is whole.
constexpr int kLooks = 10;
constexpr useconds_t kLookMicroseconds = 1000;

// Events are a comfort; reading a directory, holding the file and hearing signals are not.
bool LeavesOthers(int descriptor) {
  constexpr int kOthers = 4;
  int spare[kOthers], had = 0;
  while (had < kOthers && (spare[had] = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) >= 0) had++;
  for (int i = 0; i < had; i++) close(spare[i]);
  return had == kOthers;
}

}  // namespace

LiveFileWatch::LiveFileWatch(LivePlace place, pid_t pid)
    : place_(std::move(place)), pid_(pid), start_ticks_(StartTicksOf(pid)) {
  inotify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify_ >= 0 && (inotify_add_watch(inotify_, place_.directory().c_str(), IN_CREATE | IN_MOVED_TO) < 0 ||
                        !LeavesOthers(inotify_))) {
    close(inotify_);
    inotify_ = -1;
  }
  WatchDirectories();
  (void)TakeReason();  // of an earlier process with this pid
}

LiveFileWatch::~LiveFileWatch() {
  if (inotify_ >= 0) close(inotify_);
  if (file_ >= 0) close(file_);
}

// Those of a pattern come into being with the file.
void LiveFileWatch::WatchDirectories() {
  if (inotify_ < 0 || !place_.is_pattern()) return;
  for (const std::string& directory : place_.DirectoriesOf(pid_))
    inotify_add_watch(inotify_, directory.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

bool LiveFileWatch::IsOfThisProcess(int file, const std::string& path, uint64_t* start_realtime_ns) {
  ProfileIdentity identity;
  bool read = ReadIdentity(file, &identity);
  if (!read && waited_for_.insert(path).second) {
    for (int look = 0; look < kLooks && !read; look++) {
      usleep(kLookMicroseconds);
      read = ReadIdentity(file, &identity);
    }
  }
  if (!read || identity.is_copy || identity.pid != static_cast<uint32_t>(pid_) ||
      OptionValue(identity.options, "for") != absl::StrCat(pid_))
    return false;
  *start_realtime_ns = identity.start_realtime_ns;
  return start_ticks_ == 0 || identity.process_start_ticks == 0 || identity.process_start_ticks == start_ticks_;
}

bool LiveFileWatch::Poll() {
  // What the events say is not needed: the place is looked through.
  char events[4096];
  while (inotify_ >= 0 && read(inotify_, events, sizeof(events)) > 0) {
  }
  WatchDirectories();
  std::vector<Image> images;
  for (const std::string& path : place_.FilesOf(pid_)) {
    Image image = {0, path, open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
    if (image.file < 0) image.file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (image.file < 0) continue;
    if (IsOfThisProcess(image.file, path, &image.start_realtime_ns) &&
        taken_.insert({image.start_realtime_ns, path}).second) {
      images.push_back(image);
    } else {
      close(image.file);
    }
  }
  std::sort(images.begin(), images.end(),
            [](const Image& a, const Image& b) { return a.start_realtime_ns < b.start_realtime_ns; });
  for (const Image& image : images) {
    if (file_ >= 0) {
      close(file_);
      earlier_.push_back(path_);
    }
    file_ = image.file;
    path_ = image.path;
  }
  return !images.empty();
}

std::string LiveFileWatch::TakeReason() {
  for (const std::string& directory : place_.DirectoriesOf(pid_)) {
    const std::string path = ReasonPathOf(directory, pid_);
    struct stat status;
    char text[256];
    if (lstat(path.c_str(), &status) != 0 || status.st_uid != geteuid()) continue;
    const ssize_t length = readlink(path.c_str(), text, sizeof(text));
    if (length <= 0) continue;
    unlink(path.c_str());
    return std::string(text, static_cast<size_t>(length));
  }
  return "";
}

bool LiveFileWatch::was_removed() const {
  struct stat status;
  return file_ >= 0 && fstat(file_, &status) == 0 && status.st_nlink == 0;
}

}  // namespace cadastre
