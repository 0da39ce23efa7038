// How a recorded process ended, or that it still runs.
//
// What a parent or watcher wrote into Header::outcome counts first. Else the process table: the same pid with the same
// start time in our pid namespace that still maps this file is running; without the mapping it has become another
// program (exec). In another pid namespace it runs if somebody can write to the file (file_use.h). Else what the
// target's own exit handler wrote; else, if a later profile of the same process lies beside this one, it has become
// another program before it died; else the process is lost (SIGKILL, OOM kill, crash; or an exec of a program that was
// not recorded). Errors: none; what cannot be read is taken as "not there". Thread-safety: reads /proc; safe from any
// thread.
#ifndef CADASTRE_SYMBOLIZER_END_STATE_H_
#define CADASTRE_SYMBOLIZER_END_STATE_H_

#include <string>

#include "interposer/profile_format.h"
#include "symbolizer/profile.h"

namespace cadastre {

struct EndDecision {
  EndState end = EndState::kLost;
  int value = 0;
  bool status_known = false;
};

EndDecision DecideEnd(const format::Header& header, const std::string& path);

// To the end, to the snapshot, or to now; 0 where clocks make no sense. Never less than the newest sample's time.
uint64_t DurationNs(const format::Header& header, EndState end);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_END_STATE_H_
