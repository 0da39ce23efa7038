// Owner rules are prefixes of these names: a return type or a hash left in front, or a suffix misread, sends memory to
// the wrong team.
#include "symbolizer/demangle.h"

#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

struct Case {
  const char* symbol;
  const char* name;
};

TEST_CASE("C names stay as they are, without what linkers and compilers append", "[demangle]") {
  for (const Case& c : std::vector<Case>{{"malloc", "malloc"},
                                         {"memcpy@@GLIBC_2.14", "memcpy"},
                                         {"memcpy@GLIBC_2.2.5", "memcpy"},
                                         {"deflateInit2_", "deflateInit2_"},
                                         {"do_work.cold", "do_work"},
                                         {"do_work.part.0", "do_work"},
                                         {"do_work.constprop.0.isra.0.cold", "do_work"},
                                         {"helper.llvm.1234567890", "helper"},
                                         {"counter.123", "counter.123"},
                                         {"f.cold.7", "f"},
                                         {".part.0", ".part.0"},
                                         {"", ""}}) {
    CHECK(Demangle(c.symbol) == c.name);
  }
}

TEST_CASE("C++ names are qualified, without parameters and return types, with template arguments", "[demangle]") {
  for (const Case& c :
       std::vector<Case>{{"_ZN7billing5Index3addEi", "billing::Index::add"},
                         {"_ZNK7billing5Index3getEv", "billing::Index::get"},
                         {"_ZN7billing5Index3addEi.part.0.cold", "billing::Index::add"},
                         {"_ZN7billing5TypedIiEEvT_", "billing::Typed<int>"},
                         {"_ZN12_GLOBAL__N_16HiddenEv", "(anonymous namespace)::Hidden"},
                         {"_ZN6golden12_GLOBAL__N_16HiddenEv", "golden::(anonymous namespace)::Hidden"},
                         {"_Znwm", "operator new"},
                         {"_ZdaPv", "operator delete[]"},
                         {"_ZN3FoocviEv", "Foo::operator int"},
                         {"_ZN3FooclEi", "Foo::operator()"},
                         {"_ZlsRSo3Foo", "operator<<"},
                         {"_ZltRK3FooS1_", "operator<"},
                         {"_ZN3FooptEv", "Foo::operator->"},
                         {"_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
                          "std::vector<int, std::allocator<int> >::_M_realloc_insert<int>"},
                         {"_ZThn16_N7billing5Index3addEi", "billing::Index::add"},
                         {"_ZZN7billing3runEiENKUlvE_clEv", "billing::run::{lambda()#1}::operator()"},
                         {"_Z3fooIiEPFvcET_", "foo<int>"},  // returns a pointer to a function
                         {"_ZNKSt6locale4nameB5cxx11Ev", "std::locale::name[abi:cxx11]"},
                         {"_Z", "_Z"},
                         {"_ZN7billing5Index3ad", "_ZN7billing5Index3ad"}}) {
    CHECK(Demangle(c.symbol) == c.name);
  }
  CHECK(QualifiedCppName("void (*foo<int>(int))(char)") == "foo<int>");
  CHECK(QualifiedCppName("decltype ((a.b)()) ns::call<A>(A&)") == "ns::call<A>");
  CHECK(QualifiedCppName("bool ns::operator< <int>(ns::X<int> const&)") == "ns::operator< <int>");
  CHECK(QualifiedCppName("ns::f(int (*)(char, long)) const &") == "ns::f");
  CHECK(QualifiedCppName("unbalanced<(") == "unbalanced<(");
}

TEST_CASE("Rust names of the legacy mangling lose their hash and their escapes", "[demangle]") {
  CHECK(Demangle("_ZN1a7billing14Index$LT$T$GT$3add17h0123456789abcdefE") == "a::billing::Index<T>::add");
  CHECK(Demangle("_ZN5alloc3vec12Vec$LT$T$GT$4push17habcdef0123456789E.llvm.42") == "alloc::vec::Vec<T>::push");
  CHECK(Demangle("_ZN57_$LT$alloc..vec..Vec$LT$u8$GT$$u20$as$u20$acme..Store$GT$3put17h0123456789abcdefE") ==
        "<alloc::vec::Vec<u8> as acme::Store>::put");
  // A C++ function whose last component merely looks like a hash is too short for one.
  CHECK(Demangle("_ZN4acme3h12Ev") == "acme::h12");
}

TEST_CASE("Rust names of the v0 mangling read as rustc-demangle prints them", "[demangle]") {
  for (const Case& c : std::vector<Case>{
           {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
           {"_RNvC6_123foo3bar", "123foo::bar"},
           {"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}"},
           {"_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std",
            "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>"},
           {"_RNvMC0INtC8arrayvec8ArrayVechKj7b_E3new", "<arrayvec::ArrayVec<u8, 123>>::new"},
           {"_RNvYNtC1a1XNtC1b5Trait3fun", "<a::X as b::Trait>::fun"},
           {"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
            "utf8_idents::საჭმელად_გემრიელი_სადილი"},
           {"_RNvC1a1b.llvm.123", "a::b"},
           {"_RNvC1a", "_RNvC1a"}}) {
    CHECK(Demangle(c.symbol) == c.name);
  }
}

TEST_CASE("Symbols that nobody made are answered without a crash or a flood", "[demangle]") {
  // Each level of the tuple names the one before twice: 2^40 names if it were unfolded.
  std::string bomb = "_RIC0T";
  for (int i = 0; i < 40; i++) bomb += "TB4_B4_E";
  CHECK(Demangle(bomb).size() < 100'000);
  CHECK(Demangle("_R" + std::string(100'000, 'N')).size() == 100'002);
  CHECK(Demangle("_ZN" + std::string(3000, 'S') + "E").size() <= 3005);
  std::mt19937_64 random(7);
  const std::string alphabet = "_RNvCMXYIBTADFKELsu0123456789abghz$.@ZSt<>()~ ";
  for (int i = 0; i < 50'000; i++) {
    std::string symbol = i % 2 == 0 ? "_R" : "_ZN";
    for (uint64_t length = random() % 40; length > 0; length--) symbol += alphabet[random() % alphabet.size()];
    CHECK(Demangle(symbol).size() < 100'000);
    (void)QualifiedCppName(symbol);
  }
}

}  // namespace
}  // namespace cadastre
