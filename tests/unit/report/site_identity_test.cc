// Sites are told apart and found again by names alone. What JVMs, frameworks and compilers generate has numbers that
// differ from run to run: a name that keeps one makes every leak "new", one that loses too much hides a site.
#include "report/site_identity.h"

#include "tests/support/catch.h"
#include "tests/unit/report/report_fixture.h"

namespace cadastre {
namespace {

Frame Java(const std::string& function) {
  Frame frame;
  frame.function = function;
  frame.java = true;
  frame.resolved = true;
  return frame;
}

TEST_CASE("What is generated has one name in every run", "[site_identity]") {
  const std::vector<std::vector<std::string>> same = {
      {"com.acme.Shop$$Lambda$14/0x0000000800c03000.run", "com.acme.Shop$$Lambda$9/0x00007f1234567890.run",
       "com.acme.Shop$$Lambda/0x00007f0001.run", "com.acme.Shop$$Lambda+0x00007f0002.run"},
      {"com.acme.Shop.lambda$add$3", "com.acme.Shop.lambda$add$17"},
      {"com.acme.Shop.$anonfun$add$1", "com.acme.Shop.$anonfun$add$2"},
      {"com.acme.Shop.add$lambda$0", "com.acme.Shop.add$lambda$5"},
      {"com.acme.Shop$$EnhancerBySpringCGLIB$$1a2b3c.add", "com.acme.Shop$$EnhancerBySpringCGLIB$$9f.add",
       "com.acme.Shop$$SpringCGLIB$$0.add"},
      {"com.acme.Shop$$FastClassBySpringCGLIB$$1a2b3c.invoke", "com.acme.Shop$$FastClassBySpringCGLIB$$77.invoke"},
      {"com.acme.Shop$ByteBuddy$aB3dE.add", "com.acme.Shop$ByteBuddy$Zz9.add"},
      {"com.acme.Shop$MockitoMock$123456.add", "com.acme.Shop$MockitoMock$9.add"},
      {"com.acme.Shop$HibernateProxy$abcDEF.add", "com.acme.Shop$HibernateProxy$x1.add"},
      {"jdk.proxy2.$Proxy17.call", "jdk.proxy3.$Proxy4.call"},
      {"com.sun.proxy.$Proxy17.call", "com.sun.proxy.$Proxy4.call"},
      {"jdk.internal.reflect.GeneratedMethodAccessor12.invoke", "jdk.internal.reflect.GeneratedMethodAccessor1.invoke"},
      {"java.lang.invoke.LambdaForm$MH.0x0000000800c03000.invoke", "java.lang.invoke.LambdaForm$MH/0x00007f01.invoke"},
      {"com.acme.Hidden/0x00007f01.run", "com.acme.Hidden+0x00007f02.run"},
      {"billing::Add.part.0", "billing::Add.constprop.1.isra.0", "billing::Add [clone .cold]", "billing::Add"},
      {"acme::index::add::h0123456789abcdef", "acme::index::add::hfedcba9876543210", "acme::index::add"},
      {"billing::Add(int)::{lambda(int)#1}::operator()", "billing::Add(int)::{lambda(int)#2}::operator()"},
  };
  for (const std::vector<std::string>& names : same) {
    for (const std::string& name : names) {
      INFO(name << " and " << names[0]);
      CHECK(StableName(name) == StableName(names[0]));
    }
  }
}

TEST_CASE("What tells sites apart stays", "[site_identity]") {
  for (const char* name : {"com.acme.Shop.add", "com.acme.Shop$1.add", "com.acme.Shop$Cart.add", "com.acme.Sha256.add",
                           "billing::Index<int, 3>::add", "utf8_to_16", "f0x12", "operator+", "com.acme.Proxy17.call",
                           "com.acme.lambda3.run", "std::map<int, int>::operator[]", "a/b", "main"}) {
    CHECK(StableName(name) == name);
  }
  CHECK(StableName("com.acme.Shop.lambda$add$3") != StableName("com.acme.Shop.lambda$remove$3"));
}

TEST_CASE("An identity goes to the owner, without lines, files, versions and recursion", "[site_identity]") {
  Frame leaf = Java("java.util.zip.Deflater.init"), owner = Java("com.acme.Shop.add"), caller = Java("com.acme.Main.a");
  const std::string identity = SiteIdentity({&leaf, &owner, &caller}, 1);
  CHECK(identity.size() == 16);
  Frame moved = owner;
  moved.line = 88;
  moved.file = "Shop2.java";
  Frame other = Java("com.acme.Main.b");
  CHECK(SiteIdentity({&leaf, &moved, &other}, 1) == identity);
  CHECK(SiteIdentity({&leaf, &owner, &owner, &caller}, 2) == identity);
  CHECK(SiteIdentity({&leaf, &other, &caller}, 1) != identity);
  // Without an owner all of it counts.
  CHECK(SiteIdentity({&leaf, &owner, &caller}, -1) != SiteIdentity({&leaf, &owner, &other}, -1));
  Frame unnamed;
  unnamed.function = "libfoo.so.1.2+0x1234";
  unnamed.library = "/usr/lib/libfoo.so.1.2";
  Frame newer = unnamed;
  newer.function = "libfoo.so.1.3+0x1234";
  newer.library = "/opt/libfoo.so.1.3";
  CHECK(SiteIdentity({&unnamed}, -1) == SiteIdentity({&newer}, -1));
  Frame address, elsewhere;
  address.function = "0x7f0011223344";
  elsewhere.function = "0x7fff11223344";
  CHECK(SiteIdentity({&address}, -1) == SiteIdentity({&elsewhere}, -1));
  CHECK(StableHash("") == "cbf29ce484222325");
}

TEST_CASE("A site of a profile has the identity of its stack, whatever its frames are shared with", "[site_identity]") {
  ReportFixture fixture;
  const std::vector<std::vector<std::string>> stacks = {
      {"malloc@/usr/lib/libcadastre.so", "malloc@/lib/libc.so.6", "java:com.acme.Shop$$Lambda$14/0x01.run",
       "java:a.B.c"},
      {"java:a.B.c", "java:a.B.c", "malloc@/lib/libc.so.6"},
      {"malloc@/usr/lib/libcadastre.so"},
      {"malloc@/lib/libc.so.6", "java:com.acme.Shop$$Lambda$9/0x02.run", "java:a.B.c"},
  };
  for (const std::vector<std::string>& stack : stacks) fixture.AddSite(stack);
  SiteIdentities identities(&fixture.attribution());
  for (int owner : {-1, 0, 1, 9}) {
    for (uint32_t site = 0; site < stacks.size(); site++)
      CHECK(identities.Of(site, owner) == SiteIdentity(fixture.attribution().FramesOf(site), owner));
  }
  CHECK(identities.Of(0, -1) == identities.Of(3, -1));
}

}  // namespace
}  // namespace cadastre
