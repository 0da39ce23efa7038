#include "report/runtime_facts.h"

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/function_name.h"

namespace cadastre {

std::string JavaVersionOf(const std::string& libjvm_path) {
  // .../lib/server/libjvm.so (9 and later) or .../jre/lib/amd64/server/libjvm.so (8): `release` stands at most five
  // levels up.
  std::string directory = libjvm_path;
  for (int level = 0; level < 6; level++) {
    size_t slash = directory.rfind('/');
    if (slash == std::string::npos) return "";
    directory.resize(slash);
    std::ifstream release(directory + "/release");
    std::string line;
    while (std::getline(release, line)) {
      absl::string_view value = line;
      if (!absl::ConsumePrefix(&value, "JAVA_VERSION=\"")) continue;
      absl::ConsumeSuffix(&value, "\"");
      return std::string(value);
    }
  }
  return "";
}

std::string RuntimeOf(const Profile& profile) {
  for (const Library& library : profile.libraries) {
    std::string name(FileName(library.path));
    if (name == "libjvm.so") {
      std::string version = JavaVersionOf(library.path);
      return version.empty() ? "java" : absl::StrCat("java ", version);
    }
    absl::string_view rest = name;
    if (absl::ConsumePrefix(&rest, "libpython")) return absl::StrCat("python ", rest.substr(0, rest.find(".so")));
    if (absl::ConsumePrefix(&rest, "libperl.so.")) return absl::StrCat("perl ", rest);
    if (absl::StartsWith(name, "libnode.so")) return "node";
  }
  std::string exe(FileName(profile.exe));
  absl::string_view rest = exe;
  if (absl::ConsumePrefix(&rest, "python") && !rest.empty() && rest[0] >= '2' && rest[0] <= '9')
    return absl::StrCat("python ", rest);
  if (exe == "node" || exe == "nodejs") return "node";
  return "";
}

std::string AllocatorName(const Profile& profile) {
  std::string name = profile.allocator;
  return absl::StartsWith(name, "libc.so") ? "glibc" : name;
}

std::string ProgramName(const Profile& profile) {
  std::string name(FileName(profile.exe));
  if (absl::EndsWith(name, " (deleted)")) name.resize(name.size() - 10);
  if (name.empty() && !profile.command.empty()) name = std::string(FileName(profile.command[0]));
  return name.empty() ? "unknown program" : name;
}

}  // namespace cadastre
