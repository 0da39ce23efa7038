// What com.acme.shop.Shop calls. Each function goes on until its module holds `goal` bytes and returns {live bytes,
// live blocks} of it.
#include <jni.h>

#include "tests/jvm/demo/modules.h"

namespace {

jlongArray Count(JNIEnv* env, const demo::HeldBlocks& held) {
  jlong counts[2] = {static_cast<jlong>(held.bytes()), static_cast<jlong>(held.blocks())};
  jlongArray result = env->NewLongArray(2);
  if (result != nullptr) env->SetLongArrayRegion(result, 0, 2, counts);
  return result;
}

}  // namespace

extern "C" {

JNIEXPORT jlongArray JNICALL Java_com_acme_shop_Shop_renderInvoices(JNIEnv* env, jclass, jlong goal) {
  return Count(env, billing::RenderInvoices(goal));
}
JNIEXPORT jlongArray JNICALL Java_com_acme_shop_Shop_loadTables(JNIEnv* env, jclass, jlong goal) {
  return Count(env, pricing::LoadTables(goal));
}
JNIEXPORT jlongArray JNICALL Java_com_acme_shop_Shop_buildIndex(JNIEnv* env, jclass, jlong goal) {
  return Count(env, search::BuildIndex(goal));
}
JNIEXPORT jlongArray JNICALL Java_com_acme_shop_Shop_loadVendorData(JNIEnv* env, jclass, jlong goal) {
  return Count(env, VendorLoad(goal));
}

}  // extern "C"
