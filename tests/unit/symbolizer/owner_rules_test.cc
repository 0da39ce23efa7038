// People write owners.csv by hand, and CI runs on it: every mistake must be named with its line and column, and no file
// may hang or crash the command.
#include "symbolizer/owner_rules.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <set>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using testing::TemporaryDirectory;

std::string ErrorOf(const std::string& text) {
  absl::StatusOr<std::vector<Rule>> rules = ParseOwnerRules(text, "owners.csv");
  return rules.ok() ? "no error" : std::string(rules.status().message());
}

std::vector<Rule> RulesOf(const std::string& text) {
  absl::StatusOr<std::vector<Rule>> rules = ParseOwnerRules(text, "dir/owners.csv");
  INFO(rules.status().ToString());
  REQUIRE(rules.ok());
  return *rules;
}

TEST_CASE("Every kind of prefix is read, with its place", "[owner_rules]") {
  std::vector<Rule> rules = RulesOf(
      "prefix,module,team,kind\n"
      "acme::billing::,billing,payments,\n"
      "lib:libfoo.so,foo,core,transparent\n"
      "src:services/search/,search,search\n"
      "class:com.acme.Cache,cache,core,container\n"
      "thread:http-nio-,web,web,owner\n"
      "thread::pool::,pool,core\n");
  REQUIRE(rules.size() == 6);
  CHECK(rules[0].key == RuleKey::kFunction);
  CHECK(rules[0].prefix == "acme::billing::");
  CHECK(rules[0].module == "billing");
  CHECK(rules[0].team == "payments");
  CHECK(rules[0].file == "owners.csv");
  CHECK(rules[0].line == 2);
  CHECK_FALSE(rules[0].built_in);
  CHECK_FALSE(rules[0].kind_given);
  CHECK(rules[1].key == RuleKey::kLibrary);
  CHECK(rules[1].prefix == "libfoo.so");
  CHECK(rules[1].walk == RuleWalk::kTransparent);
  CHECK(rules[2].key == RuleKey::kSource);
  CHECK(rules[3].key == RuleKey::kClass);
  CHECK(rules[3].walk == RuleWalk::kContainer);
  CHECK(rules[4].key == RuleKey::kThread);
  CHECK(rules[4].kind_given);
  CHECK(rules[5].key == RuleKey::kFunction);  // a namespace that is called thread
  CHECK(rules[5].prefix == "thread::pool::");
}

TEST_CASE("Quotes, comments, blank lines, CRLF, a byte order mark and other orders of columns are understood",
          "[owner_rules]") {
  std::vector<Rule> rules = RulesOf(
      "\xef\xbb\xbfteam,prefix,module\r\n"
      "# a comment, with \"quotes\n"
      "\r\n"
      "   \n"
      "  # an indented one\n"
      "\"core, \"\"the\"\" team\" , \"f<int,\n int>\" ,vectors\r\n"
      ",caf\xc3\xa9::,m\n"
      "\"#x\",\"# not a comment\",m");
  REQUIRE(rules.size() == 3);
  CHECK(rules[0].team == "core, \"the\" team");
  CHECK(rules[0].prefix == "f<int,\n int>");
  CHECK(rules[0].module == "vectors");
  CHECK(rules[0].line == 6);
  CHECK(rules[1].team.empty());
  CHECK(rules[1].prefix == "caf\xc3\xa9::");
  CHECK(rules[1].line == 8);
  CHECK(rules[2].prefix == "# not a comment");
}

TEST_CASE("Exact duplicates are allowed and keep their order", "[owner_rules]") {
  CHECK(RulesOf("prefix,module,team\na,b,c\na,b,c\n").size() == 2);
}

