// Who a stack is charged to is the product: each case of PRODUCT's walk, and what it must not do.
#include "report/attribution.h"

#include "tests/unit/report/report_fixture.h"

namespace cadastre {
namespace {

constexpr char kLibc[] = "malloc@/lib/x86_64-linux-gnu/libc.so.6";
constexpr char kRules[] =
    "billing::,billing,payments\n"
    "billing::pdf::,billing.pdf,payments\n"
    "com.acme.billing.,billing.java,payments\n"
    "lib:libsearch.so,search,discovery\n"
    "wrap_,wrappers,core,transparent\n"
    "thread:worker-,workers,core\n";

TEST_CASE("The first owned frame from the leaf is charged", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "billing::pdf::Grow()@/opt/app", "f@/opt/libsearch.so.3", "main@/opt/app"});
  const Charge& charge = fixture.attribution().ChargeOf(site, 0);
  CHECK(charge.kind == ChargeKind::kOwned);
  CHECK(charge.module == "billing.pdf");
  CHECK(charge.team == "payments");
  CHECK(charge.rule == "owners.csv:3 billing::pdf::");
  CHECK(charge.owner_frame == 1);
  CHECK(charge.via == "");  // libc says nothing
}

TEST_CASE("Frames without a rule are passed on the way to an owner", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "helper@/opt/libhelper.so", "billing::Add()@/opt/app"});
  CHECK(fixture.attribution().ChargeOf(site, 0).module == "billing");
}

TEST_CASE("The wrapper nearest to the owner is what the memory went through", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "deflateInit2_@/usr/lib/libz.so.1", "java:java.util.zip.Deflater.init",
                                   "java:com.acme.billing.Pdf.compress"});
  const Charge& charge = fixture.attribution().ChargeOf(site, 0);
  CHECK(charge.module == "billing.java");
  CHECK(charge.via == "platform/jdk.zip");
}

TEST_CASE("A stack in which every frame is platform is charged to platform", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site =
      fixture.AddSite({kLibc, "deflateInit2_@/usr/lib/libz.so.1", "start_thread@/lib/x86_64-linux-gnu/libc.so.6"});
  const Charge& charge = fixture.attribution().ChargeOf(site, 0);
  CHECK(charge.kind == ChargeKind::kPlatform);
  CHECK(charge.module == "platform");
  CHECK(charge.via == "platform/zlib");
}

TEST_CASE("A transparent module is charged when nothing owned is found", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "wrap_alloc@/opt/libwrap.so"});
  CHECK(fixture.attribution().ChargeOf(site, 0).module == "wrappers");
}

TEST_CASE("An unmatched frame and no owner make it unattributed, with a rule to add", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "acme::cache::Put(int)@/opt/libcache.so.1", kLibc});
  const Charge& charge = fixture.attribution().ChargeOf(site, 0);
  CHECK(charge.kind == ChargeKind::kUnattributed);
  CHECK(charge.module == "unattributed");
  CHECK(fixture.attribution().SuggestedPrefix(site) == "acme::cache::");
  CHECK(charge.via == "");
}

TEST_CASE("What nobody owns went through the wrapper below its code, not through what runs its thread",
          "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t plain = fixture.AddSite({kLibc, "tiles_read@/opt/libtiles.so", "java:org.tiles.Tiles.read",
                                    "java:java.util.concurrent.ThreadPoolExecutor.runWorker"}),
           zipped = fixture.AddSite({kLibc, "java:java.util.zip.Deflater.init", "java:org.tiles.Tiles.read",
                                     "java:java.util.concurrent.ThreadPoolExecutor.runWorker"});
  CHECK(fixture.attribution().ChargeOf(plain, 0).via == "");
  CHECK(fixture.attribution().ChargeOf(zipped, 0).via == "platform/jdk.zip");
}

TEST_CASE("What was cut from a stack may hold the owner: platform frames alone do not make it platform's",
          "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t whole = fixture.AddSite({kLibc}), cut = fixture.AddSite({kLibc}, /*truncated=*/true),
           empty = fixture.AddSite({});
  CHECK(fixture.attribution().ChargeOf(whole, 0).kind == ChargeKind::kPlatform);
  CHECK(fixture.attribution().ChargeOf(cut, 0).kind == ChargeKind::kUnattributed);
  CHECK(fixture.attribution().ChargeOf(empty, 0).kind == ChargeKind::kUnattributed);
}

TEST_CASE("A thread rule owns what no frame does, and nothing else", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t unowned = fixture.AddSite({kLibc, "pool_run@/opt/libpool.so"}), platform = fixture.AddSite({kLibc});
  uint32_t owned = fixture.AddSite({kLibc, "billing::Add()@/opt/app"});
  uint32_t worker = fixture.AddThread("worker-7"), other = fixture.AddThread("main");
  CHECK(fixture.attribution().ChargeOf(unowned, worker).module == "workers");
  CHECK(fixture.attribution().ChargeOf(unowned, worker).via == "thread worker-*");
  CHECK(fixture.attribution().ChargeOf(platform, worker).module == "workers");
  CHECK(fixture.attribution().ChargeOf(owned, worker).module == "billing");
  CHECK(fixture.attribution().ChargeOf(unowned, other).module == "unattributed");
  CHECK(fixture.attribution().ChargeOf(unowned, 99).module == "unattributed");
}

