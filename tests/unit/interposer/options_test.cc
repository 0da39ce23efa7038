// Why: options reach a program that must not fail because of them; whatever stands in the variable, parsing ends and
// says what it did not take.
#include "interposer/options.h"

#include <cstring>
#include <string>
#include <vector>

#include "interposer/process_facts.h"
#include "tests/support/catch.h"

namespace cadastre {
namespace {

std::vector<std::string> warnings;
void Warn(const char* what, const char* item, size_t length) {
  warnings.push_back(std::string(what) + ": " + std::string(item, length));
}

Options Parse(const char* text) {
  warnings.clear();
  Options options;
  SetDefaultOptions(&options);
  ParseOptions(text, &options, Warn);
  return options;
}

TEST_CASE("Every option of the table is understood") {
  const Options o = Parse(
      "interval=64k,out=/dev/shm/x,memory=16Mi,exe=java*,min-life=10s,keep=3,children=no,start=paused,seed=7,mode=0640,"
      "command=none,label=pod:a,label=zone:b,expect=jemalloc,for=12");
  REQUIRE(warnings.empty());
  CHECK(o.interval_bytes == 65536);
  CHECK(std::string(o.out) == "/dev/shm/x");
  CHECK(o.memory_bytes == 16u << 20);
  CHECK(std::string(o.exe) == "java*");
  CHECK(o.min_life_ns == 10000000000ull);
  CHECK(o.keep == 3);
  CHECK(o.children == Children::kNo);
  CHECK(o.start_paused);
  CHECK(o.seed == 7);
  CHECK(o.mode == 0640);
  CHECK(o.command == CommandDetail::kNone);
  CHECK(std::string(o.labels) == "pod:a\nzone:b");
  CHECK(std::string(o.expect) == "jemalloc");
  CHECK(o.for_pid == 12);
}

TEST_CASE("The place of the live file may be a pattern") {
  const OutputNames names = {"java", "pay 7/f,9@c", 42, 1700000000};
  auto expand = [&](const char* text, size_t capacity = 256) {
    static char to[256];
    const char* first;
    return ExpandOutput(text, names, to, capacity, &first)
               ? std::string(to) + "|" + std::to_string(first == nullptr ? -1 : first - to)
               : std::string("none");
  };
  CHECK(expand("/cad") == "/cad|-1");
  CHECK(expand("/cad/%e/%p-%t.cad") == "/cad/java/42-1700000000.cad|5");
  CHECK(expand("/cad/%h") == "/cad/pay_7_f_9_c|5");  // a name leads nowhere and ends no option
  CHECK(expand("100%%") == "100%|3");
  CHECK(expand("/cad/%") == "none");
  CHECK(expand("/cad/%x") == "none");
  CHECK(expand("/cad/%e", 9) == "none");
  CHECK(expand("/cad/%e", 10) == "/cad/java|5");
  CHECK(Parse("out=/a/%p%t%h%e%%").out == std::string("/a/%p%t%h%e%%"));
  for (const char* bad : {"out=/a/%", "out=/a/%x", "out=/a/%%%"}) {
    Parse(bad);
    CHECK(warnings.size() == 1);
  }
  char directory[64], name[64];
  auto split = [&](const char* text) {
    SplitOutput(text, directory, sizeof(directory), name, sizeof(name));
    return std::string(directory) + "|" + name;
  };
  CHECK(split("/cad/x.cad") == "/cad|x.cad");
  CHECK(split("/x.cad") == "/|x.cad");
  CHECK(split("x.cad") == ".|x.cad");
  CHECK(split("/cad/x") == "/cad/x|");
  CHECK(split("/cad.cad/x") == "/cad.cad/x|");
}

TEST_CASE("What is not understood is one warning each, and the default stays") {
  const Options o =
      Parse("intervall=1,interval=,interval=-5,interval=12x,=,x,memory=1,mode=999,for=x,label=nocolon,start=,,seed=1z");
  CHECK(o.interval_bytes == kDefaultIntervalBytes);
  CHECK(o.memory_bytes == 0);
  CHECK(o.mode == 0600);
  CHECK(warnings.size() == 12);
  CHECK(warnings[0] == "unknown option: intervall=1");
}

TEST_CASE("Every option says what it takes, and does not take an empty text or one beyond its room") {
  size_t count;
  const Knob* knobs = Knobs(&count);
  CHECK(count == 14);
  for (size_t i = 0; i < count; i++) {
    INFO(knobs[i].name);
    CHECK(FindKnob(knobs[i].name, strlen(knobs[i].name)) == &knobs[i]);
    CHECK(strlen(knobs[i].accepts) > 3);
    Options options;
    SetDefaultOptions(&options);
    const std::string too_long(kOptionTextBytes, '9');
    CHECK_FALSE(knobs[i].set(&options, too_long.data(), too_long.size()));
    if (std::string(knobs[i].name) != "expect") CHECK_FALSE(knobs[i].set(&options, "", 0));
  }
  CHECK(FindKnob("nosuch", 6) == nullptr);
}

TEST_CASE("A text longer than any buffer is refused, not cut") {
  const Options o = Parse(("out=/" + std::string(5000, 'a')).c_str());
  CHECK(o.out[0] == '\0');
  CHECK(warnings.size() == 1);
}

TEST_CASE("Sizes take k, m, g, t with and without i and b, and refuse overflow") {
  auto size = [](const char* text) {
    uint64_t bytes = 77;
    return ParseSize(text, strlen(text), &bytes) ? bytes : ~0ull;
  };
  CHECK(size("0") == 0);
  CHECK(size("512k") == 524288);
  CHECK(size("2Mi") == 2097152);
  CHECK(size("1GiB") == 1ull << 30);
  CHECK(size("3T") == 3ull << 40);
  for (const char* bad : {"", "k", "1x", "1ki2", "1.5m", "99999999999999999999", "99999999999t", " 1", "1 "}) {
    INFO(bad);
    CHECK(size(bad) == ~0ull);
  }
}

TEST_CASE("Globs match whole names") {
  CHECK(GlobMatches("*", ""));
  CHECK(GlobMatches("java", "java"));
  CHECK_FALSE(GlobMatches("java", "javac"));
  CHECK(GlobMatches("java*", "javac"));
  CHECK(GlobMatches("*a?a*", "java"));
  CHECK_FALSE(GlobMatches("?", ""));
  CHECK(GlobMatches("*aab", "aaaaaaaaab"));
}

std::string Kept(std::string arguments) {
  return arguments.substr(0, KeepProgramAndMainClass(arguments.data(), arguments.size()));
}

TEST_CASE("Of a command line only the program and a JVM's main class are kept") {
  using namespace std::string_literals;
  CHECK(Kept("psql\0--password=secret\0"s) == "psql\0"s);
  CHECK(Kept("/usr/bin/java\0-Dkey=secret\0-cp\0a.jar\0com.acme.Main\0secret\0"s) == "/usr/bin/java\0com.acme.Main\0"s);
  CHECK(Kept("java\0-Xmx1g\0-jar\0app.jar\0--token\0"s) == "java\0-jar\0app.jar\0"s);
  CHECK(Kept("java\0-p\0mods\0-m\0a.b/c.D\0x\0"s) == "java\0-m\0a.b/c.D\0"s);
  CHECK(Kept("java\0-version\0"s) == "java\0"s);
  CHECK(Kept(""s).empty());
}

}  // namespace
}  // namespace cadastre
