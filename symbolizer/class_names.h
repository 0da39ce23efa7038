// The names under which a rule may know a Java class of the heap.
//
// Tools spell them in three ways: as the source does ("byte[]", "java.util.Map$Entry[]"), as Class.getName does ("[B",
// "[Ljava.util.Map$Entry;"), and as class files do ("java/util/Map$Entry"). Source: JLS 13.1, JVMS 4.2.1 and 4.3.2.
// Errors: none; what is no class name stays as it is. Thread-safety: pure functions.
//
// Example: ClassNames("[Lcom/acme/Foo;") gives "com.acme.Foo[]", "com.acme.Foo.", "[Lcom.acme.Foo;"
#ifndef CADASTRE_SYMBOLIZER_CLASS_NAMES_H_
#define CADASTRE_SYMBOLIZER_CLASS_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

namespace cadastre {

// The source's spelling, the class that it is made of with a dot behind it (as functions of it begin; not for
// primitives), and for arrays Class.getName's.
std::vector<std::string> ClassNames(std::string_view class_name);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_CLASS_NAMES_H_
