// Names of Java threads: what HotSpot makes of them for the kernel, and how the profile writes them. That they are read
// rightly from a JVM is tests/jvm/walker/names_test.py's to prove.
#include "interposer/jvm/thread_names.h"

#include <string>

#include "tests/support/catch.h"

using namespace cadastre;

namespace {

std::string Utf16(const std::u16string& name, NameForm form, size_t capacity = 100) {
  char out[100];
  return std::string(out,
                     WriteName(name.data(), static_cast<uint32_t>(name.size()), /*latin1=*/false, form, out, capacity));
}

std::string Latin1(const std::string& name, NameForm form) {
  char out[100];
  return std::string(
      out, WriteName(name.data(), static_cast<uint32_t>(name.size()), /*latin1=*/true, form, out, sizeof(out)));
}

bool IsCut(const char* kernel, const std::string& name) { return IsCutFrom(kernel, name.data(), name.size()); }

}  // namespace

TEST_CASE("Latin-1 and UTF-16 names become UTF-8", "[thread_names]") {
  CHECK(Latin1("http-nio-8080-exec-12", NameForm::kProfile) == "http-nio-8080-exec-12");
  CHECK(Latin1("Gr\xf6\xdf"
               "e",
               NameForm::kProfile) == "Größe");
  CHECK(Latin1("Gr\xf6\xdf"
               "e",
               NameForm::kKernel) == "Größe");
  CHECK(Utf16(u"обработчик-注文", NameForm::kProfile) == "обработчик-注文");
  CHECK(Utf16(u"", NameForm::kProfile).empty());
}

TEST_CASE("A surrogate pair is one character in the profile and two for the kernel", "[thread_names]") {
  CHECK(Utf16(u"🚀", NameForm::kProfile) == "\xf0\x9f\x9a\x80");
  CHECK(Utf16(u"🚀", NameForm::kKernel) == "\xed\xa0\xbd\xed\xba\x80");
}

TEST_CASE("Half a surrogate pair is replaced wherever it stands", "[thread_names]") {
  CHECK(Utf16({u'a', 0xd83d}, NameForm::kProfile) == "a\xef\xbf\xbd");
  CHECK(Utf16({0xde80, u'b'}, NameForm::kProfile) ==
        "\xef\xbf\xbd"
        "b");
  CHECK(Utf16({0xd83d, 0xd83d, 0xde80}, NameForm::kProfile) == "\xef\xbf\xbd\xf0\x9f\x9a\x80");
}

TEST_CASE("Control characters do not get into the profile, and NUL does not end the kernel's form", "[thread_names]") {
  CHECK(Latin1(std::string("a\nb\0c\x7f", 6), NameForm::kProfile) == "a?b?c?");
  CHECK(Latin1(std::string("a\0b", 3), NameForm::kKernel) ==
        "a\xc0\x80"
        "b");
}

TEST_CASE("A name that does not fit is not there at all", "[thread_names]") {
  CHECK(Utf16(u"ab注", NameForm::kProfile, 5) == "ab注");
  CHECK(Utf16(u"ab注", NameForm::kProfile, 4).empty());
}

TEST_CASE("The kernel's name is the name, its beginning, or both its ends", "[thread_names]") {
  CHECK(IsCut("worker", "worker"));
  CHECK(IsCut("exactly-15-long", "exactly-15-long"));
  CHECK(IsCut("http-nio-8080-e", "http-nio-8080-exec-12"));
  CHECK(IsCut("http-ni..xec-12", "http-nio-8080-exec-12"));
  CHECK(IsCut("", ""));
}

TEST_CASE("Any other name is refused", "[thread_names]") {
  CHECK_FALSE(IsCut("worker", "worker-1"));
  CHECK_FALSE(IsCut("worker-1", "worker"));
  CHECK_FALSE(IsCut("http-nio-8080-e", "http-nio-8081-exec-12"));
  CHECK_FALSE(IsCut("http-ni..xec-12", "http-nio-8080-exec-13"));
  CHECK_FALSE(IsCut("http-ni.-xec-12", "http-nio-8080-exec-12"));
  CHECK_FALSE(IsCut("java", "main"));
  CHECK_FALSE(IsCut("http-nio-8080", "http-nio-8080-exec-12"));
}
