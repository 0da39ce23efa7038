// Every format prints the same rows: the JSON that scripts rely on, the text that fits a terminal, CSV and Markdown
// that parse.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/format.h"
#include "symbolizer/utf8.h"
#include "tests/unit/report/report_fixture.h"

namespace cadastre {
namespace {

using nlohmann::json;

json JsonOf(const Report& report, std::optional<size_t> top = std::nullopt) {
  std::string text;
  WriteJson(report, top, [&](absl::string_view piece) { absl::StrAppend(&text, piece); });
  return json::parse(text);
}

std::string CsvOf(const Report& report) {
  std::string text;
  WriteCsv(report, std::nullopt, [&](absl::string_view piece) { absl::StrAppend(&text, piece); });
  return text;
}

constexpr char kRules[] =
    "billing::,billing,payments\n"
    "\"quoted, name\",\"quoted, module\",\"the \"\"team\"\"\"\n"
    "com.acme.search.,search,discovery\n";
constexpr char kLibc[] = "malloc@/lib/libc.so.6";

void Fill(ReportFixture* fixture) {
  uint32_t thread = fixture->AddThread("http-nio-8080-exec-3");
  uint32_t billing =
      fixture->AddSite({kLibc, "deflateInit2_@/usr/lib/libz.so.1", "billing::Ledger::Grow(unsigned long)@/opt/app"});
  uint32_t search = fixture->AddSite({kLibc, "java:com.acme.search.Index.add"});
  uint32_t quoted = fixture->AddSite({kLibc, "quoted, name@/opt/app"});
  uint32_t unowned = fixture->AddSite({kLibc, "nobody::Knows()@/opt/libnobody.so"});
  for (int i = 0; i < 300; i++) fixture->AddLive(billing, 4096, 526'000, thread, 1'000'000'000'000);
  for (int i = 0; i < 100; i++) fixture->AddLive(search, 100'000, 575'000);
  fixture->AddLive(quoted, 100, 524'000);
  for (int i = 0; i < 20; i++) fixture->AddLive(unowned, 100, 524'000);
}

std::set<std::string> Keys(const json& object) {
  std::set<std::string> keys;
  for (const auto& item : object.items()) keys.insert(item.key());
  return keys;
}

void RequireKeys(const json& object, const std::set<std::string>& wanted) {
  std::set<std::string> keys = Keys(object);
  for (const std::string& key : wanted) {
    INFO("key " << key);
    CHECK(keys.count(key) == 1);
  }
}

TEST_CASE("The JSON has every published key, also where nothing is known", "[formats]") {
  for (bool full : {true, false}) {
    ReportFixture fixture(kRules);
    if (full) Fill(&fixture);
    json report = JsonOf(fixture.Build());
    CHECK(report["schema"] == "cadastre.report/1");
    RequireKeys(report, {"profile", "totals", "unattributed", "modules", "teams", "sites", "losses", "warnings"});
    RequireKeys(report["profile"], {"path", "pid", "exe", "command", "started", "duration_s", "interval_bytes",
                                    "samples", "rss_bytes", "host", "runtime", "allocator", "labels", "end", "method"});
    RequireKeys(report["totals"],
                {"live_bytes", "live_bytes_stderr", "allocated_bytes", "allocated_bytes_stderr", "live_count"});
    RequireKeys(report["unattributed"], {"live_bytes", "share_pct"});
    RequireKeys(report["losses"], {"dropped_samples", "truncated_stacks", "unresolved_frames"});
    CHECK(report["profile"]["rss_bytes"].is_null());
    CHECK(report["profile"]["end"] == "running");
    CHECK(report["profile"]["started"] == "2026-01-01T00:00:00Z");
    if (!full) {
      CHECK(report["modules"].empty());
      continue;
    }
    for (const json& module : report["modules"]) {
      RequireKeys(module, {"module", "team", "live_bytes", "live_bytes_stderr", "share_pct", "allocated_bytes",
                           "live_count", "samples", "peak_bytes", "old_bytes", "via"});
    }
    for (const json& team : report["teams"])
      RequireKeys(team, {"team", "live_bytes", "live_bytes_stderr", "share_pct", "allocated_bytes", "live_count"});
    for (const json& site : report["sites"]) {
      RequireKeys(site, {"module", "team", "rule", "live_bytes", "live_bytes_stderr", "allocated_bytes", "live_count",
                         "samples", "thread", "kind", "frames"});
      for (const json& frame : site["frames"]) RequireKeys(frame, {"function", "library", "file", "line", "language"});
    }
  }
}

TEST_CASE("In the JSON modules and unattributed add up to the total exactly", "[formats]") {
  ReportFixture fixture(kRules);
  Fill(&fixture);
  json report = JsonOf(fixture.Build(), 1);  // --top limits the sites, never what adds up
  uint64_t sum = report["unattributed"]["live_bytes"];
  double share = report["unattributed"]["share_pct"];
  for (const json& module : report["modules"]) {
    sum += module["live_bytes"].get<uint64_t>();
    share += module["share_pct"].get<double>();
  }
  CHECK(sum == report["totals"]["live_bytes"].get<uint64_t>());
  CHECK(share == Approx(100).epsilon(1e-6));
  CHECK(report["sites"].size() == 1);
  const json& site = report["sites"][0];
  CHECK(site["module"] == "billing");
  CHECK(site["rule"] == "owners.csv:2 billing::");
  CHECK(site["thread"] == "http-nio-8080-exec-*");
  CHECK(site["kind"] == "malloc");
  CHECK(site["frames"][0]["function"] == "malloc");
  CHECK(report["modules"][0]["via"] == "platform/zlib");
}

TEST_CASE("Broken bytes in names do not break the JSON", "[formats]") {
  ReportFixture fixture(kRules);
  fixture.profile.host = "caf\xe9\x01\"";
  fixture.profile.labels = "a\"b:\xff\nversion:2";
  fixture.profile.command = {"x\n", "\xed\xa0\x80"};
  Fill(&fixture);
  json report = JsonOf(fixture.Build());
  CHECK(report["profile"]["labels"]["version"] == "2");
  CHECK(report["profile"]["command"][0] == "x\n");
}

TEST_CASE("Text fits 110 columns, whatever the names", "[formats]") {
  for (GroupBy by : {GroupBy::kModule, GroupBy::kTeam, GroupBy::kLibrary, GroupBy::kSite, GroupBy::kThread}) {
    for (Metric metric : {Metric::kLive, Metric::kAllocated, Metric::kCount, Metric::kPeak}) {
      for (bool brief : {false, true}) {
        for (bool rules : {false, true}) {
          for (const char* letter : {"x", "計"}) {
            std::string endless;
            for (int i = 0; i < 500; i++) endless += letter;
            ReportFixture fixture(rules ? kRules + endless + "::," + endless + "," + endless + "\n" : "");
            Fill(&fixture);
            fixture.AddLive(fixture.AddSite({kLibc, endless + "::f()@/opt/" + endless}), 100, 600'000,
                            fixture.AddThread("a thread's name"));
            fixture.AddLive(fixture.AddSite({kLibc, "y" + endless + "()@/opt/lib" + endless + ".so"}), 100, 700'000);
            fixture.profile.host = endless;
            fixture.profile.labels = "k:" + endless;
            fixture.profile.warnings.push_back(endless + " " + endless);
            ReportOptions options;
            options.by = by;
            options.metric = metric;
            TextOptions text;
            text.brief = brief;
            text.top = 3;
            std::string printed = FormatText(fixture.Build(options), text);
            for (absl::string_view line : absl::StrSplit(printed, '\n')) {
              INFO(std::string(line));
              CHECK(DisplayWidth(line) <= kTextWidth);
            }
            CHECK(printed.find('\x1b') == std::string::npos);
          }
        }
      }
    }
  }
}

TEST_CASE("Text always shows who, how much, the unattributed row, the method and the caution", "[formats]") {
  ReportFixture fixture(kRules);
  Fill(&fixture);
  std::string text = FormatText(fixture.Build(), {});
  CHECK(text.rfind("pay · pid 4242 · host pay-7f9c · glibc · up 52 min · running\n", 0) == 0);
  for (const char* part : {"MODULE", "LIVE", "SHARE", ">10 MIN", "VIA", "\nunattributed", "platform/zlib",
                           "first owned frame", "512 KiB", "421 samples", "losses 0", "triage aid, not an invoice",
                           "  nobody::,MODULE,TEAM  # ", "rule owners.csv:2 billing:: → payments"}) {
    INFO(part << "\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("rules init") == std::string::npos);
}

TEST_CASE("Of a process that was lost only its last sample is known, and text says so", "[formats]") {
  ReportFixture fixture(kRules);
  Fill(&fixture);
  fixture.profile.end = EndState::kLost;
  const std::string text = FormatText(fixture.Build(), {});
  INFO(text);
  CHECK(text.find(" · up at least 52 min · ended: lost") != std::string::npos);
}

TEST_CASE("A line of a Java stack names the wrapper by class and method, and sums what reads the same", "[formats]") {
  auto line_for = [](const std::string& owner) {
    ReportFixture fixture("com.acme.,billing,payments\n");
    for (uint64_t call = 1; call <= 2; call++) {
      fixture.AddLive(
          fixture.AddSite({"deflateInit2_@/lib/libz.so.1", "Java_java_util_zip_Deflater_init@/lib/libzip.so",
                           "java:java.util.zip.Deflater.init", "java:java.util.zip.Deflater.<init>",
                           "java:java.util.zip.Deflater.<init>", "java:" + owner,
                           "java:com.acme.Main.call" + std::to_string(call)}),
          100, call << 20);
    }
    std::string text = FormatText(fixture.Build(), {});
    size_t begin = text.find("3.00 MiB: ");
    return begin == std::string::npos ? text : text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(line_for("com.acme.Pdf.compress") ==
        "3.00 MiB: deflateInit2_ (libz.so.1) < Deflater.init < Deflater.<init> < com.acme.Pdf.compress");
  CHECK(line_for("com.acme.billing.pdf.InvoicePdf.compress") ==
        "3.00 MiB: deflateInit2_ (libz.so.1) < … < Deflater.<init> < com.acme.billing.pdf.InvoicePdf.compress");
  // 110 columns: rather the wrapper than the library.
  CHECK(
      line_for("com.acme.billing.pdf.InvoicePdfWriter.compressAndKeepTheFirst") ==
      "3.00 MiB: deflateInit2_ < … < Deflater.<init> < com.acme.billing.pdf.InvoicePdfWriter.compressAndKeepTheFirst");
}

TEST_CASE("Without rules the last line says how to get some", "[formats]") {
  ReportFixture fixture;
  Fill(&fixture);
  ReportOptions options;
  options.profile_argument = "pay.cad";
  std::string text = FormatText(fixture.Build(options), {});
  std::string last = "next: cadastre rules init pay.cad > owners.csv\n";
  CHECK(text.substr(text.size() - last.size()) == last);
  CHECK(text.find("libnobody.so ?") != std::string::npos);
}

TEST_CASE("What cannot be trusted says so first", "[formats]") {
  ReportFixture fixture(kRules);
  fixture.AddLive(fixture.AddSite({kLibc, "billing::f()@/opt/app"}), 100, 600'000);
  CHECK(FormatText(fixture.Build(), {}).rfind("unusable: 1 sample in 52 min, fewer than 200", 0) == 0);
}

TEST_CASE("Colour is only where it was asked for", "[formats]") {
  ReportFixture fixture(kRules);
  Fill(&fixture);
  TextOptions colour;
  colour.style.colour = true;
  CHECK(FormatText(fixture.Build(), colour).find("\x1b[") != std::string::npos);
}

TEST_CASE("CSV quotes what RFC 4180 says and has the unattributed row", "[formats]") {
  ReportFixture fixture(kRules);
  Fill(&fixture);
  std::string csv = CsvOf(fixture.Build());
  CHECK(csv.rfind("module,team,live_bytes,live_bytes_stderr,share_pct,", 0) == 0);
  CHECK(csv.find("\n\"quoted, module\",\"the \"\"team\"\"\",524000,") != std::string::npos);
  CHECK(csv.find("\nunattributed,,10480000,") != std::string::npos);
  std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  CHECK(lines.size() == 5);
}

// One line of CSV; only the fixture's own quoting.
std::vector<std::string> CsvCells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

TEST_CASE("A stack reads the same however many others share its frames", "[formats]") {
  ReportFixture fixture(kRules);
  constexpr char kOwn[] = "malloc@/usr/lib/libcadastre.so";
  const std::vector<std::vector<std::string>> stacks = {
      {kOwn, kLibc, "a@/opt/app", "b@/opt/app"},
      {kOwn, "b@/opt/app", "broken \xff, \"quoted\"@/opt/app", "a@/opt/app"},
      {"java:com.acme.search.Index.add", kOwn, kLibc, "b@/opt/app"},
      {"broken \xff, \"quoted\"@/opt/app"},
      {kOwn},
      {"# no comment@/opt/app", "a@/opt/app"},
  };
  for (size_t i = 0; i < stacks.size(); i++) fixture.AddLive(fixture.AddSite(stacks[i]), 4096, 526'000 - i);
  // What one address was inlined from are frames too.
  for (auto& [raw, frames] : fixture.profile.stored_symbols) {
    if (frames[0].function == "b") frames.resize(3, frames[0]);
  }
  const Report report = fixture.Build({.by = GroupBy::kSite});
  const json document = JsonOf(report);
  const std::vector<std::string> lines = absl::StrSplit(CsvOf(report), '\n', absl::SkipEmpty());
  REQUIRE(document["sites"].size() == stacks.size());
  REQUIRE(lines.size() == stacks.size() + 1);
  const std::vector<std::string> expected = {"malloc;a;b;b;b",
                                             "\"b;b;b;broken \ufffd, \"\"quoted\"\";a\"",
                                             "com.acme.search.Index.add;malloc;b;b;b",
                                             "\"broken \ufffd, \"\"quoted\"\"\"",
                                             "",
                                             "\"# no comment;a\""};
  for (size_t i = 0; i < stacks.size(); i++) {
    CHECK(lines[i + 1].ends_with("," + expected[i]));
    const std::vector<const Frame*> frames = report.FramesOf(report.sites[i]);
    REQUIRE(document["sites"][i]["frames"].size() == frames.size());
    for (size_t f = 0; f < frames.size(); f++) {
      const json& frame = document["sites"][i]["frames"][f];
      CHECK(frame["language"] == (frames[f]->java ? "java" : "native"));
      CHECK(frame["function"] == ValidUtf8(frames[f]->function));
    }
  }
}

TEST_CASE("The table says which metric it shows", "[formats]") {
  const std::pair<Metric, const char*> kHeadings[] = {{Metric::kLive, " LIVE "},
                                                      {Metric::kAllocated, " ALLOCATED "},
                                                      {Metric::kCount, " COUNT "},
                                                      {Metric::kPeak, " PEAK "},
                                                      {Metric::kMapped, " MAPPED "}};
  for (const auto& [metric, heading] : kHeadings) {
    ReportFixture fixture(kRules);
    Fill(&fixture);
    ReportOptions options;
    options.metric = metric;
    INFO(heading);
    CHECK(FormatText(fixture.Build(options), TextOptions()).find(heading) != std::string::npos);
  }
}

TEST_CASE("Every grouping by every metric has columns that are what they say, in every format", "[formats]") {
  constexpr GroupBy kGroups[] = {GroupBy::kModule, GroupBy::kTeam, GroupBy::kLibrary, GroupBy::kSite, GroupBy::kThread};
  constexpr Metric kMetrics[] = {Metric::kLive, Metric::kAllocated, Metric::kCount, Metric::kPeak};
  for (GroupBy by : kGroups) {
    for (Metric metric : kMetrics) {
      INFO("--by " << GroupName(by) << " --metric " << MetricName(metric));
      ReportFixture fixture(kRules);
      Fill(&fixture);
      fixture.AddFreed(0, 4096, 526'000);
      fixture.profile.sites[0].bytes_at_peak += 1'000'000;
      ReportOptions options;
      options.by = by;
      options.metric = metric;
      Report report = fixture.Build(options);
      const bool threads = by == GroupBy::kThread;
      const bool shown_as_live = threads && (metric == Metric::kAllocated || metric == Metric::kPeak);
      CHECK(report.options.metric == (shown_as_live ? Metric::kLive : metric));
      size_t told = 0;
      for (const std::string& warning : report.warnings)
        told += warning.find("is not kept: live memory is shown") != std::string::npos;
      CHECK(told == (shown_as_live ? 1 : 0));

      std::vector<std::string> lines = absl::StrSplit(CsvOf(report), '\n', absl::SkipEmpty());
      std::vector<std::string> heading = CsvCells(lines[0]);
      std::map<std::string, double> sums;
      for (size_t i = 1; i < lines.size(); i++) {
        std::vector<std::string> cells = CsvCells(lines[i]);
        REQUIRE(cells.size() == heading.size());
        for (size_t column = 0; column < cells.size(); column++) {
          INFO(heading[column] << " = " << cells[column]);
          bool number = heading[column].find("_") != std::string::npos || heading[column] == "samples";
          bool of_volume = heading[column].rfind("allocated_bytes", 0) == 0 || heading[column] == "samples" ||
                           heading[column] == "peak_bytes";
          if (!number) continue;
          if (heading[column].rfind("since_", 0) == 0 || heading[column] == "rate_bytes_per_hour") {
            CHECK(cells[column].empty());  // no earlier snapshot
            continue;
          }
          CHECK(cells[column].empty() == (threads && of_volume));
          if (!cells[column].empty()) sums[heading[column]] += std::stod(cells[column]);
        }
      }
      const Tally& totals = report.totals;
      CHECK(sums["live_bytes"] == totals.live_bytes);
      CHECK(sums["live_count"] == totals.live_count);
      CHECK(sums["share_pct"] == Approx(100).epsilon(0.001));
      if (!threads) {
        CHECK(sums["allocated_bytes"] == totals.allocated_bytes);
        CHECK(sums["peak_bytes"] == totals.peak_bytes);
        CHECK(sums["samples"] == totals.samples);
      }

      std::string text = FormatText(report, {});
      constexpr const char* kHeadings[] = {" LIVE ", " ALLOCATED ", " COUNT ", " PEAK "};
      if (by != GroupBy::kSite)
        CHECK(text.find(kHeadings[static_cast<int>(report.options.metric)]) != std::string::npos);

      std::vector<std::string> rows = absl::StrSplit(FormatMarkdown(report, std::nullopt), '\n', absl::SkipEmpty());
      std::set<int64_t> bars;
      for (const std::string& row : rows) {
        if (row[0] == '|') bars.insert(std::count(row.begin(), row.end(), '|'));
      }
      CHECK(bars.size() == 1);

      json document = JsonOf(report);
      CHECK(document["metric"] == MetricName(report.options.metric));
      for (const char* rows_of : {"modules", "sites", "teams", "libraries", "threads"}) {
        uint64_t count = 0;
        for (const json& row : document[rows_of]) count += row["live_count"].get<uint64_t>();
        bool apart = rows_of == std::string("modules") || rows_of == std::string("teams");
        if (apart) count += document["unattributed"]["live_count"].get<uint64_t>();
        CHECK(count == document["totals"]["live_count"]);
      }
    }
  }
}

TEST_CASE("An interval that changed and a pause are shown", "[formats]") {
  ReportFixture fixture(kRules);
  Fill(&fixture);
  fixture.profile.current_interval_bytes = 64 * 1024;
  fixture.profile.interval_changes = 1;
  fixture.profile.pauses.now = true;
  fixture.profile.pauses.since_realtime_ns = fixture.profile.start_realtime_ns + 1'200'000'000'000;
  Report report = fixture.Build();
  std::string text = FormatText(report, {});
  CHECK(text.find("64 KiB (512 KiB at first), 421 samples") != std::string::npos);
  CHECK(text.find("paused since 00:20:00 UTC (32 min)") != std::string::npos);
  json profile = JsonOf(report)["profile"];
  CHECK(profile["interval_bytes"] == 512 * 1024);
  CHECK(profile["current_interval_bytes"] == 64 * 1024);
  CHECK(profile["paused"] == true);
}

TEST_CASE("Markdown cells cannot break the table", "[formats]") {
  ReportFixture fixture("billing::,a|b,<team>\n");
  Fill(&fixture);
  std::string markdown = FormatMarkdown(fixture.Build(), std::nullopt);
  CHECK(markdown.find("| a\\|b | &lt;team> | ") != std::string::npos);
}

TEST_CASE("A long report in JSON or CSV comes in pieces, and no site is held with all others", "[formats]") {
  ReportFixture fixture;
  for (int i = 0; i < 2000; i++) {
    std::vector<std::string> frames(20, kLibc);
    frames.push_back(std::string(200, 'f') + std::to_string(i) + "@/opt/app");
    fixture.AddLive(fixture.AddSite(frames), 4096, 526'000);
  }
  Report report = fixture.Build();
  report.options.by = GroupBy::kSite;
  size_t pieces = 0, bytes = 0, longest = 0;
  auto count = [&](absl::string_view piece) {
    pieces++;
    bytes += piece.size();
    longest = std::max(longest, piece.size());
  };
  SECTION("JSON") {
    WriteJson(report, std::nullopt, count);
    CHECK(JsonOf(report)["sites"].size() == 2000);
  }
  SECTION("CSV") { WriteCsv(report, std::nullopt, count); }
  CHECK(bytes > 500'000);
  CHECK(longest < 300 << 10);
  CHECK(pieces >= bytes / longest);
}

}  // namespace
}  // namespace cadastre