TEST_CASE("Every mistake is named with line and column", "[owner_rules]") {
  CHECK(ErrorOf("prefix,module,team\na::,unattributed,x\n") ==
        "owners.csv:2:5: 'unattributed' is the row of what has no owner: name another");
  CHECK(ErrorOf("prefix,module,team\n\na::,b,unattributed\n") ==
        "owners.csv:3:7: 'unattributed' is the row of what has no owner: name another");
  CHECK(ErrorOf("") == "owners.csv:1:1: missing header line: prefix,module,team[,kind]");
  CHECK(ErrorOf("# only a comment\n") == "owners.csv:1:1: missing header line: prefix,module,team[,kind]");
  CHECK(ErrorOf("acme::,billing,payments\n") ==
        "owners.csv:1:1: missing header line: the first line must be prefix,module,team[,kind]");
  CHECK(ErrorOf("prefix,module\n") == "owners.csv:1:14: missing column 'team' in the header");
  CHECK(ErrorOf("prefix,module,team,prefix\n") == "owners.csv:1:20: column 'prefix' appears twice");
  CHECK(ErrorOf("prefix,module,team,owner\n") ==
        "owners.csv:1:20: unknown column 'owner'; the header is prefix,module,team[,kind]");
  CHECK(ErrorOf("prefix,module,team\nacme::,billing\n") == "owners.csv:2:15: missing column 'team'");
  CHECK(ErrorOf("prefix,module,team\nacme::,billing\r\n") == "owners.csv:2:15: missing column 'team'");
  CHECK(ErrorOf("prefix,module,team\na,b,c,d\n") == "owners.csv:2:7: 4 columns; the header names 3");
  CHECK(ErrorOf("prefix,module,team\n,b,c\n") == "owners.csv:2:1: empty prefix");
  CHECK(ErrorOf("prefix,module,team\nlib:,b,c\n") == "owners.csv:2:1: empty prefix");
  CHECK(ErrorOf("prefix,module,team\na,,c\n") == "owners.csv:2:3: empty module");
  CHECK(ErrorOf("prefix,module,team,kind\na,b,c,glass\n") ==
        "owners.csv:2:7: unknown kind 'glass'; known are owner, transparent, container and pool");
  CHECK(ErrorOf("prefix,module,team\na,b,c\nx,\"y\nz") == "owners.csv:3:3: unterminated quote");
  CHECK(ErrorOf("prefix,module,team\na,b\"c,d\n") ==
        "owners.csv:2:4: quote inside an unquoted field; put the whole field in quotes and write \"\"");
  CHECK(ErrorOf("prefix,module,team\n\"a\" b,c,d\n") ==
        "owners.csv:2:5: text after a closing quote; write \"\" for a quote inside quotes");
  CHECK(ErrorOf("prefix,module,team\n\"a\" \"b\",c,d\n") ==
        "owners.csv:2:5: text after a closing quote; write \"\" for a quote inside quotes");
  CHECK(ErrorOf(std::string("prefix,module,team\na\0b,c,d\n", 27)) == "owners.csv:2:2: NUL byte");
  CHECK(ErrorOf("prefix,module,team\n\xc3\xa9\xff,c,d\n") == "owners.csv:2:2: not UTF-8: byte 0xff");
  CHECK(ErrorOf("prefix,module,team\n\xe0\x80\x80,c,d\n") == "owners.csv:2:1: not UTF-8: byte 0x80 inside a character");
  CHECK(ErrorOf("prefix,module,team\n\xed\xa0\x80,c,d\n") == "owners.csv:2:1: not UTF-8: byte 0xa0 inside a character");
  CHECK(ErrorOf("\xff\xfep\n") == "owners.csv:1:1: not UTF-8: byte 0xff");
  CHECK(ErrorOf("prefix,module,team\na,b,c\xe2\x82") == "owners.csv:2:6: not UTF-8: the file ends inside a character");
  CHECK(ErrorOf("prefix,module,team\na\rb,c,d\n") == "owners.csv:2:3: carriage return inside a line");
  CHECK(ErrorOf("prefix,module,team\n" + std::string(kMaxLineBytes + 1, 'a')) ==
        "owners.csv:2:1048577: line longer than 1048576 bytes");
  CHECK(ErrorOf("prefix,module,team\n# " + std::string(kMaxLineBytes + 1, 'a')) ==
        "owners.csv:2:1048577: line longer than 1048576 bytes");
}

TEST_CASE("Files that are no files, are not there or have no end get one line", "[owner_rules]") {
  TemporaryDirectory directory;
  auto error = [](const std::string& path) { return std::string(ReadOwnerRules(path).status().message()); };
  CHECK(error(directory / "none.csv") == (directory / "none.csv") + ": cannot open: No such file or directory");
  CHECK(error(directory.path()) == directory.path() + ": cannot read: Is a directory");
  CHECK(error("/dev/zero") == "/dev/zero:1:1: NUL byte");
  // A line of 1 GiB as a hole: refused at the first MiB, long before it is in memory.
  std::string huge = directory / "huge.csv";
  { std::ofstream(huge) << "prefix,module,team\n" << std::string(2 << 20, 'x'); }
  REQUIRE(truncate(huge.c_str(), 1 << 30) == 0);
  CHECK(error(huge) == huge + ":2:1048577: line longer than 1048576 bytes");
  std::string secret = directory / "secret.csv";
  { std::ofstream(secret) << "prefix,module,team\n"; }
  chmod(secret.c_str(), 0);
  if (geteuid() != 0) CHECK(error(secret) == secret + ": cannot open: Permission denied");
}

