#include "report/binary_builds.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/function_name.h"

namespace cadastre {
namespace {

constexpr size_t kNamed = 3;

}  // namespace

BinaryBuilds BuildsOf(const Profile& profile) {
  BinaryBuilds builds;
  for (const Library& library : profile.libraries) {
    if (library.build_id.empty() || library.vdso || library.cadastre) continue;
    builds[std::string(FileName(library.path))].insert(library.build_id);
  }
  return builds;
}

std::string ReplacedBinaries(const BinaryBuilds& a, const BinaryBuilds& b) {
  std::vector<std::string> names;
  for (const auto& [name, builds] : a) {
    auto other = b.find(name);
    if (other != b.end() && other->second != builds) names.push_back(name);
  }
  if (names.size() <= kNamed + 1) return absl::StrJoin(names, ", ");
  const size_t more = names.size() - kNamed;
  names.resize(kNamed);
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", more, " more");
}

}  // namespace cadastre
