// The wall clock, as profiles write it.
//
// Units: nanoseconds since 1970 (UTC). Thread-safety: pure system call. Errors: none.
//
// Example: header.snapshot_begin_realtime_ns = RealtimeNow();
#ifndef CADASTRE_REPORT_CLOCK_H_
#define CADASTRE_REPORT_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace cadastre {

inline uint64_t ClockNow(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ull + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t RealtimeNow() { return ClockNow(CLOCK_REALTIME); }

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLOCK_H_