TEST_CASE("Rules come from the flag, the environment, the working directory, or are the built-in ones alone",
          "[owner_rules]") {
  TemporaryDirectory directory;
  char before[4096];
  REQUIRE(getcwd(before, sizeof(before)) != nullptr);
  REQUIRE(chdir(directory.path().c_str()) == 0);
  unsetenv("CADASTRE_RULES");
  absl::StatusOr<OwnerRules> rules = FindOwnerRules("");
  REQUIRE(rules.ok());
  CHECK(rules->path.empty());
  CHECK(rules->rules.size() == BuiltInRules().size());

  std::ofstream("owners.csv") << "prefix,module,team\nhere,m,t\n";
  std::ofstream("other.csv") << "prefix,module,team\nother,m,t\n";
  std::ofstream("flag.csv") << "prefix,module,team\nflag,m,t\n";
  CHECK(FindOwnerRules("")->rules[0].prefix == "here");
  setenv("CADASTRE_RULES", "other.csv", 1);
  CHECK(FindOwnerRules("")->rules[0].prefix == "other");
  CHECK(FindOwnerRules("flag.csv")->rules[0].prefix == "flag");
  CHECK(FindOwnerRules("flag.csv")->path == "flag.csv");
  CHECK_FALSE(FindOwnerRules("missing.csv").ok());
  unsetenv("CADASTRE_RULES");
  REQUIRE(chdir(before) == 0);
}

TEST_CASE("The built-in rules are whole, all platform, and say each prefix once", "[owner_rules]") {
  std::set<std::pair<int, std::string>> seen;
  for (const Rule& rule : BuiltInRules()) {
    INFO(rule.prefix);
    CHECK(rule.built_in);
    CHECK(rule.file == "built-in");
    CHECK(rule.module.compare(0, 9, "platform/") == 0);
    CHECK(seen.emplace(static_cast<int>(rule.key), rule.prefix).second);
  }
  CHECK(seen.size() > 400);
}

std::string IncludeError(const std::string& directory, const std::string& name) {
  absl::StatusOr<std::vector<Rule>> rules = ReadOwnerRules(directory + "/" + name);
  return rules.ok() ? "no error" : std::string(rules.status().message());
}

void WriteFile(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

TEST_CASE("An include stands for the rules of another file, relative to the one that names it", "[owner_rules]") {
  TemporaryDirectory directory;
  const std::string& path = directory.path();
  REQUIRE(mkdir((path + "/teams").c_str(), 0700) == 0);
  REQUIRE(mkdir((path + "/teams/web").c_str(), 0700) == 0);
  WriteFile(path + "/owners.csv",
            "prefix,module,team\na::,a,t\n#include teams/billing.csv \r\n# include nothing.csv\n#included\nz::,z,t\n");
  WriteFile(path + "/teams/billing.csv", "#include web/web.csv\nprefix,module,team\nb::,b,t\n");
  WriteFile(path + "/teams/web/web.csv", "\xef\xbb\xbfteam,module,prefix\nt,w,w::\n");
  absl::StatusOr<std::vector<Rule>> rules = ReadOwnerRules(path + "/owners.csv");
  INFO(rules.status().ToString());
  REQUIRE(rules.ok());
  std::string places;
  for (const Rule& rule : *rules) places += RulePlace(rule) + " " + RulePrefixText(rule) + "\n";
  CHECK(places == "owners.csv:2 a::\nteams/web/web.csv:2 w::\nteams/billing.csv:3 b::\nowners.csv:6 z::\n");
}

TEST_CASE("An include that cannot be followed is an error of the line that names it", "[owner_rules]") {
  TemporaryDirectory directory;
  const std::string& path = directory.path();
  const std::string header = "prefix,module,team\n";
  WriteFile(path + "/missing.csv", header + "#include nosuch.csv\n");
  CHECK(IncludeError(path, "missing.csv") ==
        path + "/missing.csv:2:1: includes " + path + "/nosuch.csv: cannot open: No such file or directory");
  WriteFile(path + "/directory.csv", header + "\n#include .\n");
  CHECK(IncludeError(path, "directory.csv") ==
        path + "/directory.csv:3:1: includes " + path + "/.: cannot read: Is a directory");
  WriteFile(path + "/self.csv", header + "#include self.csv\n");
  CHECK(IncludeError(path, "self.csv") == path + "/self.csv:2:1: includes " + path + "/self.csv, which is in already");
  WriteFile(path + "/one.csv", header + "#include two.csv\n");
  WriteFile(path + "/two.csv", header + "a::,a,t\n#include ./one.csv\n");
  CHECK(IncludeError(path, "one.csv") == path + "/two.csv:3:1: includes " + path + "/./one.csv, which is in already");
  WriteFile(path + "/outer.csv", header + "#include inner.csv\n");
  WriteFile(path + "/inner.csv", header + "b::,b\n");
  CHECK(IncludeError(path, "outer.csv") == path + "/inner.csv:2:6: missing column 'team'");
  for (int i = 0; i < 40; i++) {
    WriteFile(path + "/deep" + std::to_string(i) + ".csv", header + "#include deep" + std::to_string(i + 1) + ".csv\n");
  }
  CHECK(IncludeError(path, "deep0.csv") ==
        path + "/deep32.csv:2:1: includes " + path + "/deep33.csv: deeper than 32 files");
  CHECK(ErrorOf(header + "#include other.csv\n") == "owners.csv:2:1: nothing can be included here");
}

}  // namespace
}  // namespace cadastre
