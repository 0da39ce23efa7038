// Runs a libFuzzer target without libFuzzer: over the files of a corpus, over seeds that the target makes itself, and
// over mutations of both.
//
// A target defines LLVMFuzzerTestOneInput (with clang and -fsanitize=fuzzer that is all it needs) and FuzzSeeds.
// Usage: TARGET [CORPUS_DIRECTORY] [MUTATIONS]; the random seed is fixed, so a failure repeats.
#ifndef CADASTRE_TESTS_FUZZ_CORPUS_RUNNER_H_
#define CADASTRE_TESTS_FUZZ_CORPUS_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

namespace cadastre::testing {

// Inputs that are easier to make than to keep.
std::vector<std::string> FuzzSeeds();

}  // namespace cadastre::testing

#endif  // CADASTRE_TESTS_FUZZ_CORPUS_RUNNER_H_
