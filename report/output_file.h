// A file that is there whole or not at all: written beside its final name, then renamed.
//
// Mode 0600. Errors: a Status with the operation and the path. Thread-safety: not thread-safe. An output that is
// dropped before Commit leaves nothing behind.
//
// Example:
//   absl::StatusOr<OutputFile> out = OutputFile::Create("pay.cad@10:20");
//   write(out->descriptor(), ...);
//   absl::Status status = out->Commit(OutputFile::kRefuseToOverwrite);
#ifndef CADASTRE_REPORT_OUTPUT_FILE_H_
#define CADASTRE_REPORT_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cadastre {

class OutputFile {
 public:
  enum Overwrite { kRefuseToOverwrite, kOverwrite };

  static absl::StatusOr<OutputFile> Create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  // Gives the file its name. AlreadyExists if it is taken and must not be overwritten.
  absl::Status Commit(Overwrite overwrite);

 private:
  OutputFile(std::string path, std::string temporary, int descriptor);
  std::string path_, temporary_;
  int descriptor_;
};

// A whole file of text, replacing one of that name.
absl::Status WriteOutputFile(const std::string& path, const std::string& text, mode_t mode = 0600);

// "OPERATION PATH: No such file or directory" from errno.
absl::Status ErrnoStatus(int error, const std::string& operation, const std::string& path);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_OUTPUT_FILE_H_
