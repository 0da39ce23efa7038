// How long owners of frames take to find: 10,000 rules, 1,000,000 frames. Exit 1 if that is not under a second; --smoke
// matches a hundredth of the frames and judges nothing.
#include <stdio.h>
#include <string.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

constexpr size_t kRules = 10'000, kFrames = 1'000'000;
constexpr double kLimitSeconds = 1.0;

// Packages as a large monolith has them: a common beginning, then many names.
std::string Package(std::mt19937_64* random) {
  static constexpr const char* kWords[] = {"billing", "search", "auth", "pricing", "web", "store", "core", "feed"};
  std::string package = "com.acme.";
  for (size_t i = 0, parts = 1 + (*random)() % 3; i < parts; i++)
    package += kWords[(*random)() % 8] + std::to_string((*random)() % 30) + ".";
  return package;
}

int Run(bool smoke) {
  std::mt19937_64 random(17);
  OwnerRules rules;
  for (size_t i = 0; i < kRules; i++) {
    Rule rule;
    rule.prefix = Package(&random);
    rule.module = "m" + std::to_string(i);
    rules.rules.push_back(rule);
  }
  const std::vector<Rule>& built_in = BuiltInRules();
  rules.rules.insert(rules.rules.end(), built_in.begin(), built_in.end());
  FrameOwner owner(rules);
  std::vector<Frame> frames(smoke ? kFrames / 100 : kFrames);
  for (Frame& frame : frames) {
    frame.function = Package(&random) + "Worker.run";
    frame.java = frame.resolved = true;
  }
  auto start = std::chrono::steady_clock::now();
  size_t owned = 0;
  for (const Frame& frame : frames) owned += owner.Find(frame) != nullptr;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  printf("%zu rules, %zu frames, %zu of them owned: %.3f s, %.0f ns a frame\n", rules.rules.size(), frames.size(),
         owned, seconds, seconds * 1e9 / static_cast<double>(frames.size()));
  return !smoke && seconds >= kLimitSeconds ? 1 : 0;
}

}  // namespace
}  // namespace cadastre

int main(int argc, char** argv) { return cadastre::Run(argc > 1 && strcmp(argv[1], "--smoke") == 0); }
