// Whether some process, in whatever namespace, can still write to a file: a profile that is mapped is one.
//
// A mapping keeps the open file alive after its descriptor is closed, and the kernel refuses a read lease on a file
// that is open for writing anywhere. So the question needs no process table, which knows its own pid namespace only.
// kUnknown: the file is another user's, or its file system has no leases (NFS). Thread-safety: safe; SIGIO, which a
// broken lease raises, is blocked in the calling thread meanwhile.
//
// Example: if (FileUseOf("/dev/shm/cadastre-pay-java-7-1.cad") == FileUse::kIdle) ...  // its process is dead
#ifndef CADASTRE_SYMBOLIZER_FILE_USE_H_
#define CADASTRE_SYMBOLIZER_FILE_USE_H_

#include <string>

namespace cadastre {

enum class FileUse { kWritten, kIdle, kUnknown };
FileUse FileUseOf(const std::string& path);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_FILE_USE_H_
