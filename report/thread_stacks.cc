#include "report/thread_stacks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace cadastre {
namespace {

constexpr size_t kKernelNameBytes = 15;

bool IsMainStack(const ProcessMemory& memory, const KnownRange& range) {
  return std::any_of(memory.areas.begin(), memory.areas.end(), [&](const MemoryArea& area) {
    return area.name == "[stack]" && area.start == range.start && area.end == range.end;
  });
}

void Measure(const ProcessMemory& memory, const std::vector<LedgerPiece>& pieces, ThreadStack* stack) {
  double resident = 0, huge = 0;
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), stack->start,
                                [](uint64_t at, const LedgerPiece& other) { return at < other.end; });
  for (; piece != pieces.end() && piece->start < stack->end; ++piece) {
    if (piece->use.kind != LedgerKind::kThreadStacks) continue;
    const double part = ResidentWithin(memory, *piece, stack->start, stack->end);
    resident += part;
    if (piece->resident_bytes > 0)
      huge += static_cast<double>(piece->huge_bytes) * part / static_cast<double>(piece->resident_bytes);
  }
  stack->resident_bytes = static_cast<uint64_t>(std::llround(resident));
  stack->huge_bytes = static_cast<uint64_t>(std::llround(huge));
}

}  // namespace

std::vector<StackRange> StackRanges(const ProcessMemory& memory, const Profile* profile) {
  std::vector<StackRange> ranges;
  for (const KnownRange& range : memory.known) {
    // The area around a stack pointer may hold more than the stack: where the profile has bounds it is not asked.
    if (range.use == KnownUse::kThreadStack && (profile == nullptr || IsMainStack(memory, range)))
      ranges.push_back({range.start, range.end, range.tid, 0, false});
  }
  if (profile == nullptr) return ranges;
  std::set<uint32_t> tids;
  for (const LiveThread& thread : memory.threads) tids.insert(thread.tid);
  for (uint32_t i = 1; i < profile->threads.size(); i++) {
    const Thread& thread = profile->threads[i];
    if (thread.stack_high == 0 || thread.tid == 0) continue;
    ranges.push_back({thread.stack_low, thread.stack_high, thread.tid, i, thread.ended || !tids.contains(thread.tid)});
  }
  return ranges;
}

LedgerUse StackUse(const StackRange& range, const ProcessMemory& memory, const LedgerInputs& inputs) {
  LedgerUse use = {range.ended ? LedgerKind::kEndedStacks : LedgerKind::kThreadStacks};
  if (range.thread != 0 && inputs.profile->threads[range.thread].creation_site != kNoSite) {
    const Charge& charge =
        inputs.attribution->ChargeOf(inputs.profile->threads[range.thread].creation_site, range.thread);
    use.owner = charge.module;
    use.team = charge.team;
    use.guessed = charge.guessed;
    return use;
  }
  auto named = std::find_if(memory.threads.begin(), memory.threads.end(),
                            [&](const LiveThread& thread) { return thread.tid == range.tid; });
  if (inputs.Rules() == nullptr || named == memory.threads.end()) return use;
  const Rule* rule = inputs.Rules()->FindThread(named->name);
  if (rule == nullptr || IsTransparentInStacks(*rule)) return use;
  use.owner = rule->module;
  use.team = rule->team;
  return use;
}

std::vector<ThreadStack> ThreadStacks(const ProcessMemory& memory, const std::vector<LedgerPiece>& pieces,
                                      const LedgerInputs& inputs) {
  std::map<uint32_t, StackRange> range_of;
  std::map<uint64_t, int> threads_in;  // area that was found around a stack pointer → how many
  for (const StackRange& range : StackRanges(memory, inputs.profile)) {
    if (range.ended) continue;
    range_of[range.tid] = range;
    if (range.thread == 0) threads_in[range.start]++;
  }
  // Stacks without guards between them: whose is what of the area cannot be told.
  std::erase_if(range_of,
                [&](const auto& entry) { return entry.second.thread == 0 && threads_in[entry.second.start] > 1; });
  std::vector<ThreadStack> stacks;
  for (const LiveThread& live : memory.threads) {
    ThreadStack stack;
    stack.tid = live.tid;
    stack.name = live.name;
    if (auto range = range_of.find(live.tid); range != range_of.end()) {
      stack.start = range->second.start;
      stack.end = range->second.end;
      Measure(memory, pieces, &stack);
      const LedgerUse use = StackUse(range->second, memory, inputs);
      stack.owner = use.owner;
      stack.team = use.team;
      stack.guessed = use.guessed;
      if (const uint32_t index = range->second.thread; index != 0) {
        const Thread& thread = inputs.profile->threads[index];
        // The kernel's is never behind; the profile has more only where that one was cut, or is a JVM's "java".
        if (thread.name.size() > kKernelNameBytes || thread.name == "main") stack.name = thread.name;
        if (thread.creation_site != kNoSite) {
          const Charge& charge = inputs.attribution->ChargeOfStack(thread.creation_site);
          stack.created_by = inputs.attribution->FramesOf(thread.creation_site);
          stack.owner_frame = charge.owner_frame;
          stack.telling_frame = charge.telling_frame;
        }
      }
    }
    stacks.push_back(std::move(stack));
  }
  std::stable_sort(stacks.begin(), stacks.end(),
                   [](const ThreadStack& a, const ThreadStack& b) { return a.resident_bytes > b.resident_bytes; });
  return stacks;
}

}  // namespace cadastre
