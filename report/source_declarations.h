// What a source file declares: its package or namespace, and the classes at its top.
//
// Not a parser: comments, strings and what stands in braces or parentheses are passed over, and words are looked for in
// the rest. Of Java, Kotlin, Scala and Groovy `package a.b.c` and every class, interface, enum, record, object and
// trait that is in no other; of C and C++ the first `namespace a::b {` that has a name. Errors: none; what is not
// understood declares nothing. Thread-safety: pure.
//
// Example: DeclarationsOf("/* c */ package a.b; class C {} class D {}", true)  →  "a.b", {"C", "D"}
#ifndef CADASTRE_REPORT_SOURCE_DECLARATIONS_H_
#define CADASTRE_REPORT_SOURCE_DECLARATIONS_H_

#include <string>
#include <string_view>
#include <vector>

namespace cadastre {

struct SourceDeclarations {
  std::string scope;               // "com.acme.billing", "acme::billing"; empty = none
  std::vector<std::string> types;  // in their order; of languages that run on the JVM
  bool functions = false;          // Kotlin: functions or variables that are in no class
};

SourceDeclarations DeclarationsOf(std::string_view text, bool java);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SOURCE_DECLARATIONS_H_
