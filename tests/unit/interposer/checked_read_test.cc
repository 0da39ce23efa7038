// A read beside the JVM meets memory that has gone: the kernel says so, and nothing faults.
#include "interposer/jvm/checked_read.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "interposer/jvm/lasting_memory.h"
#include "tests/support/catch.h"

using namespace cadastre;

namespace {

void ReadAtTheEdge() {
  auto* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(pages != MAP_FAILED);
  REQUIRE(munmap(pages + 4096, 4096) == 0);
  char* gone = pages + 4096;
  memcpy(gone - 8, "the end", 8);
  const auto end = reinterpret_cast<uint64_t>(gone);
  uint64_t word = 0;
  char text[64] = {};
  CHECK(CheckedLoad(end - 8, &word));
  CHECK(memcmp(&word, "the end", 8) == 0);
  CHECK_FALSE(CheckedLoad(end - 4, &word));
  CHECK_FALSE(CheckedLoad(0, &word));
  SECTION("of several pieces all or none count") {
    const iovec to[] = {{&word, 8}, {text, 4}};
    const iovec there[] = {{gone - 8, 8}, {gone - 4, 4}}, half[] = {{gone - 8, 8}, {gone, 4}};
    CHECK(CheckedReadPieces(to, there, 2));
    CHECK(std::string(text) == "end");
    CHECK_FALSE(CheckedReadPieces(to, half, 2));
  }
  SECTION("a read that takes what there is ends where memory does") {
    CHECK(CheckedReadSome(end - 8, text, sizeof(text)) == 8);
    CHECK(std::string(text) == "the end");
    CHECK(CheckedReadSome(end, text, sizeof(text)) == 0);
  }
  SECTION("what lasts is looked at in its place, and asked for first") {
    LastingMemory memory;
    CHECK(memory.Load(end - 8, &word));
    CHECK(memcmp(&word, "the end", 8) == 0);
    CHECK(memory.Read(end - 4, text, 4));
    CHECK(std::string(text) == "end");
    CHECK(memory.Read(end, text, 0));
    CHECK_FALSE(memory.Load(end - 4, &word));
    CHECK_FALSE(memory.Load(end, &word));
    CHECK_FALSE(memory.Load(0, &word));
    CHECK_FALSE(memory.Load(~0ull - 3, &word));
    CHECK(memory.Load(end - 16, &word));
  }
  munmap(pages, 4096);
}

// From here on this process may not use process_vm_readv; ANSWER is a filter's: an error, or death.
bool ForbidTheCall(uint32_t answer) {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, answer), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

// 0: it reads at the edge of what is mapped as it should. 77: no filter can be installed here.
int ReadInChild(uint32_t answer) {
  const pid_t child = fork();
  if (child == 0) {
    if (!ForbidTheCall(answer)) _exit(77);
    auto* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(pages + 4096, 4096);
    memcpy(pages + 4088, "the end", 8);
    const auto end = reinterpret_cast<uint64_t>(pages + 4096);
    char text[64] = {};
    uint64_t word = 0;
    const bool reads = CheckedReadSome(end - 8, text, sizeof(text)) == 8 && strcmp(text, "the end") == 0;
    _exit(reads && !CheckedLoad(end - 4, &word) && CheckedLoad(end - 8, &word) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

}  // namespace

// First: in a child the way to read must not have been chosen yet.
TEST_CASE("under a filter that kills or refuses memory is read through a file") {
  for (const uint32_t answer : {static_cast<uint32_t>(SECCOMP_RET_KILL_PROCESS), SECCOMP_RET_ERRNO | EPERM}) {
    const int status = ReadInChild(answer);
    if (status != 77) CHECK(status == 0);
  }
}

TEST_CASE("memory that is not there is refused, not touched") { ReadAtTheEdge(); }
