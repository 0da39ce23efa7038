// libacmeobserve.so: a JVM agent (-agentpath) with memory of its own. The option says where it comes from:
//   thread     a plain pthread, half by malloc and half by the pointer that dlsym(RTLD_DEFAULT, "malloc") gives
//   callbacks  a JVMTI event, in the stack of whichever Java thread prepares a class
// It prints what it holds when the JVM ends.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 800, kBytes = 7000, kClassBytes = 20000 };

static _Atomic long live_bytes;
static void* held[2 * kBlocks];

static __attribute__((noinline)) void* Keep(void* (*allocate)(size_t), size_t bytes) {
  void* block = allocate(bytes);
  if (block != NULL) atomic_fetch_add(&live_bytes, (long)bytes);
  return block;
}

static void* Collect(void* unused) {
  void* (*found)(size_t) = (void* (*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
  if (found == NULL) abort();
  for (int n = 0; n < kBlocks; n++) {
    held[2 * n] = Keep(malloc, (size_t)(kBytes + n));
    held[2 * n + 1] = Keep(found, (size_t)(kBytes + n));
  }
  return unused;
}

static void JNICALL OnClassPrepare(jvmtiEnv* jvmti, JNIEnv* env, jthread thread, jclass type) {
  (void)jvmti, (void)env, (void)thread, (void)type;
  Keep(malloc, kClassBytes);  // "a profile per class"
}

static void JNICALL OnEnd(jvmtiEnv* jvmti, JNIEnv* env) {
  (void)jvmti, (void)env;
  printf("TRUTH module=observe live_bytes=%ld\n", atomic_load(&live_bytes));
  fflush(stdout);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void* reserved) {
  (void)reserved;
  jvmtiEnv* jvmti;
  if ((*vm)->GetEnv(vm, (void**)&jvmti, JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
  jvmtiEventCallbacks callbacks;
  memset(&callbacks, 0, sizeof callbacks);
  callbacks.VMDeath = OnEnd;
  callbacks.ClassPrepare = OnClassPrepare;
  (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
  (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
  if (options != NULL && strcmp(options, "callbacks") == 0) {
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_PREPARE, NULL);
    return JNI_OK;
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, Collect, NULL) != 0 || pthread_join(thread, NULL) != 0) return JNI_ERR;
  return JNI_OK;
}
