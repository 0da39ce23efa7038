#include "symbolizer/profile_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/packed_bytes.h"

namespace cadastre {
namespace {

class FileBytes : public ProfileBytes {
 public:
  FileBytes(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {}
  ~FileBytes() override { close(descriptor_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  uint64_t size() const override { return size_; }
  bool may_change() const override { return true; }

  LoadedRegion Load(uint64_t offset, uint64_t bytes) override {
    if (offset >= size_) return LoadedRegion();
    bytes = std::min(bytes, size_ - offset);
    if (bytes == 0) return LoadedRegion();
    // NORESERVE: the region's capacity is address space; only what is read below becomes memory.
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return LoadedRegion();
    std::shared_ptr<void> owner(memory, [bytes](void* address) { munmap(address, bytes); });
    std::vector<Extent> extents;
    uint64_t at = offset, end = offset + bytes;
    while (at < end) {
      Extent data = NextData(at, end);
      if (data.begin >= end) break;
      uint64_t got = ReadAt(data.begin, static_cast<char*>(memory) + (data.begin - offset), data.end - data.begin);
      if (got > 0) extents.push_back({data.begin - offset, data.begin - offset + got});
      if (got < data.end - data.begin) break;  // cut while we read, or an I/O error: the rest is not there
      at = data.end;
    }
    return LoadedRegion(static_cast<const char*>(memory), bytes, std::move(extents), std::move(owner));
  }

 private:
  Extent NextData(uint64_t at, uint64_t end) const {
    off_t data = lseek(descriptor_, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0)
      return errno == ENXIO ? Extent{end, end} : Extent{at, end};  // no holes here, or no such call: all is data
    off_t hole = lseek(descriptor_, data, SEEK_HOLE);
    uint64_t data_end = hole < 0 ? end : std::min<uint64_t>(hole, end);
    return {static_cast<uint64_t>(data), std::max<uint64_t>(data_end, data)};
  }

  uint64_t ReadAt(uint64_t offset, char* out, uint64_t bytes) const {
    uint64_t done = 0;
    while (done < bytes) {
      ssize_t got = pread(descriptor_, out + done, std::min<uint64_t>(bytes - done, 1 << 30), offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += got;
    }
    return done;
  }

  int descriptor_;
  uint64_t size_;
};

class MemoryBytes : public ProfileBytes {
 public:
  MemoryBytes(const char* bytes, uint64_t size) : bytes_(bytes), size_(size) {}
  uint64_t size() const override { return size_; }
  bool may_change() const override { return false; }
  LoadedRegion Load(uint64_t offset, uint64_t bytes) override {
    if (offset >= size_) return LoadedRegion();
    bytes = std::min(bytes, size_ - offset);
    return LoadedRegion(bytes_ + offset, bytes, {{0, bytes}}, nullptr);
  }

 private:
  const char* bytes_;
  uint64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ProfileBytes>> OpenProfileFile(const std::string& path) {
  // O_NONBLOCK: a FIFO with no writer must be an error, not a wait.
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) {
    int error = errno;
    std::string message = absl::StrCat(path, ": cannot open: ", strerror(error));
    return error == ENOENT ? absl::NotFoundError(message) : absl::PermissionDeniedError(message);
  }
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    bool directory = S_ISDIR(status.st_mode);
    close(descriptor);
    return absl::InvalidArgumentError(
        absl::StrCat(path, directory ? ": is a directory, not a profile" : ": not a regular file"));
  }
  return Unpacked(path, std::make_unique<FileBytes>(descriptor, static_cast<uint64_t>(status.st_size)));
}

std::unique_ptr<ProfileBytes> ProfileBytesInMemory(const char* bytes, uint64_t size) {
  return std::make_unique<MemoryBytes>(bytes, size);
}

}  // namespace cadastre
