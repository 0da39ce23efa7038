#include "interposer/jvm/java_names.h"

#include <string.h>

#include <string>
#include <vector>

#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/method_names.h"
#include "tests/support/catch.h"

using namespace cadastre;

namespace {

TextSpan Span(const char* text) { return {text, strlen(text)}; }

std::string Name(const char* class_name, const char* method = "run", const char* file = "") {
  char out[256];
  return std::string(out, WriteJavaMethodName(Span(class_name), Span(method), Span(file), out, sizeof(out)));
}

// HotSpot's writer, from the description of the format: `excluded` is 0 until JDK 19 and 1 since.
void WriteUnsigned5(std::vector<uint8_t>* out, uint32_t value, uint32_t excluded) {
  const uint32_t low_codes = 192 - excluded;
  uint32_t rest = value;
  for (int i = 0; i < 4 && rest >= low_codes; i++) {
    rest -= low_codes;
    out->push_back(static_cast<uint8_t>(excluded + low_codes + (rest & 63)));
    rest >>= 6;
  }
  out->push_back(static_cast<uint8_t>(excluded + rest));
}

uint64_t At(const std::vector<uint8_t>& bytes) { return reinterpret_cast<uint64_t>(bytes.data()); }

uint32_t ZigZag(int32_t value) { return (static_cast<uint32_t>(value) << 1) ^ static_cast<uint32_t>(value >> 31); }

}  // namespace

TEST_CASE("A Java method is written with dots, its class and its source file", "[java_names]") {
  CHECK(Name("com/acme/billing/Invoice", "render", "Invoice.java") == "com.acme.billing.Invoice.render\nInvoice.java");
  CHECK(Name("Main", "<init>") == "Main.<init>");
  CHECK(Name("com/acme/Outer$Inner", "a") == "com.acme.Outer$Inner.a");
}

TEST_CASE("Names of generated classes are the same in every run", "[java_names]") {
  CHECK(Name("com/acme/Main$$Lambda$14+0x0000000800c03000") == "com.acme.Main$$Lambda.run");
  CHECK(Name("com/acme/Main$$Lambda+0x00007f1b2c003000") == "com.acme.Main$$Lambda.run");
  CHECK(Name("com/acme/Main$$Lambda$7/1324119927") == "com.acme.Main$$Lambda.run");
  CHECK(Name("java/lang/invoke/LambdaForm$MH+0x0000000800c03400") == "java.lang.invoke.LambdaForm$MH.run");
  CHECK(Name("java/lang/invoke/LambdaForm$DMH012") == "java.lang.invoke.LambdaForm$DMH.run");
  CHECK(Name("com/sun/proxy/$Proxy17") == "com.sun.proxy.$Proxy*.run");
  CHECK(Name("jdk/proxy2/$Proxy3") == "jdk.proxy*.$Proxy*.run");
  CHECK(Name("jdk/internal/reflect/GeneratedMethodAccessor42") == "jdk.internal.reflect.GeneratedMethodAccessor*.run");
  CHECK(Name("jdk/internal/reflect/GeneratedSerializationConstructorAccessor1") ==
        "jdk.internal.reflect.GeneratedSerializationConstructorAccessor*.run");
  CHECK(Name("com/acme/Service$$EnhancerBySpringCGLIB$$1a2b3c") == "com.acme.Service$$EnhancerBySpringCGLIB$$*.run");
  CHECK(Name("com/acme/Service$$SpringCGLIB$$0") == "com.acme.Service$$SpringCGLIB$$*.run");
  CHECK(Name("com/acme/Pay$ByteBuddy$xK3f9a") == "com.acme.Pay$ByteBuddy$*.run");
}

TEST_CASE("Names that only look generated stay", "[java_names]") {
  CHECK(Name("com/acme/$ProxyFactory") == "com.acme.$ProxyFactory.run");
  CHECK(Name("com/acme/ConstructorAccessorImpl") == "com.acme.ConstructorAccessorImpl.run");
  CHECK(Name("com/acme/Base64Codec2") == "com.acme.Base64Codec2.run");
  CHECK(Name("jdk/proxyless/A") == "jdk.proxyless.A.run");
}

TEST_CASE("A name that does not fit is cut, and control characters are harmless", "[java_names]") {
  char out[8];
  CHECK(WriteJavaMethodName(Span("com/acme/Main"), Span("main"), Span(""), out, sizeof(out)) == sizeof(out));
  CHECK(std::string(out, sizeof(out)) == "com.acme");
  CHECK(Name("a\nb", "c\x01") == "a?b.c?");
}

TEST_CASE("Compressed numbers of both forms are read", "[java_names]") {
  for (uint32_t excluded : {0u, 1u}) {
    for (uint32_t value : {0u, 1u, 190u, 191u, 192u, 193u, 255u, 12479u, 12480u, 65535u, 1u << 20, 0x7fffffffu, ~0u}) {
      std::vector<uint8_t> bytes;
      WriteUnsigned5(&bytes, value, excluded);
      const size_t length = bytes.size();
      bytes.resize(length + 8);
      uint64_t at = At(bytes);
      CHECK(ReadUnsigned5(&at, excluded) == value);
      CHECK(at == At(bytes) + length);
    }
  }
}

TEST_CASE("The line of a call is the last one that begins before it", "[java_names]") {
  // (0, 10) (5, 11) (9, 9): the third goes back, and so needs the long form.
  for (uint32_t excluded : {0u, 1u}) {
    std::vector<uint8_t> table = {0xff};
    WriteUnsigned5(&table, ZigZag(0), excluded);
    WriteUnsigned5(&table, ZigZag(10), excluded);
    table.push_back(5 << 3 | 1);
    table.push_back(0xff);
    WriteUnsigned5(&table, ZigZag(4), excluded);
    WriteUnsigned5(&table, ZigZag(-2), excluded);
    table.push_back(0);
    CHECK(LineAt(At(table), 0, excluded) == 10);
    CHECK(LineAt(At(table), 4, excluded) == 10);
    CHECK(LineAt(At(table), 5, excluded) == 11);
    CHECK(LineAt(At(table), 8, excluded) == 11);
    CHECK(LineAt(At(table), 9, excluded) == 9);
    CHECK(LineAt(At(table), 1000, excluded) == 9);
  }
  const std::vector<uint8_t> empty = {0};
  CHECK(LineAt(At(empty), 3, 1) == 0);
}
