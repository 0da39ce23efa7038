// `cadastre print`: a profile as text, record by record.
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "interposer/profile_format.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/format.h"
#include "report/function_name.h"

namespace cadastre {
namespace {

struct PrintCommand {
  std::string profile;
  bool names = false;
  size_t live = SIZE_MAX;
};

double Seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

// "com.acme.Foo.bar (Foo.java)"
std::string JavaName(const Profile& profile, uint32_t string) {
  auto found = std::lower_bound(profile.java_names.begin(), profile.java_names.end(), string,
                                [](const auto& entry, uint32_t wanted) { return entry.first < wanted; });
  if (found == profile.java_names.end() || found->first != string) return absl::StrFormat("string %d", string);
  const std::pair<std::string, std::string> parts = absl::StrSplit(found->second, absl::MaxSplits('\n', 1));
  return parts.second.empty() ? parts.first : absl::StrCat(parts.first, " (", parts.second, ")");
}

// "libfoo.so+0x1234", "exact libfoo.so+0x1234", "0x7f0000001000", "java com.acme.Foo.bar:12"
std::string RawFrame(const Profile& profile, uint64_t raw) {
  uint64_t tag = format::FrameTagOf(raw);
  switch (tag) {
    case format::kFrameReturn:
    case format::kFrameExact: {
      uint64_t library = format::FrameLibraryOf(raw);
      std::string name =
          library < profile.libraries.size() ? std::string(FileName(profile.libraries[library].path)) : "";
      if (name.empty()) name = absl::StrCat("library ", library);
      return absl::StrFormat("%s%s+0x%x", tag == format::kFrameExact ? "exact " : "", name,
                             format::FrameAddressOf(raw));
    }
    case format::kFrameUnknown:
      return absl::StrFormat("0x%x", raw & format::kFramePayloadMask);
    case format::kFrameUnknownExact:
      return absl::StrFormat("exact 0x%x", raw & format::kFramePayloadMask);
    case format::kFrameJava: {
      const bool native = format::JavaKindOf(raw) == format::kJavaNativeMethod;
      return absl::StrCat("java ", JavaName(profile, format::JavaNameOf(raw)),
                          native ? " (native)" : absl::StrCat(":", format::JavaLineOf(raw)));
    }
    default:
      return absl::StrFormat("frame 0x%016x", raw);
  }
}

std::string FlagNames(uint32_t flags) {
  static constexpr std::pair<uint32_t, const char*> kFlags[] = {
      {format::kSiteTruncatedUnknownPc, "cut at an unknown pc"},
      {format::kSiteTruncatedDepth, "cut at the depth limit"},
      {format::kSiteTruncatedSmallStack, "cut: little stack left"},
      {format::kSiteTruncatedMemory, "cut at an unreadable word"},
      {format::kSiteTruncatedNested, "cut: nested capture"},
      {format::kSiteTruncatedContinuation, "cut where the virtual thread's stack goes on in the Java heap"},
      {format::kSiteSkippedNative, "native frames without unwind tables left out"}};
  std::string names;
  for (auto [flag, name] : kFlags) {
    if ((flags & flag) != 0) absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  }
  return names;
}

class ProfileText {
 public:
  ProfileText(const Profile& profile, const PrintCommand& command)
      : profile_(profile), command_(command), symbolizer_(profile, DefaultSymbols()) {}

  std::string Text() {
    Header();
    Counters();
    Libraries();
    Threads();
    Mappings();
    Sites();
    Live();
    for (const std::string& warning : profile_.warnings) Line("warning: ", warning);
    return std::move(out_);
  }

 private:
  template <typename... Parts>
  void Line(const Parts&... parts) {
    absl::StrAppend(&out_, SafeText(absl::StrCat(parts...)), "\n");
  }

