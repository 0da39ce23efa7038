#include "report/format_check.h"

#include <stdlib.h>
#include <unistd.h>

#include <climits>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "report/estimate.h"
#include "report/json_writer.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

constexpr size_t kMostAnnotations = 9;  // and the summary: a step of GitHub's shows ten
constexpr size_t kStackWidth = 90;

std::string SiteText(const GateSite& site) {
  std::string text = FormatBytes(site.bytes);
  if (site.grown_bytes != 0)
    absl::StrAppend(&text, " (", site.grown_bytes > 0 ? "+" : "", FormatBytes(site.grown_bytes), ")");
  return absl::StrCat(text, ": ", CutMiddle(SafeText(site.stack), kStackWidth));
}

std::string OwnerText(const GateResult& result) {
  if (result.team.empty()) return "";
  return absl::StrCat(result.team, result.contact.empty() ? "" : absl::StrCat(" (", result.contact, ")"));
}

size_t CountOf(const Check& check, GateOutcome outcome) {
  size_t count = 0;
  for (const GateResult& result : check.results) count += result.outcome == outcome;
  return count;
}

std::string Summary(const Check& check) {
  const size_t failed = CountOf(check, GateOutcome::kFail), warned = CountOf(check, GateOutcome::kWarn);
  return absl::StrCat(check.results.size(), check.results.size() == 1 ? " gate, " : " gates, ", failed, " failed, ",
                      warned, " warned");
}

std::string Text(const Check& check) {
  std::string out;
  const std::string profiles = SafeText(
      check.profiles.size() == 1 ? check.profiles[0]
                                 : absl::StrCat(check.profiles[0], " and ", check.profiles.size() - 1, " more"));
  for (const GateResult& result : check.results) {
    absl::StrAppend(&out, GateOutcomeName(result.outcome), " ", profiles, ": ", SafeText(result.text));
    if (result.outcome != GateOutcome::kPass && !result.team.empty())
      absl::StrAppend(&out, " · ", SafeText(OwnerText(result)));
    if (result.outcome != GateOutcome::kPass && !result.file.empty() && result.gate == "budget")
      absl::StrAppend(&out, " · ", SafeText(result.file), ":", result.line);
    out += "\n";
    if (result.outcome == GateOutcome::kPass) continue;
    for (const GateSite& site : result.sites) absl::StrAppend(&out, "    ", SiteText(site), "\n");
    for (const std::string& hint : result.hints) absl::StrAppend(&out, "  ", SafeText(hint), "\n");
  }
  absl::StrAppend(&out, "  ", SafeText(check.method), "\n");
  for (const std::string& warning : check.warnings) absl::StrAppend(&out, "  warning: ", SafeText(warning), "\n");
  return out;
}

std::string Json(const Check& check) {
  std::vector<std::string> gates, profiles, warnings;
  for (const GateResult& result : check.results) {
    std::vector<std::string> sites, hints;
    for (const GateSite& site : result.sites) {
      JsonObject object;
      object.Text("stack", site.stack).Integer("bytes", static_cast<uint64_t>(std::llround(std::max(0.0, site.bytes))));
      sites.push_back(object.Raw("grown_bytes", absl::StrCat(std::llround(site.grown_bytes))).Done());
    }
    for (const std::string& hint : result.hints) hints.push_back(JsonString(hint));
    JsonObject object;
    object.Text("gate", result.gate).Text("name", result.name);
    object.Text("outcome", absl::AsciiStrToLower(GateOutcomeName(result.outcome))).Text("text", result.text);
    object.TextOrNull("team", result.team).TextOrNull("contact", result.contact);
    object.TextOrNull("file", result.file).IntegerOrNull("line", static_cast<uint64_t>(result.line));
    object.Number("excess_share", result.excess);
    object.Raw("sites", absl::StrCat("[", absl::StrJoin(sites, ", "), "]"));
    gates.push_back(object.Raw("hints", absl::StrCat("[", absl::StrJoin(hints, ", "), "]")).Done());
  }
  for (const std::string& profile : check.profiles) profiles.push_back(JsonString(profile));
  for (const std::string& warning : check.warnings) warnings.push_back(JsonString(warning));
  return absl::StrCat("{\n  \"schema\": \"cadastre.check/1\",\n  \"outcome\": \"",
                      absl::AsciiStrToLower(GateOutcomeName(WorstOf(check.results))),
                      "\",\n  \"profiles\": ", JsonArray(profiles, "  "), ",\n  \"runs\": ", check.runs,
                      ",\n  \"method\": ", JsonString(check.method), ",\n  \"gates\": ", JsonArray(gates, "  "),
                      ",\n  \"warnings\": ", JsonArray(warnings, "  "), "\n}\n");
}

std::string Markdown(const Check& check) {
  std::string out = absl::StrCat("**cadastre check**: ", Summary(check), "\n\n| | gate | team |\n|---|---|---|\n");
  for (const GateResult& result : check.results) {
    const char* mark = result.outcome == GateOutcome::kPass   ? "pass"
                       : result.outcome == GateOutcome::kWarn ? "**warn**"
                                                              : "**FAIL**";
    absl::StrAppend(&out, "| ", mark, " | ", MarkdownCell(result.text));
    if (result.outcome != GateOutcome::kPass) {
      for (const GateSite& site : result.sites) absl::StrAppend(&out, "<br>", MarkdownCell(SiteText(site)));
      for (const std::string& hint : result.hints) absl::StrAppend(&out, "<br>", MarkdownCell(hint));
    }
    absl::StrAppend(&out, " | ", MarkdownCell(OwnerText(result)), " |\n");
  }
  absl::StrAppend(&out, "\n", MarkdownCell(check.method), "\n");
  for (const std::string& warning : check.warnings) absl::StrAppend(&out, "\n> ", MarkdownCell(warning), "\n");
  return out;
}

