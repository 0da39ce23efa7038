// Remembers, per pc, the unwind rule and the finished frame word, so that a warm frame costs one cache line and no
// look-up. A WordCache (word_cache.h: growth, thread- and signal-safety, errors) keyed by pc.
//
// Example:
//   CachedRule cached;
//   if (!RuleCacheFind(pc, exact, &cached)) { cached = ...; RuleCacheInsert(pc, exact, cached); }
#ifndef CADASTRE_INTERPOSER_RULE_CACHE_H_
#define CADASTRE_INTERPOSER_RULE_CACHE_H_

#include <stdint.h>

#include "interposer/unwind_rules.h"
#include "interposer/word_cache.h"

namespace cadastre {

// Three words, as they lie in the cache; unpacked where they are used, so that a walk keeps them in processor
// registers.
struct CachedRule {
  uint64_t rule = 0;   // [31:0] cfa_offset [47:32] rbp_offset [51:48] kind [55:52] saved_rbp [63:56] cfa_addend
  uint64_t frame = 0;  // frame word (format::FrameTag)
  uint64_t owner = 0;  // [31:0] library [32] permanent [33] own code

  int64_t cfa_offset() const { return static_cast<int32_t>(rule); }
  int64_t rbp_offset() const { return static_cast<int16_t>(rule >> 32); }
  UnwindKind kind() const { return static_cast<UnwindKind>((rule >> 48) & 15); }
  SavedRbp saved_rbp() const { return static_cast<SavedRbp>((rule >> 52) & 15); }
  uint64_t cfa_addend() const { return rule >> 56; }
  uint32_t library() const { return static_cast<uint32_t>(owner); }  // index
  bool is_permanent() const { return (owner >> 32) & 1; }            // that library cannot go away
  bool is_own_code() const { return (owner >> 33) & 1; }             // not recorded: libcadastre.so, generated code
  bool is_plainly_permanent() const { return owner >> 32 == 1; }     // permanent, and not our own code
  // The two rules that nearly all code has, rbp unchanged or saved at an offset from CFA: bits 48 to 55 at once.
  bool is_usual_from_rsp() const { return (rule >> 48 & 0xef) == kUnwindFromRsp; }
  bool is_usual_from_rbp() const { return (rule >> 48 & 0xef) == kUnwindFromRbp; }

  void SetRule(const UnwindRule& from) {
    rule = static_cast<uint32_t>(from.cfa_offset) |
           static_cast<uint64_t>(static_cast<uint16_t>(from.rbp_offset)) << 32 |
           static_cast<uint64_t>(from.kind) << 48 | static_cast<uint64_t>(from.saved_rbp) << 52 |
           static_cast<uint64_t>(from.cfa_addend) << 56;
  }
  // Java code: its frames are named by jvm/, not by a frame word of ours.
  void SetGeneratedJava() {
    rule = static_cast<uint64_t>(kUnwindJava) << 48;
    SetOwner(0, false, true);
  }
  void SetOwner(uint32_t library, bool permanent, bool own_code) {
    owner = library | static_cast<uint64_t>(permanent) << 32 | static_cast<uint64_t>(own_code) << 33;
  }
};

extern WordCache g_rule_cache;

inline uint64_t RuleCacheKey(uint64_t pc, bool exact) { return (pc << 1) | (exact ? 1 : 0); }

__attribute__((always_inline)) inline bool RuleCacheFind(uint64_t pc, bool exact, CachedRule* cached) {
  CachedWords words;
  if (!g_rule_cache.Find(RuleCacheKey(pc, exact), &words)) return false;
  cached->rule = words.first;
  cached->frame = words.second;
  cached->owner = words.third;
  return true;
}

// The same cache for a walk of many frames, looked at in the first place only.
class RuleCacheView {
 public:
  RuleCacheView() : view_(g_rule_cache) {}
  bool is_there() const { return view_.is_there(); }

  // A return address that lies in its first place. False: RuleCacheFind may know more.
  __attribute__((always_inline)) bool FindFirst(uint64_t pc, CachedRule* cached) const {
    CachedWords words;
    if (__builtin_expect(!view_.FindFirst(RuleCacheKey(pc, false), &words), 0)) return false;
    cached->rule = words.first;
    cached->frame = words.second;
    cached->owner = words.third;
    return true;
  }

 private:
  WordCache::View view_;
};

inline void RuleCacheInsert(uint64_t pc, bool exact, const CachedRule& cached) {
  g_rule_cache.Insert(RuleCacheKey(pc, exact), {cached.rule, cached.frame, cached.owner});
}

// Maps the first table; without it the first insert does it.
inline void RuleCacheInit() { g_rule_cache.Init(); }

// Entries in use and room for, for tests and doctor.
struct RuleCacheUse {
  uint64_t entries, capacity;
};
inline RuleCacheUse RuleCacheCount() { return {g_rule_cache.entries(), g_rule_cache.capacity()}; }

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_RULE_CACHE_H_
