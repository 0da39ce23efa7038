// owners.csv is written by people and by their scripts: any bytes give rules or one line with a place.
#include <cstdlib>
#include <cstring>

#include "symbolizer/frame_owner.h"
#include "symbolizer/owner_rules.h"
#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() { return {}; }  // the corpus has files

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace cadastre;
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  absl::StatusOr<std::vector<Rule>> rules = ParseOwnerRules(text, "owners.csv");
  if (!rules.ok()) {
    std::string message(rules.status().message());
    if (message.compare(0, 11, "owners.csv:") != 0) abort();
    return 0;
  }
  OwnerRules owner_rules;
  for (const Rule& rule : *rules) {
    if (rule.prefix.empty() || rule.module.empty() || rule.line < 2) abort();
  }
  owner_rules.rules = *std::move(rules);
  FrameOwner owner(owner_rules);
  for (const Rule& rule : owner_rules.rules) {
    // A rule's own prefix matches it or one that came first.
    Frame frame;
    frame.resolved = true;
    if (rule.key == RuleKey::kFunction) frame.function = rule.prefix;
    if (rule.key == RuleKey::kFunction && owner.Find(frame) == nullptr) abort();
    frame.library = frame.file = rule.prefix;
    (void)owner.Find(frame);
  }
  return 0;
}
