#include "report/cli/live_file_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace cadastre {

LiveFileWatch::LiveFileWatch(std::string directory, std::string name)
    : directory_(std::move(directory)), name_(std::move(name)) {
  inotify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify_ >= 0 && inotify_add_watch(inotify_, directory_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) < 0) {
    close(inotify_);
    inotify_ = -1;
  }
}

LiveFileWatch::~LiveFileWatch() {
  if (inotify_ >= 0) close(inotify_);
  if (file_ >= 0) close(file_);
}

std::string LiveFileWatch::PathOf(int image) const {
  std::string stem = name_.substr(0, name_.size() - 4);  // without ".cad"
  return absl::StrCat(directory_, "/", stem, image == 1 ? "" : absl::StrCat("-", image), ".cad");
}

bool LiveFileWatch::Poll() {
  // What the events say is not needed: there are at most nine names to try.
  char events[4096];
  while (inotify_ >= 0 && read(inotify_, events, sizeof(events)) > 0) {
  }
  bool fresh = false;
  for (int image = images_ + 1; image <= 9; image++) {
    std::string path = PathOf(image);
    int file = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) break;
    if (file_ >= 0) {
      close(file_);
      earlier_.push_back(path_);
    }
    file_ = file;
    path_ = path;
    images_ = image;
    fresh = true;
  }
  return fresh;
}

std::string LiveFileWatch::TakeReason() {
  std::string path = absl::StrCat(directory_, "/", name_, ".why");
  struct stat status;
  char text[256];
  if (lstat(path.c_str(), &status) != 0 || status.st_uid != geteuid()) return "";
  ssize_t length = readlink(path.c_str(), text, sizeof(text));
  if (length <= 0) return "";
  unlink(path.c_str());
  return std::string(text, length);
}

bool LiveFileWatch::was_removed() const {
  struct stat status;
  return file_ >= 0 && fstat(file_, &status) == 0 && status.st_nlink == 0;
}

}  // namespace cadastre
