// The frames of call sites in compiled code, remembered by the exact return address, so that debug information is
// decoded once.
//
// What is remembered counts only while its blob is there: its block is in use, and the number of its compilation is the
// same. A block that is given back says so in its header first, and what is built in its place has another number. A
// JVM that does not tell that number has nothing remembered. Thread- and signal-safety: as word_cache.h.
#ifndef CADASTRE_INTERPOSER_JVM_CALL_SITE_CACHE_H_
#define CADASTRE_INTERPOSER_JVM_CALL_SITE_CACHE_H_

#include <stdint.h>

#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/jvm.h"
#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// Adds all frames of the call site that returns to pc, or none: false, they are not known or find no room.
// *frame_bytes: as CodeBlob has it.
bool AddRememberedFrames(const VmLayout& layout, uint64_t pc, FrameList* list, uint64_t* frame_bytes);

// frames: frame words, one for each inlined method, the innermost first.
void RememberFrames(const VmLayout& layout, uint64_t pc, const CodeBlob& blob, const uint64_t* frames, uint32_t count);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_CALL_SITE_CACHE_H_
