// libfraudmodel.so and libvoicecodec.so: a library whose memory is allocated by a thread that it starts itself. The JVM knows nothing of
// that thread. JNI_FUNCTION is the native method that starts it, waits for it and returns what it holds.
#include <jni.h>
#include <pthread.h>
#include <stdlib.h>

enum { kBlocks = 1500, kBytes = 6000 };

static void* held[kBlocks];
static pthread_mutex_t done = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long live_bytes;

static void* Work(void* unused) {
  (void)unused;
  long bytes = 0;
  for (int n = 0; n < kBlocks; n++) {
    held[n] = malloc(kBytes + n);
    if (held[n] != NULL) bytes += kBytes + n;
  }
  pthread_mutex_lock(&done);
  live_bytes = bytes;
  pthread_cond_signal(&changed);
  // The thread lives on, as a library's workers do.
  for (;;) pthread_cond_wait(&changed, &done);
  return NULL;
}

JNIEXPORT jlong JNICALL JNI_FUNCTION(JNIEnv* env, jclass type) {
  (void)env, (void)type;
  pthread_t thread;
  if (pthread_create(&thread, NULL, Work, NULL) != 0) return 0;
  pthread_mutex_lock(&done);
  while (live_bytes == 0) pthread_cond_wait(&changed, &done);
  pthread_mutex_unlock(&done);
  return live_bytes;
}
