// Names are cut for lines of text and for suggested rules: a wrong cut suggests a rule that matches nothing, or
// everything.
#include "report/function_name.h"

#include "report/attribution.h"
#include "tests/support/catch.h"

namespace cadastre {
namespace {

TEST_CASE("Return types, parameters and qualifiers go", "[function_name]") {
  CHECK(QualifiedName("std::vector<int> acme::billing::Writer::Grow(unsigned long) const") ==
        "acme::billing::Writer::Grow");
  CHECK(QualifiedName("operator new(unsigned long)") == "operator new");
  CHECK(QualifiedName("(anonymous namespace)::Grow(int)") == "(anonymous namespace)::Grow");
  CHECK(QualifiedName("deflateInit2_") == "deflateInit2_");
  CHECK(QualifiedName("acme::Row::operator<(acme::Row const&) const") == "acme::Row::operator<");
  CHECK(QualifiedName("void acme::Put<acme::Row, 3>(acme::Row)") == "acme::Put<acme::Row, 3>");
  CHECK(QualifiedName("") == "");
}

TEST_CASE("A namespace prefix has at most two levels and no templates", "[function_name]") {
  CHECK(NamespacePrefix("acme::billing::pdf::Writer::Grow(int)") == "acme::billing::");
  CHECK(NamespacePrefix("Writer::Grow()") == "Writer::");
  CHECK(NamespacePrefix("Cache<acme::Row>::Put(acme::Row)") == "");
  CHECK(NamespacePrefix("main") == "");
  CHECK(NamespacePrefix("(anonymous namespace)::Grow(int)") == "(anonymous namespace)::");
}

TEST_CASE("A Java package ends before the class", "[function_name]") {
  CHECK(JavaPackage("com.acme.billing.pdf.InvoicePdf.compress", 3) == "com.acme.billing");
  CHECK(JavaPackage("com.acme.Main.main", 3) == "com.acme");
  CHECK(JavaPackage("Main.main", 3) == "");
}

TEST_CASE("A suggested prefix is written as a rule is", "[function_name]") {
  Frame java;
  java.function = "com.acme.billing.pdf.InvoicePdf.compress";
  java.java = java.resolved = true;
  CHECK(PrefixForFrame(java) == "com.acme.billing.");
  Frame native;
  native.function = "acme::search::Index::Add(int)";
  native.library = "/opt/app/libsearch.so.1.2";
  native.resolved = true;
  CHECK(PrefixForFrame(native) == "acme::search::");
  native.function = "libsearch.so.1.2+0x1234";
  native.resolved = false;
  CHECK(PrefixForFrame(native) == "lib:libsearch.so");
  CHECK(PrefixForFrame(Frame{}) == "");
}

TEST_CASE("A library's stem has no version", "[function_name]") {
  CHECK(LibraryStem("/usr/lib/libz.so.1.2.13") == "libz.so");
  CHECK(LibraryStem("/opt/app/bin/server") == "server");
  CHECK(LibraryStem("/opt/app/bin/server (deleted)") == "server");
  CHECK(LibraryStem("/opt/libfoo.sources") == "libfoo.sources");
}

TEST_CASE("A frame in one line says where it is", "[function_name]") {
  Frame frame;
  frame.function = "deflateInit2_";
  frame.library = "/usr/lib/libz.so.1";
  frame.resolved = true;
  CHECK(ShortFrame(frame) == "deflateInit2_ (libz.so.1)");
  frame.file = "/src/zlib/deflate.c";
  frame.line = 88;
  CHECK(ShortFrame(frame) == "deflateInit2_ (deflate.c:88)");
  CHECK(PassedFrame(frame) == ShortFrame(frame));
}

TEST_CASE("A Java frame on the way to the owner is its class and method", "[function_name]") {
  Frame frame;
  frame.java = frame.resolved = true;
  frame.file = "Deflater.java";
  frame.line = 201;
  for (auto [function, passed] :
       {std::pair("java.util.zip.Deflater.<init>", "Deflater.<init>"),
        std::pair("com.acme.Shop$Cart.add", "Shop$Cart.add"), std::pair("Main.main", "Main.main"),
        std::pair("main", "main"), std::pair(".main", ".main"), std::pair("", "")}) {
    frame.function = function;
    CHECK(PassedFrame(frame) == passed);
  }
}

}  // namespace
}  // namespace cadastre
