// HotSpot's idea of the calling thread.
//
// libjvm keeps its Thread* in a thread-specific key that it makes while it starts; the key is learnt from
// pthread_key_create, so no TLS of libjvm is touched (its access may allocate). Whether a Thread is a JavaThread is
// learnt from threads that were seen with Java frames: by the address of their virtual table. Thread- and
// signal-safety: safe in hooks. Errors: 0.
#ifndef CADASTRE_INTERPOSER_JVM_JAVA_THREAD_H_
#define CADASTRE_INTERPOSER_JVM_JAVA_THREAD_H_

#include <stdint.h>

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

void SetThreadKey(uint32_t key);

// Thread* of the calling thread; 0 = it has none, or none yet.
uint64_t CurrentVmThread();

// The calling thread was seen with Java frames.
void NoteJavaThread(const VmLayout& layout);

// As CurrentVmThread, but 0 unless it is known to be a JavaThread.
uint64_t CurrentJavaThread();

// The JavaFrameAnchor of the calling thread, by address; 0 unless it is known to be a JavaThread.
uint64_t CurrentAnchor(const VmLayout& layout);

// Where the JVM keeps the reference to the java.lang.Thread of `thread`, which is the calling one's Thread* (of the
// carrier, where a virtual thread is mounted). 0 if this JVM's tables do not tell. Of what is no JavaThread the answer
// is any address: read what is there by checked_read.h.
uint64_t ThreadObjectSlot(const VmLayout& layout, uint64_t thread);

// Is the calling thread rebuilding interpreter frames of a deoptimised method? Those may not be filled in yet.
bool IsUnpackingFrames(const VmLayout& layout);

// Method* that the calling thread compiles; 0 = none, or it is no compiler thread.
uint64_t CompiledNow(const VmLayout& layout);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_JAVA_THREAD_H_
