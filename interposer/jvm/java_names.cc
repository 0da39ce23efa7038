#include "interposer/jvm/java_names.h"

#include <string.h>

namespace cadastre {
namespace {

// The name ends here, and what follows the marker is replaced: names of one generator differ behind it only.
struct GeneratedClass {
  const char* marker;
  const char* replacement;
};
constexpr GeneratedClass kGeneratedClasses[] = {
    {"$$Lambda", ""},                  // the JDK's lambdas: $$Lambda$14+0x..., $$Lambda+0x..., $$Lambda/0x...
    {"CGLIB$$", "*"},                  // Spring and CGLIB: hash or number
    {"$ByteBuddy$", "*"},              // random
    {"$HibernateProxy$", "*"},         // random
    {"$MockitoMock$", "*"},            // random
    {"_$$_jvst", "*"},                 // Javassist: counters
    {"GeneratedMethodAccessor", "*"},  // the JDK's reflection until 21: counter
    {"ConstructorAccessor", "*"},      // GeneratedConstructorAccessor, GeneratedSerializationConstructorAccessor
    {"$Proxy", "*"},                   // java.lang.reflect.Proxy: counter
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class Writer {
 public:
  Writer(char* out, size_t capacity) : out_(out), capacity_(capacity) {}
  void Add(char c) {
    if (length_ < capacity_) out_[length_++] = static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  void Add(const char* text) {
    for (; *text != '\0'; text++) Add(*text);
  }
  void AddSeparator() {
    if (length_ < capacity_) out_[length_++] = '\n';
  }
  size_t length() const { return length_; }

 private:
  char* out_;
  size_t capacity_;
  size_t length_ = 0;
};

bool StartsWith(TextSpan text, size_t at, const char* prefix) {
  const size_t length = strlen(prefix);
  return text.length - at >= length && memcmp(text.begin + at, prefix, length) == 0;
}

// The marker of a generated class at `at`, if what follows it is not an ordinary name.
const GeneratedClass* GeneratedAt(TextSpan name, size_t at) {
  for (const GeneratedClass& generated : kGeneratedClasses) {
    if (!StartsWith(name, at, generated.marker)) continue;
    const size_t end = at + strlen(generated.marker);
    // A class of the program's called $ProxyFactory or ConstructorAccessorImpl is none of these.
    const bool by_counter = generated.marker[strlen(generated.marker) - 1] != '$' && generated.replacement[0] != '\0';
    if (by_counter && (end >= name.length || !IsDigit(name.begin[end]))) continue;
    return &generated;
  }
  return nullptr;
}

void AddClass(TextSpan name, Writer* out) {
  // Generated packages, jdk.proxy1 and so on: one for each class loader.
  static constexpr char kProxyPackage[] = "jdk/proxy";
  size_t at = 0;
  if (StartsWith(name, 0, kProxyPackage) && name.length > sizeof(kProxyPackage) - 1 &&
      IsDigit(name.begin[sizeof(kProxyPackage) - 1])) {
    out->Add("jdk.proxy*");
    at = sizeof(kProxyPackage) - 1;
    while (at < name.length && IsDigit(name.begin[at])) at++;
  }
  for (; at < name.length; at++) {
    const char c = name.begin[at];
    if (c == '+') return;  // a hidden class: an address follows
    if (const GeneratedClass* generated = GeneratedAt(name, at)) {
      out->Add(generated->marker);
      out->Add(generated->replacement);
      return;
    }
    // LambdaForms before hidden classes: LambdaForm$MH012.
    if (IsDigit(c) && StartsWith(name, 0, "java/lang/invoke/LambdaForm$")) return;
    out->Add(c == '/' ? '.' : c);
  }
}

}  // namespace

size_t WriteJavaMethodName(TextSpan class_name, TextSpan method_name, TextSpan source_file, char* out,
                           size_t capacity) {
  Writer writer(out, capacity);
  AddClass(class_name, &writer);
  writer.Add('.');
  for (size_t i = 0; i < method_name.length; i++) writer.Add(method_name.begin[i]);
  if (source_file.length > 0) {
    writer.AddSeparator();
    for (size_t i = 0; i < source_file.length; i++) writer.Add(source_file.begin[i]);
  }
  return writer.length();
}

}  // namespace cadastre
