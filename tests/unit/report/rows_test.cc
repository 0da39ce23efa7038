// The sums: rows that do not add up to the total would be a cadastre with a hole in it.
#include "report/rows.h"

#include <random>

#include "tests/unit/report/report_fixture.h"

namespace cadastre {
namespace {

constexpr char kRules[] =
    "billing::,billing,payments\n"
    "search::,search,discovery\n"
    "index::,search.index,discovery\n"
    "thread:worker-,workers,core\n";
constexpr char kLibc[] = "malloc@/lib/libc.so.6";

void AddRandomSites(ReportFixture* fixture, uint64_t seed) {
  std::mt19937_64 random(seed);
  const char* owners[] = {"billing::Add()@/opt/app", "search::Find()@/opt/app", "index::Put()@/opt/app",
                          "helper@/opt/libhelper.so", kLibc};
  uint32_t threads[] = {0, fixture->AddThread("worker-1"), fixture->AddThread("worker-2"), fixture->AddThread("main")};
  for (int i = 0; i < 50; i++) {
    uint32_t site = fixture->AddSite({kLibc, owners[random() % 5], "main" + std::to_string(i) + "@/lib/libc.so.6"});
    for (uint64_t n = random() % 20; n > 0; n--) {
      uint64_t size = 1 + random() % 100000;
      fixture->AddLive(site, size, size + random() % 500000, threads[random() % 4], random() % 3'000'000'000'000);
      if (random() % 2 == 0) fixture->AddFreed(site, size, size + random() % 500000);
    }
  }
}

TEST_CASE("Modules and unattributed add up to the total, and so do teams, libraries, threads and sites", "[rows]") {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    ReportFixture fixture(kRules);
    AddRandomSites(&fixture, seed);
    Report report = fixture.Build();
    uint64_t live = 0, allocated = 0, peak = 0;
    for (const LiveSample& sample : fixture.profile.live) live += sample.weight_bytes;
    for (const Site& site : fixture.profile.sites) {
      allocated += site.allocated_bytes;
      peak += site.bytes_at_peak;
    }
    Tally modules = report.unattributed.tally, teams, libraries, sites, threads;
    for (const Row& row : report.modules) modules.Add(row.tally);
    for (const Row& row : report.teams) teams.Add(row.tally);
    for (const Row& row : report.libraries) libraries.Add(row.tally);
    for (const Row& row : report.threads) threads.Add(row.tally);
    for (const SiteRow& row : report.sites) sites.Add(row.tally);
    CHECK(report.totals.live_bytes == live);
    CHECK(report.totals.allocated_bytes == allocated);
    CHECK(report.totals.peak_bytes == peak);
    for (const Tally* tally : {&modules, &teams, &libraries, &sites}) {
      CHECK(tally->live_bytes == live);
      CHECK(tally->allocated_bytes == allocated);
      CHECK(tally->peak_bytes == peak);
      CHECK(tally->live_samples == fixture.profile.live.size());
    }
    CHECK(threads.live_bytes == live);
  }
}

TEST_CASE("VIA is the wrapper that most of a row went through, and none where most went through none", "[rows]") {
  ReportFixture fixture("com.acme.,billing,payments\n");
  uint32_t direct = fixture.AddSite({kLibc, "java:com.acme.Pdf.load"}),
           zipped = fixture.AddSite({kLibc, "java:java.util.zip.Deflater.init", "java:com.acme.Pdf.compress"});
  fixture.AddLive(direct, 100, 400000);
  fixture.AddLive(zipped, 100, 500000);
  CHECK(fixture.Build().modules[0].via == "platform/jdk.zip");
  fixture.AddLive(direct, 100, 400000);
  CHECK(fixture.Build().modules[0].via == "");
}

TEST_CASE("A rule is suggested only where it would own something of what is shown", "[rows]") {
  ReportFixture fixture(kRules);
  fixture.AddLive(fixture.AddSite({kLibc, "holds::f()@/opt/app"}), 100, 400000);
  fixture.AddFreed(fixture.AddSite({kLibc, "churns::f()@/opt/app"}), 100, 500000);
  ReportOptions options;
  Report report = fixture.Build(options);
  REQUIRE(report.suggestions.size() == 1);
  CHECK(report.suggestions[0].prefix == "holds::");
  options.metric = Metric::kAllocated;
  CHECK(fixture.Build(options).suggestions.size() == 2);
}

TEST_CASE("Rows are ranked by the metric that was asked for", "[rows]") {
  ReportFixture fixture(kRules);
  uint32_t keeps = fixture.AddSite({kLibc, "billing::Add()@/opt/app"}),
           churns = fixture.AddSite({kLibc, "search::Find()@/opt/app"});
  fixture.AddLive(keeps, 1000, 500000);
  fixture.AddLive(churns, 10, 400000);
  fixture.AddFreed(churns, 1000, 900000);
  auto first = [&](Metric metric) {
    ReportOptions options;
    options.metric = metric;
    return fixture.Build(options).modules[0].name;
  };
  CHECK(first(Metric::kLive) == "billing");
  CHECK(first(Metric::kAllocated) == "search");
  CHECK(first(Metric::kCount) == "search");  // 40000 blocks of 10 bytes against 500
  CHECK(first(Metric::kPeak) == "billing");
}

TEST_CASE("Old memory is counted against the threshold, and not at all in a young process", "[rows]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "billing::Add()@/opt/app"});
  fixture.profile.duration_ns = 3600'000'000'000;
  fixture.AddLive(site, 100, 1000, 0, 3600'000'000'000 - 599'000'000'000);
  fixture.AddLive(site, 100, 2000, 0, 3600'000'000'000 - 601'000'000'000);
  fixture.AddLive(site, 100, 4000, 0, 0);
  CHECK(fixture.Build().older_than_s == 600);
  CHECK(fixture.Build().modules[0].tally.old_bytes == 6000);
  ReportOptions hour;
  hour.older_than_s = 3600;
  CHECK(fixture.Build(hour).modules[0].tally.old_bytes == 4000);
  fixture.profile.duration_ns = 60'000'000'000;
  CHECK(fixture.Build().older_than_s == 0);
}

TEST_CASE("A thread rule moves the live samples of its threads, and their share of the volume", "[rows]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "pool@/opt/libpool.so"});
  uint32_t worker = fixture.AddThread("worker-1"), other = fixture.AddThread("main");
  fixture.AddLive(site, 100, 3000, worker);
  fixture.AddLive(site, 100, 1000, other);
  fixture.AddFreed(site, 100, 10000);
  Report report = fixture.Build();
  REQUIRE(report.modules.size() == 1);
  CHECK(report.modules[0].name == "workers");
  CHECK(report.modules[0].tally.live_bytes == 3000);
  CHECK(report.modules[0].tally.allocated_bytes == 10500);
  CHECK(report.unattributed.tally.live_bytes == 1000);
  CHECK(report.unattributed.tally.allocated_bytes == 3500);
}

TEST_CASE("Mappings are charged like blocks, shown where they are asked for, and an allocator's own are not",
          "[rows]") {
  ReportFixture fixture(kRules);
  uint32_t block = fixture.AddSite({kLibc, "billing::Add()@/opt/app"});
  fixture.AddLive(block, 100, 5000);
  uint32_t map = fixture.AddSite({"billing::Map()@/opt/app"});
  uint32_t heap = fixture.AddSite({"os::reserve_memory(unsigned long)@/opt/jdk/lib/server/libjvm.so",
                                   "java:com.acme.billing.Pdf.compress", "billing::Map()@/opt/app"});
  uint32_t arena = fixture.AddSite({"je_extent@/usr/lib/libjemalloc.so.2"});
  for (uint32_t site : {map, heap, arena}) fixture.profile.sites[site].kind = SiteKind::kMmap;
  fixture.profile.mappings = {{0x10000, 0x20000, 0, map, 0, 3},
                              {0x20000, 0x30000, 0, map, 0, 0},  // reserved
                              {0x30000, 0x38000, 0, heap, 0, 3},
                              {0x40000, 0x50000, 0, arena, 0, 3 | format::kMappingAllocator}};
  Report live = fixture.Build();
  REQUIRE(live.modules.size() == 1);
  CHECK(live.modules[0].tally.live_bytes == 5000);
  CHECK(live.modules[0].tally.mapped_bytes == 0x10000);
  CHECK(live.totals.mapped_bytes == 0x18000);
  CHECK(live.sites.size() == 1);
  ReportOptions options;
  options.metric = Metric::kMapped;
  Report mapped = fixture.Build(options);
  REQUIRE(mapped.modules.size() == 2);
  CHECK(mapped.modules[0].name == "billing");
  CHECK(mapped.modules[1].name == "platform");  // what a JVM maps is not its caller's
  CHECK(mapped.modules[1].tally.mapped_bytes == 0x8000);
  CHECK(mapped.sites.size() == 2);
  CHECK(mapped.method == "every mapping, committed bytes by mapping site, first owned frame");
}

TEST_CASE("Of MAP_NORESERVE is committed what was touched, or all where nobody looked", "[rows]") {
  ReportFixture fixture(kRules);
  uint32_t map = fixture.AddSite({"billing::Map()@/opt/app"});
  fixture.profile.sites[map].kind = SiteKind::kMmap;
  constexpr uint32_t kLoose = 3 | format::kMappingNoReserve;
  fixture.profile.mappings = {{0x10000, 0x20000, 0, map, 0, kLoose},
                              {0x20000, 0x28000, 0, map, 0, 3},
                              {0x30000, 0x34000, 0, map, 0, kLoose | format::kMappingShared},
                              {0x40000, 0x50000, 0, map, 0, format::kMappingNoReserve}};  // may not be touched
  CHECK(fixture.Build().totals.mapped_bytes == 0x10000 + 0x8000 + 0x4000);
  ProcessMemory memory;
  // The kernel has made one area of two mappings, and two of one.
  memory.areas = {{.start = 0xf000, .end = 0x18000, .rss_bytes = 0x3000, .pages_known = true},
                  {.start = 0x18000, .end = 0x28000, .rss_bytes = 0x4000, .pages_known = true},
                  {.start = 0x40000, .end = 0x50000}};
  memory.resident = {{0xf000, 0x12000}, {0x19000, 0x1b000}, {0x21000, 0x23000}};
  fixture.profile.process = memory;
  CHECK(fixture.Build().totals.mapped_bytes == 0x4000 + 0x8000 + 0x4000);
}

TEST_CASE("What a created thread has freed again is its creator's, too", "[rows]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "pool@/opt/libpool.so"});
  uint32_t creation = fixture.AddSite({"pool_start@/opt/libpool.so", "billing::Start()@/opt/app"});
  fixture.profile.sites[creation].kind = SiteKind::kStack;
  fixture.profile.sites[site].first_thread = fixture.AddCreatedThread("pool-1", creation);
  fixture.AddFreed(site, 100, 10000);
  Report report = fixture.Build();
  REQUIRE(report.modules.size() == 1);
  CHECK(report.modules[0].name == "billing");
  CHECK(report.modules[0].tally.allocated_bytes == 10000);
  REQUIRE(report.sites.size() == 1);  // that a thread was created is no memory
  CHECK(report.sites[0].created_by == "billing::Start()");
}

TEST_CASE("Counts are whole numbers that add up, sites to their module and modules to the total", "[rows]") {
  ReportFixture fixture(kRules);
  for (int i = 0; i < 40; i++) {
    std::string function = (i % 3 == 0 ? "billing::F" : i % 3 == 1 ? "search::F" : "nobody::F") + std::to_string(i);
    uint32_t site = fixture.AddSite({kLibc, function + "()@/opt/app"});
    fixture.AddLive(site, 300 + 7 * i, 1000,
                    fixture.AddThread("t" + std::string(1 + i % 5, 'x')));  // 3.3, 3.26, ... blocks
  }
  Report report = fixture.Build();
  double modules = report.unattributed.tally.live_count, libraries = 0, threads = 0, teams = 0;
  for (const Row& row : report.modules) modules += row.tally.live_count;
  for (const Row& row : report.teams) teams += row.tally.live_count;
  for (const Row& row : report.libraries) libraries += row.tally.live_count;
  for (const Row& row : report.threads) threads += row.tally.live_count;
  double exact = 0;
  for (const LiveSample& sample : fixture.profile.live) exact += 1000.0 / static_cast<double>(sample.size_bytes);
  CHECK(report.totals.live_count == std::round(exact));
  CHECK(modules == report.totals.live_count);
  CHECK(teams == report.totals.live_count);
  CHECK(libraries == report.totals.live_count);
  CHECK(threads == report.totals.live_count);
  for (const Row& module : report.modules) {
    double sites = 0;
    for (const SiteRow& site : report.sites) {
      CHECK(site.tally.live_count == std::round(site.tally.live_count));
      if (site.module == module.name) sites += site.tally.live_count;
    }
    CHECK(sites == module.tally.live_count);
  }
}

TEST_CASE("Workers of one pool are one row", "[rows]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "billing::Add()@/opt/app"});
  fixture.AddLive(site, 100, 1000, fixture.AddThread("http-nio-8080-exec-1"));
  fixture.AddLive(site, 100, 1000, fixture.AddThread("http-nio-8080-exec-12"));
  fixture.AddLive(site, 100, 1000, fixture.AddThread("http-nio-9090-exec-1"));
  Report report = fixture.Build();
  REQUIRE(report.threads.size() == 2);
  CHECK(report.threads[0].name == "http-nio-8080-exec-*");
  CHECK(report.threads[0].tally.live_bytes == 2000);
}

TEST_CASE("Unattributed memory brings rules to add, the heaviest first", "[rows]") {
  ReportFixture fixture(kRules);
  fixture.AddLive(fixture.AddSite({kLibc, "a::x()@/opt/liba.so"}), 100, 1000);
  fixture.AddLive(fixture.AddSite({kLibc, "plain_c@/opt/libb.so.2"}), 100, 5000);
  Report report = fixture.Build();
  REQUIRE(report.suggestions.size() == 2);
  CHECK(report.suggestions[0].prefix == "lib:libb.so");
  CHECK(report.suggestions[0].live_bytes == 5000);
  CHECK(report.suggestions[1].prefix == "a::");
}

// A platform's cache holds entries that three modules created; one of them holds an index of its own.
TEST_CASE("A shared cache: 70, 25 and 5 by creator; 70 and 30 by holder", "[rows]") {
  ReportFixture fixture(
      "billing::,billing,payments\nsearch::,search,discovery\nauth::,auth,identity\n"
      "platform::Cache::,platform,core,container\n");
  auto add = [&](const std::vector<std::string>& frames, uint64_t bytes) {
    fixture.AddLive(fixture.AddSite(frames), bytes, bytes);
  };
  add({"platform::Cache::Put@/opt/app", "billing::Load@/opt/app"}, 40);
  add({"platform::Cache::Put@/opt/app", "search::Load@/opt/app"}, 25);
  add({"platform::Cache::Put@/opt/app", "auth::Load@/opt/app"}, 5);
  add({"billing::InvoiceIndex::Add@/opt/app"}, 30);
  Report report = fixture.Build();
  auto live = [](const std::vector<Row>& rows) {
    std::string text;
    for (const Row& row : rows) text += row.name + " " + std::to_string(row.tally.live_bytes) + "\n";
    return text;
  };
  CHECK(live(report.modules) == "billing 70\nsearch 25\nauth 5\n");
  CHECK(live(report.holders) == "platform 70\nbilling 30\n");
  REQUIRE(report.shared.size() == 1);
  CHECK(report.shared[0].holder == "platform");
  CHECK(live(report.shared[0].creators) == "billing 40\nsearch 25\nauth 5\n");
  CHECK(report.method.find("by allocation site") != std::string::npos);
  ReportOptions options;
  options.by = GroupBy::kHolder;
  CHECK(fixture.Build(options).method.find("by holder") != std::string::npos);
}

TEST_CASE("Pieces of a pool are their first requester's and marked", "[rows]") {
  ReportFixture fixture("billing::,billing,payments\nacme::Pool::,pools,core,pool\n");
  fixture.AddLive(fixture.AddSite({"acme::Pool::Get@/opt/app", "billing::Load@/opt/app"}), 16, 16);
  fixture.AddLive(fixture.AddSite({"billing::Load@/opt/app"}), 4, 4);
  Report report = fixture.Build();
  REQUIRE(report.modules.size() == 1);
  CHECK(report.modules[0].tally.live_bytes == 20);
  CHECK(report.modules[0].pooled_bytes == 16);
  CHECK(report.modules[0].via == "pools");
  REQUIRE(report.shared.size() == 1);
  CHECK(report.shared[0].pool);
}

}  // namespace
}  // namespace cadastre
