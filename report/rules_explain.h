// Why a frame or a stack falls to the rule it falls to.
//
// Errors: none. Thread-safety: pure.
//
// Example: std::cout << ExplainFrame(rules, "os::malloc (libjvm.so)");
#ifndef CADASTRE_REPORT_RULES_EXPLAIN_H_
#define CADASTRE_REPORT_RULES_EXPLAIN_H_

#include <string>
#include <vector>

#include "symbolizer/owner_rules.h"

namespace cadastre {

// A frame (frame_text.h's spellings), "class:NAME" or "thread:NAME": the winner, then every other rule that matches and
// what it lost by. Without a winner: rules about this function in one library alone.
std::string ExplainFrame(const OwnerRules& rules, const std::string& text);

// Frames, leaf first: the rule of each, and whom the stack is charged to.
std::string ExplainStack(const OwnerRules& rules, const std::vector<std::string>& frames);

// The frames, leaf first, of a stack as it is pasted: "leaf < ... < root" as reports print it, "root;...;leaf [COUNT]",
// or one frame. "…" (left out) and the mark "* " of the owner are dropped.
std::vector<std::string> FramesOfPastedStack(const std::string& text);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_RULES_EXPLAIN_H_
