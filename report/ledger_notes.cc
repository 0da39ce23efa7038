// What the ledger says besides its rows: how they compare with what others count, what they suggest, and all of it in
// one line.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "report/estimate.h"
#include "report/hotspot_memory.h"
#include "report/ledger.h"
#include "report/nmt.h"
#include "report/site_identity.h"

namespace cadastre {
namespace {

// Below these nobody would act.
constexpr int64_t kNotableBytes = 32 << 20;
constexpr int64_t kNotableStackBytes = 4 << 20;

std::string Bytes(int64_t bytes) {
  return absl::StrCat(bytes < 0 ? "-" : "", FormatBytes(std::fabs(static_cast<double>(bytes))));
}

constexpr LedgerKind kHotSpotKinds[] = {LedgerKind::kJavaHeap,    LedgerKind::kMetaspace, LedgerKind::kClassSpace,
                                        LedgerKind::kCodeCache,   LedgerKind::kGc,        LedgerKind::kCds,
                                        LedgerKind::kOtherHotSpot};

int64_t ResidentOf(const Ledger& ledger, LedgerKind kind) { return ledger.Sum(kind).resident_bytes; }

// What HotSpot itself has asked malloc for, by our records: with NMT's headers, which it asks for too.
struct OsMalloc {
  double bytes = 0, blocks = 0, variance = 0;
  double bytes_before_nmt = 0;  // not in the others
};

OsMalloc LiveThroughOsMalloc(const LedgerInputs& inputs) {
  enum { kNotKnown, kOther, kCounted, kBefore };
  std::vector<unsigned char> kinds(inputs.profile->sites.size(), kNotKnown);
  OsMalloc sum;
  for (const LiveSample& sample : inputs.profile->live) {
    if (inputs.profile->sites[sample.site].kind != SiteKind::kMalloc) continue;
    unsigned char& kind = kinds[sample.site];
    if (kind == kNotKnown) {
      const std::vector<const Frame*> frames = inputs.attribution->FramesOf(sample.site);
      kind = !IsOsMalloc(frames) ? kOther : IsBeforeNmt(frames) ? kBefore : kCounted;
    }
    if (kind == kBefore) sum.bytes_before_nmt += static_cast<double>(sample.weight_bytes);
    if (kind != kCounted) continue;
    const double weight = static_cast<double>(sample.weight_bytes), size = static_cast<double>(sample.size_bytes);
    sum.bytes += weight;
    sum.blocks += size > 0 ? weight / size : 0;
    sum.variance += weight * (weight - size);
  }
  return sum;
}

// How long after NMT's report the records were read.
std::string Apart(int64_t apart_ns) {
  if (apart_ns == -1) return "";
  return absl::StrFormat("; read %.0f ms %s NMT", std::fabs(static_cast<double>(apart_ns)) / 1e6,
                         apart_ns > 0 ? "after" : "before");
}

void CheckNmt(const ProcessMemory& memory, const LedgerInputs& inputs, Ledger* ledger) {
  if (memory.nmt.empty()) return;
  absl::StatusOr<NmtReport> nmt = ParseNmt(memory.nmt);
  if (!nmt.ok()) return;
  int64_t resident = ResidentOf(*ledger, LedgerKind::kThreadStacks);
  for (LedgerKind kind : kHotSpotKinds) resident += ResidentOf(*ledger, kind);
  LedgerCheck committed;
  committed.name = "NMT committed";
  committed.ledger_bytes = resident;
  committed.other_bytes = static_cast<int64_t>(nmt->committed_bytes);
  committed.text = absl::StrCat("NMT committed ", Bytes(committed.other_bytes), ", of it malloc ",
                                Bytes(static_cast<int64_t>(nmt->MallocBytes())),
                                "; the HotSpot and stack rows above, resident: ", Bytes(resident),
                                " (committed is an upper bound of resident, and leaves out what is not HotSpot's)");
  ledger->checks.push_back(committed);
  if (inputs.profile == nullptr) return;
  const OsMalloc ours = LiveThroughOsMalloc(inputs);
  LedgerCheck check;
  check.name = "NMT malloc";
  check.ledger_bytes = std::llround(ours.bytes - static_cast<double>(kNmtBytesPerBlock) * ours.blocks);
  check.other_bytes = static_cast<int64_t>(nmt->MallocBytes());
  const double percent = check.other_bytes == 0 ? 0
                                                : 100.0 * static_cast<double>(check.ledger_bytes - check.other_bytes) /
                                                      static_cast<double>(check.other_bytes);
  // JDK 24 and later hold a buffer of this size while they answer jcmd, so it is in their figure and not in our
  // records.
  constexpr int64_t kAnswerBytes = 1 << 20;
  if (std::abs(check.other_bytes - check.ledger_bytes - kAnswerBytes) <= check.other_bytes / 100)
    check.explained_bytes = kAnswerBytes;
  check.text = absl::StrCat(
      "NMT malloc ", Bytes(check.other_bytes), "; live through HotSpot's os::malloc here, less ", kNmtBytesPerBlock,
      " bytes a block: ",
      FormatBytes(static_cast<double>(std::max<int64_t>(check.ledger_bytes, 0)), std::sqrt(ours.variance)),
      absl::StrFormat(" (%+.1f %%); part of malloc live, never added to it", percent), Apart(memory.nmt_apart_ns),
      ours.bytes_before_nmt > 0
          ? absl::StrCat("; ", FormatBytes(ours.bytes_before_nmt), " are older than NMT and in neither")
          : "",
      check.explained_bytes != 0 ? "; 1 MiB of the difference is the JVM's buffer for its answer, gone again" : "");
  ledger->checks.push_back(check);
}

// ZGC up to JDK 17 maps its heap three times, and Rss counts a page in each mapping that has touched it. Pss divides by
// the number of mappings, so its sum has each page once.
void CheckHeapViews(const ProcessMemory& memory, const std::vector<LedgerPiece>& pieces, Ledger* ledger) {
  double once = 0;
  for (const LedgerPiece& piece : pieces) {
    const MemoryArea& area = memory.areas[piece.area];
    if (piece.use.kind == LedgerKind::kJavaHeap && area.rss_bytes > 0)
      once += static_cast<double>(area.pss_bytes) * static_cast<double>(piece.resident_bytes) /
              static_cast<double>(area.rss_bytes);
  }
  LedgerCheck check;
  check.name = "Java heap once";
  check.ledger_bytes = ResidentOf(*ledger, LedgerKind::kJavaHeap);
  check.other_bytes = std::llround(once);
  check.explained_bytes = check.other_bytes - check.ledger_bytes;
  if (once <= 0 || check.other_bytes > check.ledger_bytes * 9 / 10) return;
  check.text = absl::StrCat("the Java heap's ", Bytes(check.ledger_bytes), " are ", Bytes(check.other_bytes),
                            " of memory (Pss): the collector maps it several times, and Rss counts each");
  ledger->checks.push_back(check);
}

bool ServedByGlibc(const LedgerInputs& inputs) {
  return inputs.profile != nullptr && absl::StartsWith(inputs.profile->allocator, "libc.so");
}

void AdviseOnArenas(const ProcessMemory& memory, const LedgerInputs& inputs, bool jvm, Ledger* ledger) {
  if (!ServedByGlibc(inputs)) return;
  // What nobody recorded looks like what the allocator keeps.
  if (inputs.profile->pauses.now || inputs.profile->pauses.finished > 0) return;
  const LedgerRow retention = ledger->Sum(LedgerKind::kRetention);
  const int64_t live = ResidentOf(*ledger, LedgerKind::kLiveMalloc);
  // Twice the error, so that it is not noise that somebody acts on.
  const int64_t sure = retention.resident_bytes - static_cast<int64_t>(2 * retention.StandardError());
  if (sure < kNotableBytes || sure < live / 2) return;
  const size_t arenas =
      1 + static_cast<size_t>(std::count_if(memory.known.begin(), memory.known.end(), [](const KnownRange& range) {
        return range.use == KnownUse::kAllocator && range.start % kArenaHeapBytes == 0;
      }));
  ledger->advice.push_back(absl::StrCat(
      "glibc keeps ", Bytes(retention.resident_bytes), " resident beyond ", Bytes(live), " that is live, in ", arenas,
      " heaps: MALLOC_ARENA_MAX=2 bounds them, ",
      jvm ? absl::StrCat("jcmd ", ledger->pid, " System.trim_native_heap") : "malloc_trim(0)", " gives them back"));
}

void AdviseOnHugeStacks(const ProcessMemory& memory, const std::vector<LedgerPiece>& pieces, Ledger* ledger) {
  int64_t huge = 0;
  for (const LedgerPiece& piece : pieces) {
    if (piece.use.kind == LedgerKind::kThreadStacks) huge += static_cast<int64_t>(piece.huge_bytes);
  }
  const int64_t resident = ResidentOf(*ledger, LedgerKind::kThreadStacks);
  if (huge < kNotableStackBytes || huge < resident / 4) return;
  // glibc 2.38 and later can keep them out of its stacks; what is set for the whole machine takes them from all else
  // too.
  ledger->advice.push_back(absl::StrCat(
      Bytes(huge), " of the ", Bytes(resident), " resident in ", memory.threads.size(),
      " threads' stacks are transparent huge pages, 2 MiB where a few pages were touched: "
      "GLIBC_TUNABLES=glibc.pthread.stack_hugetlb=0 (glibc 2.38) for this program, or transparent_hugepage/enabled "
      "set to madvise for the machine"));
}

// Without records and without NMT's detail the JVM's own tables are among what nobody is known to have mapped.
void AdviseOnUnnamedJvmMappings(const ProcessMemory& memory, bool jvm, Ledger* ledger) {
  const int64_t anonymous = ResidentOf(*ledger, LedgerKind::kAnonymous);
  if (!jvm || ledger->recorded || memory.nmt_level == "detail" || anonymous < kNotableBytes / 8) return;
  ledger->advice.push_back(absl::StrCat(
      "the collector's bitmaps and queues, except the card table, are among the ", Bytes(anonymous),
      " of anonymous mappings: -XX:NativeMemoryTracking=detail, or a start under `cadastre run`, tells them apart"));
}

void AdviseOnJavaHeap(Ledger* ledger) {
  const LedgerRow heap = ledger->Sum(LedgerKind::kJavaHeap);
  const int64_t untouched = heap.committed_bytes - heap.resident_bytes;
  if (untouched < 2 * kNotableBytes || untouched < heap.committed_bytes / 4) return;
  ledger->advice.push_back(absl::StrCat("the Java heap is committed to ", Bytes(heap.committed_bytes), " and ",
                                        Bytes(heap.resident_bytes), " of it is resident: RSS may still grow by ",
                                        Bytes(untouched), " without any new memory (-Xms, -Xmx)"));
}

void AdviseOnDirectBuffers(const LedgerInputs& inputs, Ledger* ledger) {
  if (inputs.profile == nullptr) return;
  std::vector<signed char> cached(inputs.profile->sites.size(), -1);
  int64_t bytes = 0;
  double variance = 0;
  for (const LiveSample& sample : inputs.profile->live) {
    if (cached[sample.site] < 0) {
      cached[sample.site] = 0;
      for (const Frame* frame : inputs.attribution->FramesOf(sample.site)) {
        if (frame->java && absl::StartsWith(frame->function, "sun.nio.ch.Util.getTemporaryDirectBuffer"))
          cached[sample.site] = 1;
      }
    }
    if (cached[sample.site] == 0) continue;
    const double weight = static_cast<double>(sample.weight_bytes);
    bytes += static_cast<int64_t>(sample.weight_bytes);
    variance += weight * (weight - static_cast<double>(sample.size_bytes));
  }
  if (static_cast<double>(bytes) - 2 * std::sqrt(variance) < static_cast<double>(kNotableBytes)) return;
  ledger->advice.push_back(absl::StrCat(Bytes(bytes),
                                        " are direct buffers that java.nio keeps for each thread that did I/O from a "
                                        "heap buffer: -Djdk.nio.maxCachedBufferSize=262144 bounds them"));
}

// What the blocks of one owner, or of one of its sites, tell.
struct Reaped {
  double bytes = 0, variance = 0;  // live
  uint64_t frees = 0, by_reaper = 0;
  void Add(const Reaped& other) {
    bytes += other.bytes;
    variance += other.variance;
    frees += other.frees;
    by_reaper += other.by_reaper;
  }
};

// By module and SiteIdentity: the stack as far as its owner. What called that may differ between what was freed and
// what lives.
using ReapedSites = std::map<std::pair<std::string, std::string>, Reaped>;

ReapedSites ReapedBySite(const LedgerInputs& inputs) {
  ReapedSites reaped;
  SiteIdentities identities_of(inputs.attribution);
  std::vector<std::string> identities(inputs.profile->sites.size());
  auto add = [&](uint32_t site, uint32_t thread, const Reaped& part) {
    const Charge& charge = inputs.attribution->ChargeOf(site, thread);
    std::string& identity = identities[site];
    if (identity.empty()) identity = identities_of.Of(site, charge.owner_frame);
    reaped[{charge.module, identity}].Add(part);
  };
  const std::vector<Site>& sites = inputs.profile->sites;
  bool any = false;
  for (uint32_t i = 0; i < sites.size(); i++) {
    any |= sites[i].frees_by_reaper > 0;
    if (sites[i].kind == SiteKind::kMalloc && sites[i].frees > 0)
      add(i, sites[i].first_thread, {0, 0, sites[i].frees, sites[i].frees_by_reaper});
  }
  if (!any) return {};
  for (const LiveSample& sample : inputs.profile->live) {
    if (sites[sample.site].kind != SiteKind::kMalloc) continue;
    const double weight = static_cast<double>(sample.weight_bytes);
    add(sample.site, sample.thread, {weight, weight * (weight - static_cast<double>(sample.size_bytes)), 0, 0});
  }
  return reaped;
}

// Live memory of owners whose blocks, as far as freed ones were seen, the collector's threads free.
void AdviseOnReapedBlocks(const LedgerInputs& inputs, Ledger* ledger) {
  constexpr uint64_t kFewFrees = 10;
  if (inputs.profile == nullptr) return;
  std::map<std::string, Reaped> owners;
  for (const auto& [site, part] : ReapedBySite(inputs)) {
    // One in twenty may be somebody who waits for memory and helps: java.nio.Bits.reserveMemory does.
    if (part.by_reaper > 0 && 20 * part.by_reaper >= 19 * part.frees) owners[site.first].Add(part);
  }
  for (const auto& [module, owner] : owners) {
    const double sure = owner.bytes - 2 * std::sqrt(owner.variance);
    if (owner.frees < kFewFrees || sure < static_cast<double>(kNotableBytes)) continue;
    ledger->advice.push_back(
        absl::StrCat(Bytes(std::llround(owner.bytes)), " of ", module, " wait for the garbage collector: of ",
                     owner.frees, " sampled blocks that the same code has freed, Finalizer and Cleaner threads freed ",
                     owner.by_reaper, ": call close() or end() where the work is done"));
  }
}

}  // namespace

void AddLedgerChecks(const ProcessMemory& memory, const LedgerInputs& inputs, const std::vector<LedgerPiece>& pieces,
                     Ledger* ledger) {
  if (memory.status_rss_bytes > 0) {
    LedgerCheck top;
    top.name = "top RES";
    top.ledger_bytes = static_cast<int64_t>(ledger->rss_bytes);
    top.other_bytes = static_cast<int64_t>(memory.status_rss_bytes);
    top.text = absl::StrCat("top RES ", Bytes(top.other_bytes), ", read just after; the sum of the rows is ",
                            Bytes(top.ledger_bytes));
    ledger->checks.push_back(top);
  }
  const CgroupMemory& cgroup = memory.cgroup;
  if (cgroup.current_bytes > 0) {
    LedgerCheck set;
    set.name = "cgroup working set";
    set.ledger_bytes = static_cast<int64_t>(ledger->rss_bytes);
    set.other_bytes =
        static_cast<int64_t>(cgroup.current_bytes - std::min(cgroup.current_bytes, cgroup.inactive_file_bytes));
    set.text = absl::StrCat(
        "cgroup working set ", Bytes(set.other_bytes),
        cgroup.limit_bytes > 0 ? absl::StrCat(" of ", Bytes(static_cast<int64_t>(cgroup.limit_bytes))) : "",
        " = usage ", Bytes(static_cast<int64_t>(cgroup.current_bytes)), " - inactive files ",
        Bytes(static_cast<int64_t>(cgroup.inactive_file_bytes)),
        ": all processes in it, their page cache and kernel memory (page tables here: ",
        Bytes(static_cast<int64_t>(memory.page_table_bytes)), ")");
    ledger->checks.push_back(set);
  }
  CheckHeapViews(memory, pieces, ledger);
  CheckNmt(memory, inputs, ledger);
}

void AddLedgerAdvice(const ProcessMemory& memory, const LedgerInputs& inputs, const std::vector<LedgerPiece>& pieces,
                     Ledger* ledger) {
  const bool jvm = std::any_of(memory.areas.begin(), memory.areas.end(),
                               [](const MemoryArea& area) { return absl::EndsWith(area.name, "/libjvm.so"); });
  AdviseOnArenas(memory, inputs, jvm, ledger);
  AdviseOnHugeStacks(memory, pieces, ledger);
  AdviseOnJavaHeap(ledger);
  AdviseOnUnnamedJvmMappings(memory, jvm, ledger);
  AdviseOnDirectBuffers(inputs, ledger);
  AdviseOnReapedBlocks(inputs, ledger);
}

std::string AllocatorLine(const AllocatorState& state) {
  if (state.name.empty()) return "";
  auto bytes = [](uint64_t value) { return Bytes(static_cast<int64_t>(value)); };
  return absl::StrCat(
      state.name, " itself, read from outside at ",
      absl::FormatTime("%H:%M:%S UTC", absl::FromUnixNanos(static_cast<int64_t>(state.taken_realtime_ns)),
                       absl::UTCTimeZone()),
      ": ", state.arenas, state.arenas == 1 ? " arena has " : " arenas have ", bytes(state.system_bytes),
      " from the kernel, of it free ", state.whole ? "" : "at least ", bytes(state.free_bytes + state.top_bytes), ": ",
      bytes(state.free_bytes), " in ", FormatCount(static_cast<double>(state.free_chunks)), " chunks between blocks, ",
      bytes(state.top_bytes), " at the ends");
}

std::string BelowZeroLine(const Ledger& ledger) {
  const LedgerRow retention = ledger.Sum(LedgerKind::kRetention);
  if (retention.resident_bytes >= 0) return "";
  const double below = -static_cast<double>(retention.resident_bytes), error = retention.StandardError();
  return absl::StrCat("allocator retention is ", Bytes(retention.resident_bytes), " by the samples, ",
                      below <= 2 * error ? "nothing within its error" : "below nothing: memory moved while it was read",
                      "; with that the rows add up");
}

std::string LedgerSummary(const Ledger& ledger) {
  const double rss = static_cast<double>(ledger.rss_bytes);
  const double unit = rss >= kGiB ? kGiB : rss >= kMiB ? kMiB : kKiB;
  const int decimals = unit == kKiB ? 0 : rss / unit < 10 ? 2 : rss / unit < 100 ? 1 : 0;
  auto amount = [&](double bytes) {
    const std::string text = absl::StrFormat("%.*f", decimals, bytes / unit);
    return text == absl::StrFormat("-%.*f", decimals, 0.0) ? text.substr(1) : text;
  };
  std::vector<std::string> parts;
  double named = 0;
  auto add = [&](const char* name, const LedgerRow& row) {
    if (row.resident_bytes == 0 && !row.estimate) return;
    named += static_cast<double>(row.resident_bytes);
    const std::string error = amount(row.StandardError());
    // An estimate below zero is one of nothing, within its error.
    parts.push_back(absl::StrCat(name, " ", amount(static_cast<double>(std::max<int64_t>(row.resident_bytes, 0))),
                                 error == amount(0) ? "" : absl::StrCat(" ±", error)));
  };
  add("Java heap", ledger.Sum(LedgerKind::kJavaHeap));
  add("native live", ledger.Sum(LedgerKind::kLiveMalloc));
  add("retention", ledger.Sum(LedgerKind::kRetention));
  add("allocator", ledger.Sum(LedgerKind::kAllocator));
  add("stacks", ledger.Sum(LedgerKind::kThreadStacks));
  parts.push_back(absl::StrCat("other ", amount(rss - named)));
  const std::string clock = absl::FormatTime(
      "%H:%M UTC", absl::FromUnixNanos(static_cast<int64_t>(ledger.taken_realtime_ns)), absl::UTCTimeZone());
  return absl::StrCat("RSS ", FormatBytes(rss), " at ", clock, ": ", absl::StrJoin(parts, " · "));
}

}  // namespace cadastre