// SafeText leaves no control character, which XML 1.0 cannot hold.
std::string Xml(const std::string& text) {
  return absl::StrReplaceAll(SafeText(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&apos;"}});
}

std::string Details(const GateResult& result) {
  std::string out;
  for (const GateSite& site : result.sites) absl::StrAppend(&out, Xml(SiteText(site)), "\n");
  for (const std::string& hint : result.hints) absl::StrAppend(&out, Xml(hint), "\n");
  if (!result.contact.empty()) absl::StrAppend(&out, "contact: ", Xml(result.contact), "\n");
  return out;
}

std::string Junit(const Check& check) {
  std::map<std::string, std::vector<const GateResult*>> suites;
  for (const GateResult& result : check.results)
    suites[result.team.empty() ? "cadastre" : result.team].push_back(&result);
  const size_t failed = CountOf(check, GateOutcome::kFail);
  std::string out =
      absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"cadastre check\" tests=\"",
                   check.results.size(), "\" failures=\"", failed, "\" errors=\"0\">\n");
  for (const auto& [team, results] : suites) {
    size_t failures = 0;
    for (const GateResult* result : results) failures += result->outcome == GateOutcome::kFail;
    absl::StrAppend(&out, "  <testsuite name=\"", Xml(team), "\" tests=\"", results.size(), "\" failures=\"", failures,
                    "\" errors=\"0\" skipped=\"0\" time=\"0\">\n");
    for (const GateResult* result : results) {
      absl::StrAppend(&out, "    <testcase classname=\"cadastre.", Xml(result->gate), "\" name=\"", Xml(result->name),
                      "\" time=\"0\"");
      if (result->outcome == GateOutcome::kPass) {
        absl::StrAppend(&out, "/>\n");
      } else if (result->outcome == GateOutcome::kFail) {
        absl::StrAppend(&out, ">\n      <failure message=\"", Xml(result->text), "\" type=\"", Xml(result->gate), "\">",
                        Details(*result), "</failure>\n    </testcase>\n");
      } else {
        absl::StrAppend(&out, ">\n      <system-out>warning: ", Xml(result->text), "\n", Details(*result),
                        "</system-out>\n    </testcase>\n");
      }
    }
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

// https://docs.github.com/actions/reference/workflow-commands: data and properties are escaped differently.
std::string GithubData(const std::string& text) {
  return absl::StrReplaceAll(text, {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
}
std::string GithubProperty(const std::string& text) {
  return absl::StrReplaceAll(GithubData(SafeText(text)), {{":", "%3A"}, {",", "%2C"}});
}

// An annotation stands on a path of the repository; an absolute one is made relative to its root.
std::string RepositoryPath(const std::string& path) {
  if (path.empty() || path[0] != '/') return std::string(absl::StripPrefix(path, "./"));
  const char* workspace = getenv("GITHUB_WORKSPACE");
  char here[PATH_MAX];
  std::string root = workspace != nullptr && workspace[0] == '/' ? workspace
                     : getcwd(here, sizeof(here)) != nullptr     ? here
                                                                 : "/";
  if (root.back() != '/') root += '/';
  return std::string(absl::StripPrefix(path, root));
}

std::string Github(const Check& check) {
  std::string out;
  size_t shown = 0;
  for (const GateResult& result : check.results) {
    if (result.outcome == GateOutcome::kPass || shown++ >= kMostAnnotations) continue;
    std::string message = SafeText(result.text);
    for (const GateSite& site : result.sites) absl::StrAppend(&message, "\n", SiteText(site));
    for (const std::string& hint : result.hints) absl::StrAppend(&message, "\n", SafeText(hint));
    std::string where;
    if (!result.file.empty())
      where =
          absl::StrCat("file=", GithubProperty(RepositoryPath(result.file)), ",line=", std::max(1, result.line), ",");
    const std::string owner = OwnerText(result);
    absl::StrAppend(&out, result.outcome == GateOutcome::kFail ? "::error " : "::warning ", where,
                    "title=", GithubProperty(absl::StrCat("cadastre: ", result.name, owner.empty() ? "" : ", ", owner)),
                    "::", GithubData(message), "\n");
  }
  std::string summary = Summary(check);
  if (shown > kMostAnnotations) absl::StrAppend(&summary, "; ", shown - kMostAnnotations, " more are not shown here");
  absl::StrAppend(
      &out, "::notice title=cadastre check::", GithubData(absl::StrCat(summary, "; ", SafeText(check.method))), "\n");
  return out;
}

}  // namespace

std::optional<CheckFormat> CheckFormatOf(const std::string& name) {
  for (size_t i = 0; i < std::size(kCheckFormatNames); i++) {
    if (name == kCheckFormatNames[i]) return static_cast<CheckFormat>(i);
  }
  return std::nullopt;
}

std::string FormatCheck(const Check& check, CheckFormat format) {
  switch (format) {
    case CheckFormat::kText:
      return Text(check);
    case CheckFormat::kJson:
      return Json(check);
    case CheckFormat::kMarkdown:
      return Markdown(check);
    case CheckFormat::kJunit:
      return Junit(check);
    case CheckFormat::kGithub:
      return Github(check);
  }
  return "";
}

}  // namespace cadastre
