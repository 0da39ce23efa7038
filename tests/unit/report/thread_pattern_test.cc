// Which thread names are one row: too eager, and two different threads are charged as one; too shy, and each worker of
// a pool is a row of its own.
#include "report/thread_pattern.h"

#include "tests/support/catch.h"

namespace cadastre {
namespace {

std::string Pattern(const char* name) { return ThreadPattern(name, "java"); }

TEST_CASE("A number that counts workers goes", "[thread_pattern]") {
  CHECK(Pattern("pool-3-thread-12") == "pool-*-thread-*");
  CHECK(Pattern("pool-1234-thread-1") == "pool-*-thread-*");
  CHECK(Pattern("ForkJoinPool-1-worker-3") == "ForkJoinPool-*-worker-*");
  CHECK(Pattern("GC Thread#4") == "GC Thread#*");
  CHECK(Pattern("G1 Conc#0") == "G1 Conc#*");
  CHECK(Pattern("C2 CompilerThread0") == "C2 CompilerThread*");
  CHECK(Pattern("C1 CompilerThre") == "C1 CompilerThre");
  CHECK(Pattern("Thread-7") == "Thread-*");
  CHECK(Pattern("worker12") == "worker*");
  CHECK(Pattern("kworker/0:1") == "kworker/*:*");
  CHECK(Pattern("stage_1_2") == "stage_*_*");
  CHECK(Pattern("flush-worker-1") == "flush-worker-*");
}

TEST_CASE("A number that is part of a name stays", "[thread_pattern]") {
  for (const char* name : {"h08_new_family", "h08_new_family.", "x86_64", "log4j", "utf8", "sha256", "md5", "C2",
                           "i18n-io", "python3.11", "s3client", "main", "", "42", "8080-exec"}) {
    CHECK(Pattern(name) == name);
  }
}

TEST_CASE("A port tells two pools apart", "[thread_pattern]") {
  CHECK(Pattern("http-nio-8080-exec-12") == "http-nio-8080-exec-*");
  CHECK(Pattern("http-nio-443-exec-1") == "http-nio-443-exec-*");
  CHECK(Pattern("https-jsse-nio-65535-A") == "https-jsse-nio-65535-A");
  CHECK(Pattern("reader-3-of-4-x") == "reader-*-of-*-x");
}

TEST_CASE("A thread that was never named keeps the name that it inherited", "[thread_pattern]") {
  CHECK(ThreadPattern("python3", "python3") == "python3");
  CHECK(ThreadPattern("gcc-12", "gcc-12") == "gcc-12");
  CHECK(ThreadPattern("gcc-12", "java") == "gcc-*");
  Profile profile;
  profile.exe = "/opt/long-program-123456";
  profile.pid = 7;
  profile.threads = {{}, {8, 0, "worker-1"}};
  CHECK(UnnamedThreadName(profile) == "long-program-12");
  profile.threads.push_back({7, 0, "python3"});  // started through a link of that name
  CHECK(UnnamedThreadName(profile) == "python3");
}

}  // namespace
}  // namespace cadastre
