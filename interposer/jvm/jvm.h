// Java frames in a stack, without an agent: the one door to everything that knows HotSpot.
//
// A native walk that reaches a pc in HotSpot's code cache hands over to WalkJavaFrames, which names the Java frames and
// comes back at the native frame that called them: a mixed stack of any number of such pieces is walked from its leaf
// to its root. No JVMTI, JNI, jmethodID or attached thread. What is read belongs to frames of the calling thread and
// cannot go away meanwhile; the Java heap is read for names of threads (thread_names.h) and the stacks of virtual
// threads (frozen_stack.h) alone, and through the kernel (heap_path.h). Thread- and signal-safety: everything but
// JvmNoteThreadKey is safe in hooks: no lock, no allocation. Errors: a JVM whose tables lack something has native
// frames only, and JvmFacts says what is missing.
//
// Example (the walk of stack_capture.cc):
//   if (JvmIsCode(frame.pc)) step = WalkJavaFrames(&memory, &frame, &list, &walk);
#ifndef CADASTRE_INTERPOSER_JVM_JVM_H_
#define CADASTRE_INTERPOSER_JVM_JVM_H_

#include <stddef.h>
#include <stdint.h>

#include "interposer/stack_memory.h"

namespace cadastre {

// A library makes a thread-specific key. The first one that libjvm makes is where it keeps its Thread*.
// caller: the address that pthread_key_create returns to.
void JvmNoteThreadKey(const void* caller, uint32_t key);

// Writes into the profile's header what is known of the JVM. When the profile is opened; later changes write
// themselves.
void JvmPublish();

// True if pc lies in the code cache of a JVM that can be walked.
bool JvmIsCode(uint64_t pc);

// Where frames go.
struct FrameList {
  uint64_t* frames;
  uint32_t count, capacity;
  bool Add(uint64_t frame) {
    if (count == capacity) return false;
    frames[count++] = frame;
    return true;
  }
};

// What one capture knows about the Java frames still ahead.
struct JavaWalk {
  uint64_t anchor = 0;   // address of the JavaFrameAnchor of the next Java frames towards the root; 0 = none
  bool started = false;  // anchor is known
};

enum class JavaStep {
  kLeft,          // *frame is the native caller
  kEnded,         // the root of the stack
  kContinuation,  // the rest of a virtual thread's stack lies on the heap and cannot be read now
  kLost,          // cannot go on
  kFull,          // the list is full
};

// From *frame, whose pc lies in the code cache, through all Java frames up to the native frame that called them.
JavaStep WalkJavaFrames(StackMemory* memory, StackFrame* frame, FrameList* list, JavaWalk* walk);

// A native walk cannot go on at *frame: moves to the next Java frames, which the JVM keeps a note of. False: there are
// none.
bool SkipToJavaFrames(StackMemory* memory, StackFrame* frame, JavaWalk* walk);

// There is a JVM in the process that this code can read.
bool JvmIsReady();

// Is the calling thread one of the JVM's?
bool JvmIsThread();

// The calling thread's whole name.
inline constexpr uint32_t kMaxThreadNameCharacters = 160;  // UTF-16 units; of a longer name the kernel's is kept
struct ThreadName {
  char bytes[kMaxThreadNameCharacters * 3];  // UTF-8
  size_t length;
};
enum class ThreadNameAnswer {
  kWhole,    // *name is it
  kKernels,  // what the kernel keeps is all that there is to know, until the thread's next name
  kLater,    // not yet: the thread is just beginning, or a collector is at work
};
// kernel_name: what the kernel calls it now, as prctl(PR_GET_NAME) gives it. JvmIsThread() must hold.
ThreadNameAnswer JvmThreadName(const char* kernel_name, ThreadName* name);

// What this thread is working for, as a string of the profile: the method that a compiler thread compiles. 0 = nothing.
uint32_t JvmThreadContext();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_JVM_H_
