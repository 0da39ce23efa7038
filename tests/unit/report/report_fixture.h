// A profile in memory whose frames have names, for the tests of report/: no file, no ELF, no DWARF.
//
// Example:
//   ReportFixture fixture("billing::,billing,payments\n");
//   uint32_t site = fixture.AddSite({"malloc@/lib/libc.so.6", "billing::Grow()@/opt/libbilling.so"});
//   fixture.AddLive(site, 100, 1000);
//   Report report = fixture.Build();
#ifndef CADASTRE_TESTS_UNIT_REPORT_REPORT_FIXTURE_H_
#define CADASTRE_TESTS_UNIT_REPORT_REPORT_FIXTURE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "interposer/profile_format.h"
#include "report/rows.h"
#include "tests/support/catch.h"

namespace cadastre {

class ReportFixture {
 public:
  // Rules without their header line; empty = no rules file, owners are guessed.
  explicit ReportFixture(const std::string& rules = "") {
    profile.path = "pay.cad";
    profile.exe = "/opt/pay/bin/pay";
    profile.host = "pay-7f9c";
    profile.pid = 4242;
    profile.interval_bytes = profile.current_interval_bytes = 512 * 1024;
    profile.duration_ns = 3'120'000'000'000;
    profile.start_realtime_ns = 1'767'225'600'000'000'000;
    profile.end = EndState::kRunning;
    profile.allocator = "libc.so.6";
    profile.libraries.emplace_back();
    profile.threads.emplace_back();
    if (!rules.empty()) {
      auto parsed = ParseOwnerRules("prefix,module,team,kind\n" + rules, "owners.csv");
      REQUIRE(parsed.ok());
      owner_rules.rules = *parsed;
      owner_rules.path = "owners.csv";
    }
    const std::vector<Rule>& built_in = BuiltInRules();
    owner_rules.rules.insert(owner_rules.rules.end(), built_in.begin(), built_in.end());
  }

  // "function@library", "function" without one, "java:com.acme.Foo.bar". Leaf first.
  uint32_t AddSite(const std::vector<std::string>& frames, bool truncated = false) {
    Site site;
    site.id = static_cast<uint32_t>(profile.sites.size()) + 2;
    site.truncated = truncated;
    for (const std::string& text : frames) {
      uint64_t& raw = known_[text];
      if (raw == 0) {
        Frame frame;
        frame.java = text.rfind("java:", 0) == 0;
        std::string name = frame.java ? text.substr(5) : text;
        size_t at = name.rfind('@');
        frame.function = name.substr(0, at);
        if (at != std::string::npos) frame.library = name.substr(at + 1);
        frame.resolved = true;
        raw = format::MakeLibraryFrame(format::kFrameReturn, LibraryIndex(frame.library), 0x1000 + 16 * known_.size());
        profile.stored_symbols.push_back({raw, {frame}});
      }
      site.frames.push_back(raw);
    }
    profile.sites.push_back(site);
    return static_cast<uint32_t>(profile.sites.size() - 1);
  }

  uint32_t AddThread(const std::string& name) {
    Thread thread;
    thread.name = name;
    profile.threads.push_back(thread);
    return static_cast<uint32_t>(profile.threads.size() - 1);
  }

  // `creation`: sites that created it, and that had created its creator.
  uint32_t AddCreatedThread(const std::string& name, uint32_t creation, uint32_t creator_creation = kNoSite) {
    const uint32_t index = AddThread(name);
    profile.threads[index].creation_site = creation;
    profile.threads[index].creator_creation_site = creator_creation;
    return index;
  }

  void AddLive(uint32_t site, uint64_t size, uint64_t weight, uint32_t thread = 0, uint64_t time_ns = 0) {
    profile.live.push_back({site, thread, 0x7f0000000000 + 4096 * profile.live.size(), size, weight, time_ns});
    AddFreed(site, size, weight);
    profile.sites[site].bytes_at_peak += weight;
  }

  void AddFreed(uint32_t site, uint64_t size, uint64_t weight) {
    Site& record = profile.sites[site];
    record.samples++;
    record.allocated_bytes += weight;
    record.allocated_count += size > 0 ? static_cast<double>(weight) / static_cast<double>(size) : 1;
    record.allocated_variance += static_cast<double>(weight) * static_cast<double>(weight - size);
    profile.recorded_samples++;
  }

  Attribution& attribution() {
    if (attribution_ == nullptr) {
      symbolizer_ = std::make_unique<Symbolizer>(profile, SymbolizerOptions{});
      attribution_ = std::make_unique<Attribution>(profile, owner_rules, symbolizer_.get());
    }
    return *attribution_;
  }

  Report Build(const ReportOptions& options = {}) {
    Attribution& owners = attribution();
    return BuildReport(profile, owner_rules, &owners, symbolizer_.get(), options);
  }

  Profile profile;
  OwnerRules owner_rules;

 private:
  uint64_t LibraryIndex(const std::string& path) {
    for (size_t i = 1; i < profile.libraries.size(); i++) {
      if (profile.libraries[i].path == path) return i;
    }
    Library library;
    library.path = path;
    library.cadastre = path.find("libcadastre.so") != std::string::npos;
    profile.libraries.push_back(library);
    return profile.libraries.size() - 1;
  }

  std::map<std::string, uint64_t> known_;
  std::unique_ptr<Symbolizer> symbolizer_;
  std::unique_ptr<Attribution> attribution_;
};

}  // namespace cadastre

#endif  // CADASTRE_TESTS_UNIT_REPORT_REPORT_FIXTURE_H_
