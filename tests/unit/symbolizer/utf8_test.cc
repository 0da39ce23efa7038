// Why: one byte that is no UTF-8 makes a strict reader refuse a whole CSV file, and a rule with an emoji never matches
// a name that HotSpot spells with surrogates.
#include "symbolizer/utf8.h"

#include "tests/support/catch.h"

namespace cadastre {
namespace {

TEST_CASE("A JVM's names become UTF-8", "[utf8]") {
  CHECK(FromModifiedUtf8("p.Tm\xc3\xbcnchen") == "p.Tm\xc3\xbcnchen");
  CHECK(FromModifiedUtf8("\xe4\xb8\xad\xe6\x96\x87.") == "\xe4\xb8\xad\xe6\x96\x87.");
  CHECK(FromModifiedUtf8("p.\xed\xa0\xbd\xed\xb8\x80x") == "p.\xf0\x9f\x98\x80x");
  CHECK(FromModifiedUtf8("\xed\xaf\xbf\xed\xbf\xbf") == "\xf4\x8f\xbf\xbf");  // U+10FFFF
  CHECK(FromModifiedUtf8("\xed\xa0\x80\xed\xb0\x80") == "\xf0\x90\x80\x80");  // U+10000
}

TEST_CASE("What is no character becomes U+FFFD, one for each", "[utf8]") {
  CHECK(FromModifiedUtf8("a\xed\xa0\xbdz") == "a\xef\xbf\xbdz");                      // a high surrogate alone
  CHECK(FromModifiedUtf8("\xed\xb8\x80\xed\xa0\xbd") == "\xef\xbf\xbd\xef\xbf\xbd");  // in the wrong order
  CHECK(FromModifiedUtf8("\xed\xa0\xbd\xed\xa0\xbd") == "\xef\xbf\xbd\xef\xbf\xbd");  // two high ones
  CHECK(FromModifiedUtf8("a\xc0\x80z") == "a\xef\xbf\xbdz");                          // U+0000
  CHECK(FromModifiedUtf8("a\xed\xa0") == "a\xef\xbf\xbd\xef\xbf\xbd");                // cut
  CHECK(FromModifiedUtf8("\xff") == "\xef\xbf\xbd");
  CHECK(ValidUtf8("a\xed\xa0\xbd") == "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  for (size_t before = 0; before < 20; before++) {
    // Text is taken by the word while it is ASCII: a broken byte anywhere in one.
    const std::string ascii(before, 'a');
    CHECK(ValidUtf8(ascii + "\xed" + ascii) == ascii + "\xef\xbf\xbd" + ascii);
    CHECK(ValidUtf8(ascii + "\xc3\xbc") == ascii + "\xc3\xbc");
  }
  CHECK(ValidUtf8("\xf0\x9f\x98\x80 \xc3\xbc") == "\xf0\x9f\x98\x80 \xc3\xbc");
}

TEST_CASE("Only well-formed sequences have a length", "[utf8]") {
  for (const char* broken : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                             "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe4\xb8", "\xf0\x9f\x98"}) {
    INFO(broken);
    CHECK(Utf8Length(broken, 0) == 0);
  }
  CHECK(Utf8Length("\xed\x9f\xbf", 0) == 3);
  CHECK(Utf8Length("\xf4\x8f\xbf\xbf", 0) == 4);
}

TEST_CASE("Every code point comes out as it went in", "[utf8]") {
  for (uint32_t code = 1; code <= 0x10ffff; code += 7) {
    if (code >= 0xd800 && code < 0xe000) continue;
    std::string text;
    AppendUtf8(code, &text);
    REQUIRE(Utf8Length(text, 0) == text.size());
    REQUIRE(ValidUtf8(text) == text);
    REQUIRE(FromModifiedUtf8(text) == text);
  }
}

}  // namespace
}  // namespace cadastre
