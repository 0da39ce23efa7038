// The functions that a library or an executable defines, by name.
//
// Errors: a file that is not ELF has none. Thread-safety: pure.
//
// Example: FunctionsOfLibrary("libbilling.so") gives "billing::Index::add", "Java_com_acme_Billing_load", ...
#ifndef CADASTRE_SYMBOLIZER_LIBRARY_FUNCTIONS_H_
#define CADASTRE_SYMBOLIZER_LIBRARY_FUNCTIONS_H_

#include <string>
#include <vector>

namespace cadastre {

// Demangled as frames are, sorted, each once: of .symtab, else of .dynsym.
std::vector<std::string> FunctionsOfLibrary(const std::string& path);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_LIBRARY_FUNCTIONS_H_
