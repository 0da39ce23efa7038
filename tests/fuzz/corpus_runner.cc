#include "tests/fuzz/corpus_runner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace {

using Random = std::mt19937_64;

void FlipBits(Random& random, std::string* input) {
  for (uint64_t i = random() % 8; !input->empty() && i < 8; i++) {
    char& byte = (*input)[random() % input->size()];
    byte = static_cast<char>(byte ^ (1 << (random() % 8)));
  }
}

// Values at which arithmetic goes wrong, at an aligned place: what a record's field would hold.
void StoreExtreme(Random& random, std::string* input) {
  const uint64_t values[] = {0, 1, UINT64_MAX, INT64_MAX, UINT32_MAX, 1ull << 31, 1ull << 32, 4095, 4096, 1ull << 63};
  if (input->size() < 8) return;
  uint64_t value = values[random() % std::size(values)];
  size_t width = random() % 2 == 0 ? 4 : 8;
  size_t at = random() % (input->size() - 7) & ~(width - 1);
  for (size_t i = 0; i < width; i++) (*input)[at + i] = static_cast<char>(value >> (8 * i));
}

std::string Mutate(Random& random, const std::vector<std::string>& inputs) {
  std::string input = inputs[random() % inputs.size()];
  switch (random() % 5) {
    case 0:
      input.resize(random() % (input.size() + 1));
      break;
    case 1: {  // a piece of another input in the middle
      const std::string& other = inputs[random() % inputs.size()];
      size_t from = random() % (other.size() + 1);
      input.insert(random() % (input.size() + 1), other, from, random() % 64);
      break;
    }
    case 2: {
      if (input.empty()) break;
      size_t at = random() % input.size();
      input.erase(at, random() % 16);
      break;
    }
    case 3:
      StoreExtreme(random, &input);
      break;
    default:
      break;
  }
  FlipBits(random, &input);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> inputs = cadastre::testing::FuzzSeeds();
  if (argc > 1 && std::filesystem::is_directory(argv[1])) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::ifstream file(path, std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  if (inputs.empty()) {
    fprintf(stderr, "no inputs\n");
    return 1;
  }
  const uint64_t mutations = argc > 2 ? strtoull(argv[2], nullptr, 10) : 5000;
  Random random(20260101);
  auto run = [](const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  };
  for (const std::string& input : inputs) run(input);
  for (uint64_t i = 0; i < mutations; i++) run(Mutate(random, inputs));
  printf("%zu inputs, %llu mutations\n", inputs.size(), static_cast<unsigned long long>(mutations));
  return 0;
}
