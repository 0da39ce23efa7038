// A frame names its library by index for ever, so the map must never mix up libraries: opened, closed, put at the
// addresses of another, or found by two threads at once.
#include "interposer/library_map.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include <string>
#include <thread>
#include <vector>

#include "interposer/profile_file.h"
#include "tests/support/catch.h"

using namespace cadastre;

namespace {

// The stub's profile, on memory of ours.
struct OpenProfile {
  std::vector<uint64_t> strings = std::vector<uint64_t>(1 << 16);
  std::vector<format::LibraryRecord> libraries = std::vector<format::LibraryRecord>(512);
  format::Header* header = new format::Header();

  OpenProfile() {
    header->start_monotonic_ns = 1;
    g_profile = {};
    g_profile.strings = strings.data();
    g_profile.string_units = strings.size();
    g_profile.libraries = libraries.data();
    g_profile.library_capacity = static_cast<uint32_t>(libraries.size());
    g_profile.header = header;
  }
  ~OpenProfile() {
    g_profile = {};
    delete header;
  }
  std::string Path(uint32_t index) const {
    auto* string = reinterpret_cast<const format::StringHeader*>(&strings[libraries[index].path]);
    return std::string(reinterpret_cast<const char*>(string + 1), string->length);
  }
};

void InitOnce() {
  static bool done = false;
  if (!done) LibraryMapInit(program_invocation_name);
  done = true;
}

uint64_t AddressOf(void* handle) {
  // Some code address: the map's start plus one page would do, a symbol is surer.
  void* symbol = dlsym(handle, "plugin_function");
  return reinterpret_cast<uint64_t>(symbol);
}

}  // namespace

TEST_CASE("What was loaded at start is known, with path, flags and build id") {
  InitOnce();
  OpenProfile profile;
  LibraryMapPublish();
  LibraryEntry own, libc, test;
  REQUIRE(LookupLibrary(reinterpret_cast<uint64_t>(&LibraryMapInit), &own));
  REQUIRE(LookupLibrary(reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "strtoul")), &libc));
  REQUIRE(LookupLibrary(reinterpret_cast<uint64_t>(&InitOnce), &test));
  CHECK(libc.permanent);
  CHECK(profile.Path(libc.index).find("libc.so.6") != std::string::npos);
  CHECK(profile.libraries[libc.index].state == format::kReady);
  CHECK(profile.libraries[libc.index].build_id_length == 20);
  CHECK(profile.libraries[libc.index].start == libc.start);
  CHECK(profile.libraries[test.index].flags == format::kLibraryIsExecutable);
  CHECK(profile.Path(test.index).find("library_map_test") != std::string::npos);
  CHECK(profile.libraries[own.index].flags == format::kLibraryIsCadastre);
  CHECK(own.eh_frame_hdr != nullptr);
  int vdsos = 0;
  for (const format::LibraryRecord& record : profile.libraries) vdsos += (record.flags & format::kLibraryIsVdso) != 0;
  CHECK(vdsos == 1);
}

TEST_CASE("An address in no library is in no library") {
  InitOnce();
  LibraryEntry entry;
  std::vector<char> heap(100000);
  CHECK_FALSE(LookupLibrary(reinterpret_cast<uint64_t>(heap.data()), &entry));
  CHECK_FALSE(LookupLibrary(0, &entry));
  CHECK_FALSE(LookupLibrary(~0ull, &entry));
}

TEST_CASE(
    "A library opened later is found by its first pc, retired when closed, and the same index when it comes back") {
  InitOnce();
  OpenProfile profile;
  LibraryMapPublish();
  void* handle = dlopen(CADASTRE_PLUGIN_A, RTLD_NOW);
  REQUIRE(handle != nullptr);
  const uint64_t pc = AddressOf(handle);
  LibraryEntry first, again;
  REQUIRE(LookupLibrary(pc, &first));
  CHECK_FALSE(first.permanent);
  CHECK(IsLibraryStillLoaded(first.index, pc));
  REQUIRE(LookupLibrary(pc, &again, first.index));
  CHECK(again.index == first.index);
  CHECK(profile.libraries[first.index].state == format::kReady);
  CHECK(profile.libraries[first.index].unloaded_ns == 0);
  CHECK(profile.Path(first.index).find("plugin_a") != std::string::npos);
  const uint32_t generation = LibraryMapGeneration();
  LibraryMapBeforeDlclose();
  dlclose(handle);
  LibraryMapAfterDlclose();
  CHECK(LibraryMapGeneration() != generation);
  CHECK(profile.libraries[first.index].unloaded_ns != 0);
  CHECK_FALSE(LookupLibrary(pc, &again));
  CHECK_FALSE(LookupLibrary(pc, &again, first.index));
  CHECK_FALSE(IsLibraryStillLoaded(first.index, pc));
  handle = dlopen(CADASTRE_PLUGIN_A, RTLD_NOW);
  REQUIRE(LookupLibrary(AddressOf(handle), &again));
  if (AddressOf(handle) == pc) {  // the kernel usually gives the same place
    CHECK(again.index == first.index);
    CHECK(profile.libraries[first.index].unloaded_ns == 0);
  } else {
    CHECK(again.index != first.index);
  }
  dlclose(handle);
  LibraryMapAfterDlclose();
}

TEST_CASE("Another library at the same addresses is told apart, also when nobody said that the first one went") {
  InitOnce();
  OpenProfile profile;
  LibraryMapPublish();
  int same_place = 0;
  for (int round = 0; round < 20; round++) {
    void* a = dlopen(CADASTRE_PLUGIN_A, RTLD_NOW);
    const uint64_t pc = AddressOf(a);
    LibraryEntry entry_a, entry_b;
    REQUIRE(LookupLibrary(pc, &entry_a));
    CHECK(profile.Path(entry_a.index).find("plugin_a") != std::string::npos);
    dlclose(a);  // as the loader does with iconv modules: no hook sees it
    void* b = dlopen(CADASTRE_PLUGIN_B, RTLD_NOW);
    const uint64_t pc_b = AddressOf(b);
    same_place += pc == pc_b;
    REQUIRE(LookupLibrary(pc_b, &entry_b));
    CHECK(profile.Path(entry_b.index).find("plugin_b") != std::string::npos);
    CHECK(entry_b.index != entry_a.index);
    if (pc == pc_b) CHECK_FALSE(IsLibraryStillLoaded(entry_a.index, pc));
    dlclose(b);
  }
  CHECK(same_place > 0);
}

TEST_CASE("Threads that meet a new library together agree on its index") {
  InitOnce();
  for (int round = 0; round < 50; round++) {
    void* handle = dlopen(round % 2 ? CADASTRE_PLUGIN_A : CADASTRE_PLUGIN_B, RTLD_NOW);
    const uint64_t pc = AddressOf(handle);
    uint32_t index[4] = {};
    std::vector<std::thread> threads;
    for (uint32_t& mine : index) {
      threads.emplace_back([pc, &mine] {
        LibraryEntry entry;
        if (LookupLibrary(pc, &entry)) mine = entry.index;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(index[0] != 0);
    CHECK((index[1] == index[0] && index[2] == index[0] && index[3] == index[0]));
    LibraryMapBeforeDlclose();
    dlclose(handle);
    LibraryMapAfterDlclose();
  }
}
