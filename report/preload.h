// How a program is started with Cadastre in front of it: the library, the environment, the live file's name.
//
// Errors: a Status that says where the library was looked for. Thread-safety: changes the environment of the calling
// process.
//
// Example:
//   absl::StatusOr<Preload> preload = Preload::Find();
//   preload->SetEnvironment("interval=64k,out=/dev/shm");   // in the child, before exec
#ifndef CADASTRE_REPORT_PRELOAD_H_
#define CADASTRE_REPORT_PRELOAD_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace cadastre {

class Preload {
 public:
  // $CADASTRE_LIBRARY, else beside our own executable: ../lib/cadastre/ (installed) or ../interposer/ (build tree).
  static absl::StatusOr<Preload> Find();

  const std::string& library() const { return library_; }  // where it is
  const std::string& entry() const { return entry_; }      // what LD_PRELOAD says: a path without spaces or colons
  std::string CompanionLibrary() const;                    // libcadastre-unwind.so beside it; empty = not there

  // LD_PRELOAD = ours, then whatever it holds. CADASTRE_OPTIONS = what it holds, then `options`, which win.
  void SetEnvironment(const std::string& options) const;

 private:
  class Link;
  std::string library_, entry_;
  std::shared_ptr<Link> link_;  // in a directory that goes with the last copy of this
};

// The value of the last `name=` in a CADASTRE_OPTIONS text; empty = not there.
std::string OptionValue(const std::string& options, const std::string& name);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PRELOAD_H_
