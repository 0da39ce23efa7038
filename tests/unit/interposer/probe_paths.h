// Code shapes that unwinders get wrong, compiled several times with different flags (probe_paths.cc). Each function
// calls Probe() at the end of such a path.
#ifndef CADASTRE_TESTS_UNIT_INTERPOSER_PROBE_PATHS_H_
#define CADASTRE_TESTS_UNIT_INTERPOSER_PROBE_PATHS_H_

namespace probe_paths_omit {
void RunAll(int rounds);
}
namespace probe_paths_keep {
void RunAll(int rounds);
}
namespace probe_paths_o0 {
void RunAll(int rounds);
}
namespace probe_paths_os {
void RunAll(int rounds);
}
namespace probe_paths_avx {
void RunAll(int rounds);
}

#endif  // CADASTRE_TESTS_UNIT_INTERPOSER_PROBE_PATHS_H_
