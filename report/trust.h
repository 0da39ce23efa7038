// Whether a profile says enough to be believed. A profile that cannot be trusted says so first, and `check` exits 2 on
// it.
//
// Unusable: no sample at all; fewer than min_samples recorded (sampled mode only: in exact mode every block counts);
// more than 1 % of the samples lost; a file that is cut or damaged; malloc served by a library before Cadastre, or by
// another than `expect=` names. Units: samples. Thread-safety: pure functions.
//
// Example:
//   Trust trust = JudgeProfile(profile, kDefaultMinSamples);
//   if (!trust.usable) std::cerr << "cadastre: " << trust.reason << "\n";  // "unusable: 0 samples in 312 s;
//   libjemalloc.so.2 serves ..."
#ifndef CADASTRE_REPORT_TRUST_H_
#define CADASTRE_REPORT_TRUST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/profile.h"

namespace cadastre {

// 200 samples give a standard error of about 7 % on the total.
inline constexpr uint64_t kDefaultMinSamples = 200;
inline constexpr double kMaxLossShare = 0.01;

struct Trust {
  bool usable = true;
  std::string reason;                 // one line, "unusable: ..."; empty if usable
  std::vector<std::string> warnings;  // what a reader should know although the profile is usable
};

Trust JudgeProfile(const Profile& profile, uint64_t min_samples);

// Samples that should be in the profile and are not, over those that should be there.
double LossShare(const Profile& profile);

// True for file names of allocator libraries: libjemalloc.so.2, libtcmalloc_minimal.so.4, libmimalloc.so.2, ...
bool IsAllocatorLibrary(const std::string& path);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_TRUST_H_
