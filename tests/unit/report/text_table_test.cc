// Text that shifts by one column, is wider than a terminal, or lets a thread's name move the cursor.
#include "report/text_table.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

TEST_CASE("Wide characters have two columns, combining ones none", "[text_table]") {
  CHECK(DisplayWidth("計費模組") == 8);
  CHECK(DisplayWidth("ｆｕｌｌ") == 8);
  CHECK(DisplayWidth("e\u0301") == 1);
  CHECK(DisplayWidth("größer ±…→") == 10);
  CHECK(DisplayWidth("\xff\xc3") == 2);  // broken bytes: one each
  TextTable table({{"NAME"}, {"SIZE", Align::kRight}});
  table.AddRow({"計費", "1 B"});
  table.AddRow({"cafe\u0301", "12 B"});
  CHECK(table.Print(110, {}) == "NAME  SIZE\n計費   1 B\ncafe\u0301  12 B\n");
}

TEST_CASE("Cutting leaves no half of a wide character and no accent alone", "[text_table]") {
  CHECK(CutEnd("計費模組", 6) == "計費…");
  CHECK(CutEnd("計費模組", 5) == "計費…");
  CHECK(CutEnd("計費模組", 4) == "計…");
  CHECK(CutMiddle("計費模組計費", 8) == "計費…費");
  CHECK(CutEnd("e\u0301e\u0301e\u0301", 2) == "e\u0301…");
  CHECK(CutMiddle("abe\u0301de\u0301f", 5) == "ab…e\u0301f");
  for (size_t width = 0; width < 14; width++) {
    CHECK(DisplayWidth(CutEnd("計費模組計費", width)) <= width);
    CHECK(DisplayWidth(CutMiddle("a計費模b組計費", width)) <= width);
  }
}

TEST_CASE("Columns align by code points, not by bytes", "[text_table]") {
  TextTable table({{"NAME"}, {"SIZE", Align::kRight}, {"VIA"}});
  table.AddRow({"a", "1 ±1", "x"});
  table.AddRow({"größer", "100 B", ""});
  CHECK(table.Print(110, {}) == "NAME     SIZE  VIA\na        1 ±1  x\ngrößer  100 B\n");
}

TEST_CASE("An empty column is left out", "[text_table]") {
  TextTable table({{"A"}, {"B"}, {"C"}});
  table.AddRow({"1", "", "3"});
  CHECK(table.Print(110, {}) == "A  C\n1  3\n");
}

TEST_CASE("A table that is too wide shrinks in its longest names, which keep both ends", "[text_table]") {
  TextTable table({{"NAME", Align::kLeft, true}, {"SIZE"}});
  table.AddRow({std::string(200, 'a') + "end", "12 MiB"});
  std::string text = table.Print(110, {});
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    CHECK(DisplayWidth(text.substr(at, end - at)) <= 110);
  }
  CHECK(text.find("…") != std::string::npos);
  CHECK(text.find("end  12 MiB") != std::string::npos);
}

TEST_CASE("Names cannot control the terminal", "[text_table]") {
  CHECK(SafeText("a\x1b[31mb\nc") == "a?[31mb?c");
  CHECK(SafeText("\xc2\x9b"
                 "31m") == "?31m");  // C1 CSI
  CHECK(SafeText("caf\xe9") == "caf?");
  CHECK(SafeText("größe ±") == "größe ±");
  CHECK(SafeText("a\u202Eb\u2066c\u200Fd\u2028e") == "a?b?c?d?e");  // marks that reorder or break a line
}

TEST_CASE("Cutting counts what it puts in", "[text_table]") {
  CHECK(CutEnd("abcdef", 4) == "abc…");
  CHECK(CutMiddle("abcdef", 5) == "ab…ef");
  CHECK(CutMiddle("abc", 3) == "abc");
  CHECK(CutEnd("größer", 4) == "grö…");
}

TEST_CASE("There is no colour unless the stream is a terminal", "[text_table]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  setenv("TERM", "xterm", 1);
  CHECK_FALSE(StyleForDescriptor(ends[1]).colour);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace cadastre
