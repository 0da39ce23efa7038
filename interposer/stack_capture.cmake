# The files of stack capture, and libcadastre-unwind.so: the copy of libunwind that lies beside libcadastre.so.
# Included by interposer/CMakeLists.txt, and by tests/unit/interposer where the interposer itself is not built.

set(CADASTRE_STACK_SOURCES
  ${CMAKE_SOURCE_DIR}/interposer/eh_frame.cc
  ${CMAKE_SOURCE_DIR}/interposer/interned_strings.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/call_site_cache.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/checked_read.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/class_fields.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/code_cache.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/frozen_stack.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/heap_path.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/heap_references.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/java_names.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/java_thread.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/jvm.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/method_names.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/thread_names.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/vm_flags.cc
  ${CMAKE_SOURCE_DIR}/interposer/jvm/vm_structs.cc
  ${CMAKE_SOURCE_DIR}/interposer/library_image.cc
  ${CMAKE_SOURCE_DIR}/interposer/library_map.cc
  ${CMAKE_SOURCE_DIR}/interposer/rule_cache.cc
  ${CMAKE_SOURCE_DIR}/interposer/stack_capture.cc
  ${CMAKE_SOURCE_DIR}/interposer/stack_unwind.cc
  ${CMAKE_SOURCE_DIR}/interposer/unwind_image.cc
  ${CMAKE_SOURCE_DIR}/interposer/unwind_rules.cc
  ${CMAKE_SOURCE_DIR}/interposer/word_cache.cc)

# Variables are set each time (they belong to the folder that includes this); targets exist once.
set(CADASTRE_PRIVATE_UNWIND ${CMAKE_BINARY_DIR}/interposer/libcadastre-unwind.so)
if(TARGET cadastre_private_unwind)
  return()
endif()

# The remote interface ("generic" build): it works on the memory that we give it, never on the process as it finds it.
find_library(CADASTRE_LIBUNWIND NAMES libunwind-x86_64.so.8 libunwind-x86_64.so REQUIRED)
add_custom_command(
  OUTPUT ${CADASTRE_PRIVATE_UNWIND}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/interposer
  COMMAND ${CMAKE_COMMAND} -E copy ${CADASTRE_LIBUNWIND} ${CADASTRE_PRIVATE_UNWIND}
  DEPENDS ${CADASTRE_LIBUNWIND}
  VERBATIM)
add_custom_target(cadastre_private_unwind ALL DEPENDS ${CADASTRE_PRIVATE_UNWIND})
