// libshopnative.so: the native half of three packages of two teams; what leaks is the JVM's, asked for by it.
#include <jni.h>

JNIEXPORT void JNICALL Java_org_shop_events_Listeners_listen0(JNIEnv* env, jclass type, jobject listener) {
  (void)type;
  (*env)->NewGlobalRef(env, listener);
}

JNIEXPORT jint JNICALL Java_com_acme_mail_headers_HeaderParser_parse0(JNIEnv* env, jclass type, jstring header) {
  (void)type;
  const char* text = (*env)->GetStringUTFChars(env, header, NULL);
  return text == NULL ? 0 : (*env)->GetStringUTFLength(env, header);
}

JNIEXPORT jint JNICALL Java_io_fleet_pixels_PixelBuffers_show0(JNIEnv* env, jclass type, jbyteArray pixels) {
  (void)type;
  return (*env)->GetByteArrayElements(env, pixels, NULL) == NULL ? 0 : (*env)->GetArrayLength(env, pixels);
}
