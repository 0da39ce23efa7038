// Which rule owns a frame decides which team is called at night. Each case is a sentence of the ownership rules.
#include "symbolizer/frame_owner.h"

#include <algorithm>
#include <string>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

OwnerRules RulesOf(const std::string& lines) {
  OwnerRules rules;
  absl::StatusOr<std::vector<Rule>> parsed = ParseOwnerRules("prefix,module,team,kind\n" + lines, "owners.csv");
  INFO(parsed.status().ToString());
  REQUIRE(parsed.ok());
  rules.rules = *parsed;
  const std::vector<Rule>& built_in = BuiltInRules();
  rules.rules.insert(rules.rules.end(), built_in.begin(), built_in.end());
  return rules;
}

Frame FrameOf(const std::string& function, const std::string& library = "", const std::string& file = "") {
  Frame frame;
  frame.function = function;
  frame.library = library;
  frame.file = file;
  frame.resolved = true;
  return frame;
}

std::string ModuleOf(const FrameOwner& owner, const Frame& frame) {
  const Rule* rule = owner.Find(frame);
  return rule == nullptr ? "-" : rule->module;
}

TEST_CASE("Function beats source path beats library", "[frame_owner]") {
  FrameOwner owner(RulesOf("acme::,function,t\nsrc:services/billing/,source,t\nlib:libacme.so,library,t\n"));
  CHECK(ModuleOf(owner, FrameOf("acme::f", "/opt/libacme.so", "/x/services/billing/a.cc")) == "function");
  CHECK(ModuleOf(owner, FrameOf("other", "/opt/libacme.so", "/x/services/billing/a.cc")) == "source");
  CHECK(ModuleOf(owner, FrameOf("other", "/opt/libacme.so", "/x/elsewhere/a.cc")) == "library");
  CHECK(ModuleOf(owner, FrameOf("other", "/opt/libother.so")) == "-");
}

TEST_CASE("A source rule matches at any directory boundary and nowhere else", "[frame_owner]") {
  FrameOwner owner(RulesOf("src:billing/,m,t\nsrc:/abs/,abs,t\n"));
  CHECK(ModuleOf(owner, FrameOf("f", "", "billing/a.cc")) == "m");
  CHECK(ModuleOf(owner, FrameOf("f", "", "/home/x/billing/a.cc")) == "m");
  CHECK(ModuleOf(owner, FrameOf("f", "", "/home/x/notbilling/a.cc")) == "-");
  CHECK(ModuleOf(owner, FrameOf("f", "", "/abs/a.cc")) == "abs");
  CHECK(ModuleOf(owner, FrameOf("f", "", "/x/abs/a.cc")) == "-");
}

TEST_CASE("A library rule matches file name, path, SONAME and the stem without a random part", "[frame_owner]") {
  FrameOwner owner(RulesOf("lib:librocksdbjni.so,rocks,t\nlib:/opt/acme/,acme,t\nlib:libsoname.so,soname,t\n"));
  CHECK(ModuleOf(owner, FrameOf("f", "/tmp/librocksdbjni1234567.so")) == "rocks");
  CHECK(ModuleOf(owner, FrameOf("f", "/usr/lib/librocksdbjni.so.8.1")) == "rocks");
  CHECK(ModuleOf(owner, FrameOf("f", "/tmp/librocksdbjni1234567.so (deleted)")) == "rocks");
  CHECK(ModuleOf(owner, FrameOf("f", "/opt/acme/lib/libx.so")) == "acme");
  Frame frame = FrameOf("f", "/x/impl-1.2.so");
  frame.soname = "libsoname.so.1";
  CHECK(ModuleOf(owner, frame) == "soname");
}

TEST_CASE("A user's rule beats a built-in one of the same length, and the first of equals wins", "[frame_owner]") {
  FrameOwner owner(RulesOf("std::,mine,t\nstd::,later,t\nlib:libc.so,my libc,t\n"));
  CHECK(ModuleOf(owner, FrameOf("std::vector<int>::push_back")) == "mine");
  CHECK(ModuleOf(owner, FrameOf("malloc", "/lib/x86_64-linux-gnu/libc.so.6")) == "my libc");
  CHECK(owner.Find(FrameOf("std::x"))->line == 2);
}

TEST_CASE("A user's rule wins over built-in ones in whatever order they are handed over", "[frame_owner]") {
  OwnerRules rules = RulesOf("std::,mine,t\n");
  std::rotate(rules.rules.begin(), rules.rules.begin() + 1, rules.rules.end());
  CHECK(ModuleOf(FrameOwner(rules), FrameOf("std::x")) == "mine");
}

