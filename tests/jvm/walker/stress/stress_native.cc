// Native code under the stress: allocates, and calls Java again.
#include <jni.h>
#include <stdlib.h>

extern "C" {

JNIEXPORT void JNICALL Java_com_acme_stress_Stress_allocate(JNIEnv*, jclass, jint bytes) {
  free(malloc(static_cast<size_t>(bytes)));
}

JNIEXPORT jint JNICALL Java_com_acme_stress_Stress_callJava(JNIEnv* env, jclass type, jint depth) {
  free(malloc(10));
  jmethodID called = env->GetStaticMethodID(type, "called", "(I)I");
  jint result = called != nullptr ? env->CallStaticIntMethod(type, called, depth) : 0;
  free(malloc(10));
  return result;
}

// One frame a step; allocates at the bottom.
__attribute__((noinline)) int Descend(int depth) {
  if (depth == 0) {
    free(malloc(48));
    return 0;
  }
  return Descend(depth - 1) + depth;
}

JNIEXPORT jint JNICALL Java_com_acme_stress_Depth_descend(JNIEnv*, jclass, jint depth) { return Descend(depth); }

}  // extern "C"
