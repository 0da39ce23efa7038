// Where the live profile of this process goes: the directory and the name that out= asks for.
//
// Thread- and signal-safety: system calls and static buffers; for the one thread that opens the session.
// Errors: false, and what is in `place` is not to be used.
//
// Example:
//   static OutputPlace place;
//   if (ChooseOutputPlace(options, facts, pid, &place)) spec.directory = place.directory;
#ifndef CADASTRE_INTERPOSER_OUTPUT_PLACE_H_
#define CADASTRE_INTERPOSER_OUTPUT_PLACE_H_

#include <limits.h>
#include <stdint.h>

#include "interposer/options.h"
#include "interposer/process_facts.h"

namespace cadastre {

struct OutputPlace {
  char directory[PATH_MAX];
  char name[256];
};

// Without out= it is /dev/shm, or the user's runtime directory where that is not to be written to. Makes the
// directories that a pattern of out= names. False: too long, or a link where a directory of ours should be.
bool ChooseOutputPlace(const Options& options, const ProcessFacts& facts, uint32_t pid, OutputPlace* place);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_OUTPUT_PLACE_H_
