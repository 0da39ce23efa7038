// Covariances of an owner's estimates over a row of snapshots, from the samples that they share (growth.h derives
// them).
//
// A sample that is alive in the snapshots a to b with one weight adds w(w-S) to every pair in [a, b]: kept are such
// blocks, summed, not matrices, so that 100,000 sites cost what their samples cost. Units: bytes^2; indices of
// snapshots, below 65,536. Errors: none. Thread-safety: plain values.
//
// Example:
//   SampleLives lives;
//   for (size_t i = 0; i < snapshots.size(); i++) lives.AddSnapshot(i, samples_of(i), key_of);
//   lives.Finish([&](uint32_t owner, const CovarianceBlock& block) { blocks[owner].Add(block); });
#ifndef CADASTRE_REPORT_SHARED_SAMPLES_H_
#define CADASTRE_REPORT_SHARED_SAMPLES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/growth.h"

namespace cadastre {

// Adds `value` to each pair (i, j) with i in [first, last] and j in [other_first, other_last], and to (j, i) where
// these are not the same ranges.
struct CovarianceBlock {
  uint16_t first = 0, last = 0, other_first = 0, other_last = 0;
  double value = 0;
};

class CovarianceSum {
 public:
  void Add(const CovarianceBlock& block);
  double At(size_t i, size_t j) const;
  std::vector<double> Matrix(size_t n) const;

 private:
  absl::flat_hash_map<uint64_t, double> blocks_;
};

class SampleLives {
 public:
  using Take = std::function<void(uint32_t owner, const CovarianceBlock& block)>;
  explicit SampleLives(Take take) : take_(std::move(take)) {}

  // `owners[s]`: who has the samples of site s of this snapshot. Samples of another process are other samples.
  void AddSnapshot(uint16_t index, const GrowthSnapshot& snapshot, const std::vector<uint32_t>& owners);
  void Finish();

 private:
  struct Key {
    uint64_t address, time_ns, size_bytes;
    uint32_t owner;
    bool operator==(const Key& other) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.address, key.time_ns, key.size_bytes, key.owner);
    }
  };
  // Snapshots that a sample is in with one weight.
  struct Segment {
    uint16_t first = 0, last = 0;
    uint64_t weight_bytes = 0;
  };
  struct Life {
    Segment now;
    std::vector<Segment> before;  // with other weights: rare
  };
  void End(const Key& key, const Life& life) const;

  Take take_;
  std::string process_;
  absl::flat_hash_map<Key, Life> lives_;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SHARED_SAMPLES_H_
