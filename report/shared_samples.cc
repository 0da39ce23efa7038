#include "report/shared_samples.h"

#include <utility>

namespace cadastre {
namespace {

uint64_t Packed(const CovarianceBlock& block) {
  return uint64_t{block.first} | uint64_t{block.last} << 16 | uint64_t{block.other_first} << 32 |
         uint64_t{block.other_last} << 48;
}

template <typename Use>
void ForEach(const absl::flat_hash_map<uint64_t, double>& blocks, Use use) {
  for (const auto& [packed, value] : blocks) {
    use(CovarianceBlock{static_cast<uint16_t>(packed), static_cast<uint16_t>(packed >> 16),
                        static_cast<uint16_t>(packed >> 32), static_cast<uint16_t>(packed >> 48), value});
  }
}

bool IsSquare(const CovarianceBlock& block) {
  return block.first == block.other_first && block.last == block.other_last;
}

}  // namespace

void CovarianceSum::Add(const CovarianceBlock& block) { blocks_[Packed(block)] += block.value; }

double CovarianceSum::At(size_t i, size_t j) const {
  double sum = 0;
  ForEach(blocks_, [&](const CovarianceBlock& block) {
    auto covers = [&](size_t a, size_t b) {
      return block.first <= a && a <= block.last && block.other_first <= b && b <= block.other_last;
    };
    if (covers(i, j) || (!IsSquare(block) && covers(j, i))) sum += block.value;
  });
  return sum;
}

std::vector<double> CovarianceSum::Matrix(size_t n) const {
  std::vector<double> matrix(n * n);
  ForEach(blocks_, [&](const CovarianceBlock& block) {
    for (size_t i = block.first; i <= block.last; i++) {
      for (size_t j = block.other_first; j <= block.other_last; j++) {
        matrix[i * n + j] += block.value;
        if (!IsSquare(block)) matrix[j * n + i] += block.value;
      }
    }
  });
  return matrix;
}

void SampleLives::AddSnapshot(uint16_t index, const GrowthSnapshot& snapshot, const std::vector<uint32_t>& owners) {
  if (snapshot.process != process_ || process_.empty()) Finish();
  process_ = snapshot.process;
  for (const GrowthSample& sample : snapshot.samples) {
    const Key key{sample.address, sample.time_ns, sample.size_bytes, owners[sample.site]};
    auto [place, inserted] = lives_.try_emplace(key);
    Life& life = place->second;
    if (!inserted && life.now.last + 1 == index && life.now.weight_bytes == sample.weight_bytes) {
      life.now.last = index;
      continue;
    }
    if (!inserted) life.before.push_back(life.now);
    life.now = {index, index, sample.weight_bytes};
  }
}

void SampleLives::End(const Key& key, const Life& life) const {
  auto emit = [&](const Segment& a, const Segment& b) {
    // The older segment has the smaller weight.
    const uint64_t least = std::min(a.weight_bytes, b.weight_bytes), most = std::max(a.weight_bytes, b.weight_bytes);
    if (least <= key.size_bytes) return;
    const double value = static_cast<double>(most) * static_cast<double>(least - key.size_bytes);
    take_(key.owner, {a.first, a.last, b.first, b.last, value});
  };
  emit(life.now, life.now);
  for (size_t i = 0; i < life.before.size(); i++) {
    emit(life.before[i], life.before[i]);
    emit(life.before[i], life.now);
    for (size_t j = 0; j < i; j++) emit(life.before[j], life.before[i]);
  }
}

void SampleLives::Finish() {
  for (const auto& [key, life] : lives_) End(key, life);
  lives_.clear();
}

}  // namespace cadastre