  void Header() {
    static constexpr const char* kStates[] = {"starting", "recording", "paused", "stopped"};
    static constexpr const char* kReasons[] = {"", ": no space left", ": no allocator found", ": internal"};
    Line("profile ", profile_.path, " version ", profile_.version);
    Line("pid ", profile_.pid, " namespace ", profile_.pid_namespace, " start_ticks ", profile_.process_start_ticks);
    Line("exe ", profile_.exe);
    std::string words;
    for (const std::string& word : profile_.command) absl::StrAppend(&words, " ", word);
    Line("command", words);
    Line("host ", profile_.host);
    Line("options ", profile_.options);
    if (!profile_.labels.empty()) Line("labels ", absl::StrReplaceAll(profile_.labels, {{"\n", " "}}));
    Line("allocator ", profile_.allocator, " ", profile_.allocator_path,
         profile_.expect.empty() ? "" : absl::StrCat(" expected ", profile_.expect));
    Line("started ", TimeText(profile_.start_realtime_ns), " up ", Seconds(profile_.duration_ns), " s, ",
         EndText(profile_));
    Line("interval ", profile_.interval_bytes,
         profile_.interval_changed() ? absl::StrCat(" now ", profile_.current_interval_bytes) : "", " seed ",
         profile_.seed, " memory ", profile_.memory_bytes, " file ", profile_.file_bytes);
    if (profile_.jvm.walker != format::kWalkerNoJvm) {
      Line("jvm ", profile_.jvm.feature, " (", profile_.jvm.version, ") collector ", profile_.jvm.collector,
           " java frames ",
           profile_.jvm.walker == format::kWalkerActive ? "yes" : absl::StrCat("no: it lacks ", profile_.jvm.missing));
    }
    Line("state ", kStates[std::min<uint32_t>(profile_.run_state, 3)],
         profile_.run_state == 3 ? kReasons[std::min<uint32_t>(profile_.stop_reason, 3)] : "");
    if (profile_.is_snapshot) {
      Line("snapshot ", profile_.label, " at ", TimeText(profile_.snapshot_begin_realtime_ns), " window ",
           Seconds(profile_.snapshot_end_realtime_ns - profile_.snapshot_begin_realtime_ns), " s");
    }
    if (profile_.rss_bytes > 0) Line("rss ", profile_.rss_bytes);
    if (profile_.peak_rss_bytes > 0) Line("peak_rss ", profile_.peak_rss_bytes);
    Line("peak ", profile_.peak_total_bytes, " at ", Seconds(profile_.peak_ns), " s");
  }

  void Counters() {
    const Losses& losses = profile_.losses;
    Line("samples ", profile_.recorded_samples, " frees ", profile_.recorded_frees, " last at ",
         Seconds(profile_.last_sample_ns), " s");
    Line("losses dropped ", losses.dropped_samples, " (", losses.dropped_weight_bytes, " bytes) volume_dropped ",
         losses.volume_dropped, " sites_overflowed ", losses.sites_overflowed, " truncated_stacks ",
         losses.truncated_stacks, " missed_frees ", losses.missed_frees, " nested_skipped ", losses.nested_skipped,
         " strings_full ", losses.strings_full, " threads_full ", losses.threads_full, " libraries_full ",
         losses.libraries_full, " mappings_full ", losses.mappings_full, " mapping_events_lost ",
         losses.mapping_events_lost, " interval_doublings ", losses.interval_doublings, " torn_records ",
         losses.torn_records);
  }

  void Libraries() {
    for (size_t i = 1; i < profile_.libraries.size(); i++) {
      const Library& library = profile_.libraries[i];
      if (library.start == 0 && library.path.empty()) continue;
      Line("library ", i, " ", absl::StrFormat("0x%x-0x%x bias 0x%x", library.start, library.end, library.bias),
           " build_id ", library.build_id.empty() ? "-" : library.build_id, library.executable ? " executable" : "",
           library.vdso ? " vdso" : "", library.cadastre ? " cadastre" : "",
           library.unloaded_ns > 0 ? absl::StrCat(" unloaded at ", Seconds(library.unloaded_ns), " s") : "", " ",
           library.path);
    }
  }

  void Threads() {
    for (size_t i = 1; i < profile_.threads.size(); i++) {
      const Thread& thread = profile_.threads[i];
      Line("thread ", i, " tid ", thread.tid, " since ", Seconds(thread.start_ns), " s", thread.ended ? " ended" : "",
           thread.stack_high == 0 ? "" : absl::StrFormat(" stack [%x, %x)", thread.stack_low, thread.stack_high),
           SiteText(" created at", thread.creation_site), SiteText(" creator created at", thread.creator_creation_site),
           " ", thread.name);
    }
  }

