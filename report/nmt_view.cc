#include "report/nmt_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "interposer/profile_format.h"
#include "report/committed.h"
#include "report/hotspot_memory.h"
#include "report/nmt.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

constexpr char kCategory[] = "External (via interposition)";
constexpr size_t kStackFrames = 16;

struct Amount {
  uint64_t malloc_bytes = 0;
  double malloc_blocks = 0, malloc_variance = 0;
  uint64_t reserved_bytes = 0, committed_bytes = 0;
  uint64_t Committed() const { return malloc_bytes + committed_bytes; }
  void Add(const Amount& other) {
    malloc_bytes += other.malloc_bytes;
    malloc_blocks += other.malloc_blocks;
    malloc_variance += other.malloc_variance;
    reserved_bytes += other.reserved_bytes;
    committed_bytes += other.committed_bytes;
  }
};

class External {
 public:
  External(const ProcessMemory& memory, const LedgerInputs& inputs)
      : profile_(*inputs.profile), attribution_(*inputs.attribution) {
    std::vector<signed char> inside(profile_.sites.size(), -1);
    auto is_jvm = [&](uint32_t site) {
      if (inside[site] < 0) {
        const std::vector<const Frame*> frames = attribution_.FramesOf(site);
        const bool mapping = profile_.sites[site].kind == SiteKind::kMmap;
        inside[site] = (mapping ? PartOfStack(frames) != HotSpotPart::kNone : IsOsMalloc(frames)) ? 1 : 0;
      }
      return inside[site] == 1;
    };
    for (const LiveSample& sample : profile_.live) {
      if (profile_.sites[sample.site].kind != SiteKind::kMalloc || is_jvm(sample.site)) continue;
      const double weight = static_cast<double>(sample.weight_bytes), size = static_cast<double>(sample.size_bytes);
      Amount amount;
      amount.malloc_bytes = sample.weight_bytes;
      amount.malloc_blocks = size > 0 ? weight / size : 0;
      amount.malloc_variance = weight * (weight - size);
      Take(sample.site, sample.thread, amount);
    }
    for (const Mapping& mapping : profile_.mappings) {
      if (mapping.site == kNoSite || (mapping.flags & format::kMappingAllocator) != 0 || is_jvm(mapping.site)) continue;
      Amount amount;
      amount.reserved_bytes = mapping.end - mapping.start;
      amount.committed_bytes = CommittedBytes(mapping, &memory);
      Take(mapping.site, mapping.thread, amount);
    }
  }

  std::string Category() const {
    std::string out = absl::StrFormat("-%s (reserved=%d, committed=%d)\n", absl::StrFormat("%26s", kCategory),
                                      whole_.malloc_bytes + whole_.reserved_bytes, whole_.Committed());
    const std::string indent(28, ' ');
    absl::StrAppend(&out, indent, "(malloc=", whole_.malloc_bytes, " #", std::llround(whole_.malloc_blocks),
                    Error(whole_), ")\n", indent, "(mmap: reserved=", whole_.reserved_bytes,
                    ", committed=", whole_.committed_bytes, ")\n");
    for (const auto& [module, amount] : Sorted(modules_)) {
      absl::StrAppend(&out, indent, "(  ", SafeText(module), ": malloc=", amount.malloc_bytes, " #",
                      std::llround(amount.malloc_blocks), Error(amount));
      if (amount.reserved_bytes > 0)
        absl::StrAppend(&out, ", mmap: reserved=", amount.reserved_bytes, ", committed=", amount.committed_bytes);
      out += ")\n";
    }
    return out;
  }

  std::string Stacks() const {
    std::string out = absl::StrCat("Details of ", kCategory, ":\n\n");
    for (const auto& [site, amount] : Sorted(sites_)) {
      size_t shown = 0;
      for (const Frame* frame : attribution_.FramesOf(site)) {
        if (shown++ == kStackFrames) break;
        absl::StrAppend(&out, "[",
                        SafeText(frame->java ? "java" : frame->library.substr(frame->library.rfind('/') + 1)), "] ",
                        SafeText(frame->function),
                        frame->line > 0 ? absl::StrCat(" (", SafeText(frame->file), ":", frame->line, ")") : "", "\n");
      }
      const std::string indent(29, ' ');
      if (amount.malloc_bytes > 0) {
        absl::StrAppend(&out, indent, "(malloc=", amount.malloc_bytes, " tag=External #",
                        std::llround(amount.malloc_blocks), Error(amount), ")\n");
      }
      if (amount.reserved_bytes > 0) {
        absl::StrAppend(&out, indent, "(mmap: reserved=", amount.reserved_bytes, ", committed=", amount.committed_bytes,
                        " tag=External)\n");
      }
      out += "\n";
    }
    return out;
  }

 private:
  static std::string Error(const Amount& amount) {
    const auto error = static_cast<uint64_t>(std::llround(std::sqrt(amount.malloc_variance)));
    return error == 0 ? "" : absl::StrCat(" +-", error);
  }

  template <typename Key>
  static std::vector<std::pair<Key, Amount>> Sorted(const std::map<Key, Amount>& amounts) {
    std::vector<std::pair<Key, Amount>> sorted(amounts.begin(), amounts.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.Committed() > b.second.Committed(); });
    return sorted;
  }

  void Take(uint32_t site, uint32_t thread, const Amount& amount) {
    whole_.Add(amount);
    modules_[attribution_.ChargeOf(site, thread).module].Add(amount);
    sites_[site].Add(amount);
  }

  const Profile& profile_;
  Attribution& attribution_;
  Amount whole_;
  std::map<std::string, Amount> modules_;
  std::map<uint32_t, Amount> sites_;
};

}  // namespace

std::string FormatNmtView(const ProcessMemory& memory, const LedgerInputs& inputs, bool detail) {
  std::string text = memory.nmt;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  text += "\n";
  const size_t end = EndOfNmtCategories(text);
  std::string head = text.substr(0, end), tail = text.substr(end);
  while (absl::EndsWith(head, "\n\n")) head.pop_back();
  if (inputs.profile == nullptr) {
    return absl::StrCat(head, "\n-", kCategory, ": not known, the process is not recorded\n", tail);
  }
  const External external(memory, inputs);
  return absl::StrCat(head, "\n", external.Category(), detail ? tail : "", detail ? "\n" + external.Stacks() : "");
}

}  // namespace cadastre
