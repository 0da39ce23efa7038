// How a Java method is written in the profile: "com.acme.billing.Invoice.render", a newline, "Invoice.java".
//
// Classes that the JVM or a framework makes at run time carry addresses, hashes and counters in their names; these go,
// so that the same site has the same name in every thread and every run. Thread- and signal-safety: pure functions,
// safe in hooks. Errors: text that does not fit is cut.
#ifndef CADASTRE_INTERPOSER_JVM_JAVA_NAMES_H_
#define CADASTRE_INTERPOSER_JVM_JAVA_NAMES_H_

#include <stddef.h>

namespace cadastre {

// Text of known length: HotSpot's symbols are not NUL-terminated.
struct TextSpan {
  const char* begin;
  size_t length;
};

// Writes the name and returns its length. class_name as HotSpot keeps it ("com/acme/Main$$Lambda+0x00007f..."). An
// empty source file is left out.
//   Main$$Lambda$14+0x0000000800c03000   ->  Main$$Lambda
//   java/lang/invoke/LambdaForm$MH+0x..  ->  java.lang.invoke.LambdaForm$MH
//   jdk/proxy2/$Proxy17                  ->  jdk.proxy*.$Proxy*
//   Service$$SpringCGLIB$$1a2b3c         ->  Service$$SpringCGLIB$$*
size_t WriteJavaMethodName(TextSpan class_name, TextSpan method_name, TextSpan source_file, char* out, size_t capacity);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_JAVA_NAMES_H_
