// An index of words, made and dropped: strings, map nodes and growing lists, as C++ programs allocate them.
// words ROUNDS THREADS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

uint64_t Next(uint64_t* random) {  // xorshift64
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random;
}

std::string Word(uint64_t number) { return "word-of-some-length-" + std::to_string(number); }

size_t Round(uint64_t* random) {
  constexpr int kWords = 40'000;
  constexpr uint64_t kDistinct = 8'000;
  std::unordered_map<std::string, std::vector<std::string>> places;
  for (int i = 0; i < kWords; i++)
    places[Word(Next(random) % kDistinct)].push_back("page " + std::to_string(i) + " of the book");
  size_t longest = 0;
  for (const auto& [word, pages] : places) longest = pages.size() > longest ? pages.size() : longest;
  return longest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int rounds = atoi(argv[1]), threads = atoi(argv[2]);
  std::vector<size_t> sums(static_cast<size_t>(threads));
  std::vector<std::thread> all;
  for (size_t t = 0; t < sums.size(); t++) {
    all.emplace_back([&, t] {
      uint64_t random = 88172645463325252ull + t;
      for (int i = 0; i < rounds; i++) sums[t] += Round(&random);
    });
  }
  size_t sum = 0;
  for (size_t t = 0; t < sums.size(); t++) {
    all[t].join();
    sum += sums[t];
  }
  printf("%zu\n", sum);
  return 0;
}
