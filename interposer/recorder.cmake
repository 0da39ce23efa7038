# The files behind the hooks, except stack capture: listed once for libcadastre.so and for the unit tests.
set(CADASTRE_RECORDER_SOURCES)
foreach(name aligned_new allocator_code bootstrap_arena bus_guard complaints elf_lookup live_index live_table live_thinning mapping_map mapping_queue optional_entries options output_place
        process_facts profile_file profile_name profile_retention real_allocator recorder sampler session session_gate site_table symbol_slots thread_buffer thread_name
        thread_state thread_table)
  list(APPEND CADASTRE_RECORDER_SOURCES ${CMAKE_SOURCE_DIR}/interposer/${name}.cc)
endforeach()