  std::string SiteText(const char* what, uint32_t site) const {
    return site == kNoSite ? "" : absl::StrCat(what, " site ", profile_.sites[site].id);
  }

  void Sites() {
    static constexpr const char* kKinds[] = {"malloc", "mmap", "stack"};
    for (const Site& site : profile_.sites) {
      std::string flags = FlagNames(site.flags);
      Line("site ", site.id, " ", kKinds[static_cast<int>(site.kind)], " samples ", site.samples, " blocks ",
           absl::StrFormat("%.3f", site.allocated_count), " allocated ", site.allocated_bytes, " stderr ",
           absl::StrFormat("%.0f", Estimate{0, site.allocated_variance}.StandardError()), " at_peak ",
           site.bytes_at_peak, " own_peak ", site.own_peak_bytes, " freed ", site.frees, " by_reaper ",
           site.frees_by_reaper, flags.empty() ? "" : absl::StrCat(" [", flags, "]"));
      for (uint64_t raw : site.frames) {
        Line("  ", RawFrame(profile_, raw));
        if (!command_.names) continue;
        for (const Frame& frame : symbolizer_.Resolve(raw)) {
          Line("    = ", frame.function, frame.inlined ? " (inlined)" : "",
               frame.file.empty() ? "" : absl::StrCat(" ", frame.file, ":", frame.line));
        }
      }
    }
  }

  void Mappings() {
    static constexpr std::pair<uint32_t, const char*> kFlags[] = {
        {format::kMappingShared, " shared"},       {format::kMappingFile, " file"},
        {format::kMappingNoReserve, " noreserve"}, {format::kMappingBreak, " break"},
        {format::kMappingSegment, " segment"},     {format::kMappingAllocator, " allocator"},
    };
    for (const Mapping& mapping : profile_.mappings) {
      std::string flags;
      for (auto [flag, name] : kFlags) flags += (mapping.flags & flag) != 0 ? name : "";
      auto protection = [&](uint32_t bit, const char* letter) { return (mapping.flags & bit) != 0 ? letter : "-"; };
      Line(absl::StrFormat("mapping %x-%x ", mapping.start, mapping.end), protection(1, "r"), protection(2, "w"),
           protection(4, "x"), flags, SiteText("", mapping.site), " at ", Seconds(mapping.time_ns), " s thread ",
           mapping.thread);
    }
  }

  void Live() {
    size_t printed = 0;
    for (const LiveSample& sample : profile_.live) {
      if (printed++ >= command_.live) break;
      uint32_t site = sample.site < profile_.sites.size() ? profile_.sites[sample.site].id : 0;
      Line(absl::StrFormat("live 0x%x", sample.address), " site ", site, " size ", sample.size_bytes, " weight ",
           sample.weight_bytes, " at ", Seconds(sample.time_ns), " s thread ", sample.thread,
           sample.context == 0 ? "" : absl::StrCat(" compiling ", JavaName(profile_, sample.context)));
    }
    if (profile_.live.size() > printed) Line("live: ", profile_.live.size() - printed, " more");
  }

  const Profile& profile_;
  const PrintCommand& command_;
  Symbolizer symbolizer_;
  std::string out_;
};

int PrintProfile(const PrintCommand& command) {
  absl::StatusOr<ProfilePath> where = FindProfile(command.profile);
  if (!where.ok()) return Fail(where.status());
  absl::StatusOr<Profile> profile = ReadProfile(where->path);
  if (!profile.ok()) return Fail(profile.status());
  if (!where->note.empty()) profile->warnings.push_back(where->note);
  return Print(ProfileText(*profile, command).Text());
}

}  // namespace

void AddPrintCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<PrintCommand>();
  CLI::App* command = app.add_subcommand("print", "a profile as text, record by record");
  command->add_option("P", options->profile, "profile, PID, or one with @LABEL")->required();
  command->add_flag("--names", options->names, "resolve the frames too");
  command->add_option("--live", options->live, "live samples to print (default all)")->check(WholeNumber(0));
  command->footer("Example: cadastre print pay.cad --names | less");
  command->callback([=] { invocation->status = PrintProfile(*options); });
}

}  // namespace cadastre