TEST_CASE("The functions of libjvm fall to its parts, unless a user claims the library", "[frame_owner]") {
  FrameOwner built_in(RulesOf(""));
  const std::string jvm = "/opt/java/lib/server/libjvm.so";
  CHECK(ModuleOf(built_in, FrameOf("G1CollectedHeap::allocate", jvm)) == "platform/jvm.gc");
  CHECK(ModuleOf(built_in, FrameOf("os::malloc", jvm)) == "platform/jvm.os");
  CHECK(ModuleOf(built_in, FrameOf("Unsafe_AllocateMemory0", jvm)) == "platform/jvm.unsafe");
  CHECK(ModuleOf(built_in, FrameOf("ciEnv::register_method", jvm)) == "platform/jvm.compiler");
  CHECK(ModuleOf(built_in, FrameOf("ClassFileParser::parse", jvm)) == "platform/jvm.classes");
  CHECK(ModuleOf(built_in, FrameOf("SomethingElse", jvm)) == "platform/jvm");
  CHECK(ModuleOf(built_in, FrameOf("G1CollectedHeap::allocate", "/opt/libgame.so")) == "-");
  Frame unresolved = FrameOf("libjvm.so+0x1234", jvm);
  unresolved.resolved = false;
  CHECK(ModuleOf(built_in, unresolved) == "platform/jvm");
  FrameOwner user(RulesOf("lib:libjvm.so,jvm,runtime\n"));
  CHECK(ModuleOf(user, FrameOf("G1CollectedHeap::allocate", jvm)) == "jvm");
  FrameOwner part(RulesOf("lib:libjvm.so!G1,gc,runtime\n"));
  CHECK(ModuleOf(part, FrameOf("G1CollectedHeap::allocate", jvm)) == "gc");
}

TEST_CASE("Runtimes, allocators, JDK libraries and wrappers are platform", "[frame_owner]") {
  FrameOwner owner(RulesOf(""));
  struct {
    const char *library, *module;
  } cases[] = {{"/lib/x86_64-linux-gnu/libc.so.6", "platform/libc"},
               {"/lib/x86_64-linux-gnu/libc-2.31.so", "platform/libc"},
               {"/lib64/ld-linux-x86-64.so.2", "platform/libc"},
               {"/lib/x86_64-linux-gnu/libm.so.6", "platform/libc"},
               {"/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", "platform/libstdc++"},
               {"/lib/x86_64-linux-gnu/libjemalloc.so.2", "platform/allocator"},
               {"/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4", "platform/allocator"},
               {"/x/libcadastre.so", "platform/allocator"},
               {"/opt/jdk/bin/java", "platform/jdk.launcher"},
               {"/opt/jdk/lib/libjava.so", "platform/jdk.java"},
               {"/usr/lib/jvm/java-17-openjdk-amd64/lib/libzip.so", "platform/jdk.zip"},
               {"/opt/jdk/lib/libnio.so", "platform/jdk.nio"},
               {"/lib/x86_64-linux-gnu/libz.so.1.2.13", "platform/zlib"},
               {"/tmp/jna--123/jna4711471147.tmp", "platform/jna"},
               {"/tmp/libzstd-jni-1.5.5-5-16470613984735930839.so", "platform/zstd"},
               {"[vdso]", "platform/libc"},
               {"/lib/x86_64-linux-gnu/libcrypto.so.3", "platform/openssl"},
               {"/opt/app/javascript.so", "-"},
               {"/opt/app/libnet.so.1", "-"},
               {"/opt/app/libcustom.so", "-"},
               {"/usr/lib/libpython3.11.so.1.0", "-"}};
  for (const auto& c : cases) {
    INFO(c.library);
    CHECK(ModuleOf(owner, FrameOf("f", c.library)) == c.module);
  }
  CHECK(ModuleOf(owner, FrameOf("operator new")) == "platform/libstdc++");
  CHECK(ModuleOf(owner, FrameOf("core::Engine::run")) == "-");  // many a C++ program has a namespace core
  Frame java = FrameOf("java.util.zip.Deflater.init");
  java.java = true;
  CHECK(ModuleOf(owner, java) == "platform/jdk.zip");
}

TEST_CASE("Methods of Rust impls belong to their type, or to their trait where the type is the platform's",
          "[frame_owner]") {
  FrameOwner owner(RulesOf("acme::,acme,t\nother::,other,t\n"));
  CHECK(ModuleOf(owner, FrameOf("<acme::Index>::add")) == "acme");
  CHECK(ModuleOf(owner, FrameOf("<acme::Index as core::fmt::Display>::fmt")) == "acme");
  CHECK(ModuleOf(owner, FrameOf("<alloc::vec::Vec<u8> as acme::Store>::put")) == "acme");
  CHECK(ModuleOf(owner, FrameOf("<&mut acme::Index as other::Visit>::visit")) == "acme");
  CHECK(ModuleOf(owner, FrameOf("<alloc::vec::Vec<acme::X>>::push")) == "platform/rust");
  CHECK(ModuleOf(owner, FrameOf("<nobody::X as core::fmt::Display>::fmt")) == "-");
}

