// `main` of every unit test. Catch2 3 brings its own; Catch2 2 makes it here.
#if !__has_include(<catch2/catch_test_macros.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
