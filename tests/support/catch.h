// Catch2 2 (Debian 12, Ubuntu 24.04) and Catch2 3 (Debian 13) behind one include.
//
// Example:
//   #include "tests/support/catch.h"
//   TEST_CASE("A gap is never negative") { REQUIRE(Gap() >= 0); }
// `main` comes from the library cadastre_test_main.
#ifndef CADASTRE_TESTS_SUPPORT_CATCH_H_
#define CADASTRE_TESTS_SUPPORT_CATCH_H_

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
using Catch::Approx;  // where Catch2 2 has it
#else
#include <catch2/catch.hpp>
#endif

#endif  // CADASTRE_TESTS_SUPPORT_CATCH_H_