TEST_CASE("Unresolved frames match no function rule", "[frame_owner]") {
  FrameOwner owner(RulesOf("libfoo,by name,t\n"));
  Frame frame = FrameOf("libfoo.so+0x12", "/x/libfoo.so");
  frame.resolved = false;
  CHECK(ModuleOf(owner, frame) == "-");
}

TEST_CASE("Threads are matched by name, classes not at all", "[frame_owner]") {
  FrameOwner owner(RulesOf("thread:http-nio-,web,t\nclass:com.acme.,heap,t\n"));
  REQUIRE(owner.FindThread("http-nio-8080-exec-1") != nullptr);
  CHECK(owner.FindThread("http-nio-8080-exec-1")->module == "web");
  CHECK(owner.FindThread("main") == nullptr);
  CHECK(ModuleOf(owner, FrameOf("com.acme.Cache.put")) == "-");
}

TEST_CASE("A thread rule longer than the kernel's names matches what the kernel keeps of them", "[frame_owner]") {
  FrameOwner owner(RulesOf("thread:http-nio-8080-exec-,web,t\nthread:http-nio-,poll,t\n"));
  CHECK(owner.FindThread("http-nio-8080-e")->module == "web");
  CHECK(owner.FindThread("http-nio-8081-e")->module == "poll");
  CHECK(owner.FindThread("http-nio-8080")->module == "poll");
  CHECK(owner.FindThread("http-nio-8080-exec-12")->module == "web");
}

TEST_CASE("Platform modules are transparent unless their kind says otherwise", "[frame_owner]") {
  OwnerRules rules = RulesOf(
      "a,platform,\nb,platform/x,\nc,platform/x,t,owner\nd,wrapper,t,transparent\ne,platformer,t\nf,m,t,container\n");
  CHECK(IsTransparentInStacks(rules.rules[0]));
  CHECK(IsTransparentInStacks(rules.rules[1]));
  CHECK_FALSE(IsTransparentInStacks(rules.rules[2]));
  CHECK(IsTransparentInStacks(rules.rules[3]));
  CHECK_FALSE(IsTransparentInStacks(rules.rules[4]));
  CHECK(IsTransparentInStacks(rules.rules[5]));
}

TEST_CASE("Classes of the heap are known in every spelling, by class rules and by those of their functions",
          "[frame_owner]") {
  OwnerRules rules = RulesOf(
      "com.acme.billing.,billing,t\n"
      "class:com.acme.billing.Cache,cache,t,container\n"
      "com.acme.shop.Cart.,cart,t\n"
      "class:byte[],bytes,t\n"
      "class:[C,chars,t\n"
      "class:[[,nested,t\n"
      "a.b.,ab,t\n"
      "src:com,source,t\n");
  FrameOwner owner(rules);
  auto module = [&](const char* name) {
    const Rule* rule = owner.FindClass(name);
    return rule == nullptr ? std::string("-") : rule->module;
  };
  CHECK(module("com.acme.billing.Invoice") == "billing");
  CHECK(module("com/acme/billing/Invoice$Line") == "billing");
  CHECK(module("[Lcom.acme.billing.Invoice;") == "billing");
  CHECK(module("com.acme.billing.Invoice[][]") == "billing");
  CHECK(module("com.acme.billing.CacheEntry") == "cache");
  CHECK(module("com.acme.shop.Cart") == "cart");
  CHECK(module("com.acme.shop.Cart[]") == "cart");
  CHECK(module("com.acme.shop.Cartoon") == "-");
  for (const char* bytes : {"[B", "byte[]"}) CHECK(module(bytes) == "bytes");
  for (const char* chars : {"[C", "char[]"}) CHECK(module(chars) == "chars");
  for (const char* nested : {"[[I", "int[][]", "[[Lx.Y;", "x/Y[][]"}) CHECK(module(nested) == "nested");
  CHECK(module("a/b/C$1") == "ab");
  CHECK(module("a.b.C$$Lambda/0x00007f12") == "ab");
  CHECK(module("byte") == "-");
  CHECK(module("[") == "-");
  CHECK(module("") == "-");
}

TEST_CASE("Containers and pools are walked past, whatever their module is called", "[frame_owner]") {
  OwnerRules rules = RulesOf("a,cache,t,container\nb,platform,t,pool\nc,platform,t,owner\n");
  CHECK(IsTransparentInStacks(rules.rules[0]));
  CHECK(IsTransparentInStacks(rules.rules[1]));
  CHECK_FALSE(IsTransparentInStacks(rules.rules[2]));
}

}  // namespace
}  // namespace cadastre
