// Parts of function names as demanglers and the JVM spell them: what a rule prefix or a short line of text is made
// from.
//
// Errors: none; a name that is not understood comes back whole, or empty where a part was asked for. Thread-safety:
// pure.
//
// Example: QualifiedName("std::vector<int> acme::billing::Writer::Grow(unsigned long) const")  →
// "acme::billing::Writer::Grow"
#ifndef CADASTRE_REPORT_FUNCTION_NAME_H_
#define CADASTRE_REPORT_FUNCTION_NAME_H_

#include <string>
#include "absl/strings/string_view.h"

#include "symbolizer/profile.h"

namespace cadastre {

// Without return type, parameters and qualifiers; template arguments stay.
std::string QualifiedName(absl::string_view function);

// At most two levels, without templates: "acme::billing::". A class alone ("Writer::") counts as a level. Empty: no
// scope.
std::string NamespacePrefix(absl::string_view function);

// "com.acme.billing.pdf.InvoicePdf.compress" → "com.acme.billing" with limit 3: package parts before the class.
std::string JavaPackage(absl::string_view function, int limit);

// "Shop$Cart.add" → "Shop$", "Shop.main" → "Shop.": a class without a package, its methods alone or with those of the
// classes in it.
std::string JavaClassPrefix(absl::string_view function);

// For one line of text: "deflateInit2_ (libz.so.1)", "com.acme.InvoicePdf.compress (InvoicePdf.java:88)".
std::string ShortFrame(const Frame& frame);

// Where it is only passed: a Java frame is "Deflater.init", without package, file and line.
std::string PassedFrame(const Frame& frame);

absl::string_view FileName(absl::string_view path);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FUNCTION_NAME_H_
