// Symbol -> the name that people write: C++ (Itanium ABI) and Rust (legacy and v0 mangling); anything else comes back
// as it is.
//
// A name is the qualified name without return type, parameters and qualifiers, template arguments kept:
// "billing::Index<int>::add". What compilers and linkers append goes: .part.0 .cold .constprop.0 .isra.0 .llvm.123
// @@GLIBC_2.2.5, and Rust's hash. Errors: none; what cannot be demangled is returned whole. Never throws; any bytes are
// accepted. Thread-safety: pure functions.
//
// Example: Demangle("_ZN7billing5Index3addEi.cold") == "billing::Index::add"
// Sources: Itanium C++ ABI 5.1 through abi::__cxa_demangle; Rust RFC 2603 for v0.
#ifndef CADASTRE_SYMBOLIZER_DEMANGLE_H_
#define CADASTRE_SYMBOLIZER_DEMANGLE_H_

#include <string>
#include <string_view>

namespace cadastre {

std::string Demangle(std::string_view symbol);

// The parts, for tests and for names that come demangled already:
std::string_view WithoutSymbolSuffixes(std::string_view symbol);      // version, .cold, .part.0, ...
std::string QualifiedCppName(std::string_view demangled);             // "int f<int>(char) const" -> "f<int>"
bool DemangleRustV0(std::string_view symbol, std::string* name);      // symbols that begin with _R
bool DemangleRustLegacy(std::string_view symbol, std::string* name);  // _ZN...17h<16 hex digits>E

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_DEMANGLE_H_