TEST_CASE("Where nothing else owns a thread's memory, who created the thread does", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t unowned = fixture.AddSite({kLibc, "pool_run@/opt/libpool.so"}), platform = fixture.AddSite({kLibc});
  uint32_t owned = fixture.AddSite({kLibc, "billing::Add()@/opt/app"});
  uint32_t by_search = fixture.AddSite({"pool_start@/opt/libpool.so", "find@/opt/libsearch.so.3", "main@/opt/app"});
  uint32_t by_nobody = fixture.AddSite({"pool_grow@/opt/libpool.so"});
  uint32_t created = fixture.AddCreatedThread("pool-3", by_search);
  uint32_t named = fixture.AddCreatedThread("worker-1", by_search);
  uint32_t grandchild = fixture.AddCreatedThread("pool-4", by_nobody, by_search);
  uint32_t orphan = fixture.AddCreatedThread("pool-5", by_nobody, by_nobody);
  Attribution& attribution = fixture.attribution();
  const Charge& charge = attribution.ChargeOf(unowned, created);
  CHECK(charge.module == "search");
  CHECK(charge.team == "discovery");
  CHECK(charge.kind == ChargeKind::kOwned);
  CHECK(charge.via == "thread pool-*");
  CHECK(charge.created_by == "find");
  CHECK(charge.owner_frame == -1);  // none of the site's own frames
  CHECK(attribution.ChargeOf(platform, created).module == "search");
  CHECK(attribution.ChargeOf(owned, created).module == "billing");
  CHECK(attribution.ChargeOf(unowned, named).module == "workers");  // its own rule speaks first
  CHECK(attribution.ChargeOf(unowned, grandchild).module == "search");
  CHECK(attribution.ChargeOf(unowned, orphan).module == "unattributed");
  CHECK(attribution.ChargeOf(platform, orphan).module == "platform");
  CHECK(attribution.ChargeOfStack(unowned).module == "unattributed");
}

TEST_CASE("Frames of libcadastre itself are no part of the stack", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({"malloc@/opt/lib/cadastre/libcadastre.so", kLibc});
  CHECK(fixture.attribution().ChargeOf(site, 0).kind == ChargeKind::kPlatform);
  CHECK(fixture.attribution().FramesOf(site).size() == 1);
}

TEST_CASE("Without a rules file owners are guessed and say so", "[attribution]") {
  ReportFixture fixture;
  uint32_t java =
      fixture.AddSite({kLibc, "java:java.util.zip.Deflater.init", "java:com.acme.billing.pdf.Pdf.compress"});
  uint32_t native = fixture.AddSite({kLibc, "f@/opt/libsearch.so.3"});
  CHECK(fixture.attribution().ChargeOf(java, 0).module == "com.acme.billing");
  CHECK(fixture.attribution().ChargeOf(java, 0).guessed);
  CHECK(fixture.attribution().ChargeOf(native, 0).module == "libsearch.so");
  CHECK(fixture.attribution().ChargeOf(native, 0).team == "");
  CHECK(fixture.attribution().guesses());
}

TEST_CASE("The library that asked for memory is the first that is not plumbing", "[attribution]") {
  ReportFixture fixture(kRules);
  uint32_t site = fixture.AddSite({kLibc, "operator new(unsigned long)@/usr/lib/libstdc++.so.6",
                                   "inflateInit_@/usr/lib/libz.so.1", "main@/opt/app"});
  uint32_t plumbing = fixture.AddSite({kLibc});
  CHECK(fixture.attribution().LibraryOf(site) == "libz.so.1");
  CHECK(fixture.attribution().LibraryOf(plumbing) == "libc.so.6");
}

TEST_CASE("What lies in a container is charged to who created it, and the container is known", "[attribution]") {
  ReportFixture fixture(
      "billing::,billing,payments\nplatform::Cache::,platform,core,container\nacme::Pool::,pools,core,pool\n");
  uint32_t site = fixture.AddSite({kLibc, "platform::Cache::Put@/opt/app", "billing::Load@/opt/app"});
  uint32_t both =
      fixture.AddSite({"acme::Pool::Get@/opt/app", "platform::Cache::Put@/opt/app", "billing::Load@/opt/app"});
  uint32_t pool = fixture.AddSite({"acme::Pool::Get@/opt/app", "billing::Load@/opt/app"});
  uint32_t own = fixture.AddSite({kLibc, "acme::Pool::Get@/opt/app"});
  uint32_t unowned = fixture.AddSite({kLibc, "acme::Pool::Get@/opt/app", "stranger@/opt/app"});
  uint32_t below = fixture.AddSite({kLibc, "billing::Load@/opt/app", "platform::Cache::Put@/opt/app"});
  Attribution& attribution = fixture.attribution();
  CHECK(attribution.ChargeOf(site, 0).module == "billing");
  REQUIRE(attribution.ContainerOf(site).rule != nullptr);
  CHECK(attribution.ContainerOf(site).rule->module == "platform");
  CHECK_FALSE(attribution.ContainerOf(site).pooled);
  // A cache that keeps its entries in a pool holds them; they are pooled all the same.
  REQUIRE(attribution.ContainerOf(both).rule != nullptr);
  CHECK(attribution.ContainerOf(both).rule->module == "platform");
  CHECK(attribution.ContainerOf(both).pooled);
  REQUIRE(attribution.ContainerOf(pool).rule != nullptr);
  CHECK(attribution.ContainerOf(pool).rule->module == "pools");
  CHECK(attribution.ChargeOf(pool, 0).module == "billing");
  // Nobody created it: it is the container's.
  CHECK(attribution.ChargeOf(own, 0).module == "pools");
  CHECK(attribution.ChargeOf(unowned, 0).kind == ChargeKind::kUnattributed);
  // What the owner's callers keep in containers is not where this lies.
  CHECK(attribution.ContainerOf(below).rule == nullptr);
}

}  // namespace
}  // namespace cadastre
