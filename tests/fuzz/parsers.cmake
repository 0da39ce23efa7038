# Fuzz targets of the parsers in symbolizer/. ctest runs each over its corpus and mutations of it; for a real fuzzing session build with
# clang and -DCADASTRE_LIBFUZZER=ON, and run e.g. ./profile_reader_fuzz DIRECTORY.
option(CADASTRE_LIBFUZZER "Link fuzz targets with libFuzzer (clang) instead of the corpus runner" OFF)
find_package(PkgConfig REQUIRED)
pkg_check_modules(FUZZ_ZSTD REQUIRED IMPORTED_TARGET libzstd)
find_package(ZLIB REQUIRED)

function(cadastre_fuzz name mutations)
  add_executable(${name}_fuzz ${name}_fuzz.cc)
  target_link_libraries(${name}_fuzz PRIVATE cadastre_symbolizer cadastre_test_support PkgConfig::FUZZ_ZSTD ZLIB::ZLIB)
  if(CADASTRE_LIBFUZZER)
    target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzz PRIVATE corpus_runner.cc)
  endif()
  add_test(NAME fuzz.${name} COMMAND ${name}_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name} ${mutations})
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 300)
endfunction()

cadastre_fuzz(profile_reader 5000)
cadastre_fuzz(symbol_block 10000)
cadastre_fuzz(owner_rules 20000)
cadastre_fuzz(demangle 2000)
cadastre_fuzz(elf_symbols 200)
if(TARGET golden)  # small, with DWARF, inlining and a linkage table
  add_dependencies(elf_symbols_fuzz golden)
  set_tests_properties(fuzz.elf_symbols PROPERTIES ENVIRONMENT "CADASTRE_FUZZ_ELF=$<TARGET_FILE:golden>")
endif()
