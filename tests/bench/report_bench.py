#!/usr/bin/env python3
"""What `cadastre report` and `diff` cost: 100,000 sites, a JVM's profile beside what other profilers need for it, and a large debug file.

  report_bench.py --cadastre build/release/report/cadastre --compose build/release/tests/golden/compose_profile \\
    --library build/release/interposer/libcadastre.so

Each figure is the median of five runs: seconds on the clock, seconds of processor time, peak resident MiB. "cold" has an empty symbol cache,
"warm" has the names that the run before left. Exits 1 if the report on 100,000 sites needs 2 s of processor time, or if the one of the JVM needs
200 ms warm or more than a fifth of the time of heaptrack_print or jeprof, whichever is slower, cold. --smoke: small inputs, one run, and only judges that cold and warm
reports say the same.
"""
import argparse
import collections
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

MOST_S_OF_SITES, MOST_S_WARM, PEERS_PER_REPORT = 2.0, 0.2, 5
FRAMES, ADDRESSES, METHODS = (20, 40), 20000, 5000  # of a site; distinct ones of all sites

Cost = collections.namedtuple("Cost", "seconds cpu_s peak_mib")


# By exec a process keeps the highest resident size of who started it, and this one has held profiles of 100,000 sites. So a small
# process starts what is measured: less than its own 10 MiB cannot be told.
STARTER = """
import json, os, sys, time
begin = time.monotonic()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
figures = [time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]
os.write(int(sys.argv[1]), json.dumps([os.waitstatus_to_exitcode(status), figures]).encode())
"""


def cost_of(command, environment=None, cwd=None):
    reader, writer = os.pipe()
    try:
        subprocess.run([sys.executable, "-I", "-S", "-c", STARTER, str(writer), *command], env={**target.clean_environment(), **(environment or {})},
                       cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writer])
        status, figures = json.loads(os.read(reader, 4096))
    finally:
        os.close(reader)
        os.close(writer)
    if status != 0:
        raise AssertionError(f"{command} ended with {status}")
    return Cost(*figures)


class Bench:
    def __init__(self, arguments, scratch):
        self.arguments, self.scratch, self.rounds = arguments, scratch, 1 if arguments.smoke else 5
        self.cache = os.path.join(scratch, "cache")
        self.problems = []

    def print_cost(self, what, command, environment=None, before=lambda: None):
        costs = []
        for _ in range(self.rounds):
            before()
            costs.append(cost_of(command, environment, self.scratch))
        median = Cost(*(statistics.median(values) for values in zip(*costs)))
        print(f"| {what} | {median.seconds:.3f} | {median.cpu_s:.3f} | {median.peak_mib:.0f} |", flush=True)
        return median

    def forget(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def report(self, profile, *flags):
        return [self.arguments.cadastre, "report", profile, *flags]

    def print_reports(self, what, profile):
        """Cold, warm and without a cache; (cold, warm). All three must say the same."""
        cached = {"CADASTRE_SYMBOL_CACHE": self.cache}
        cold = self.print_cost(f"{what}, cold", self.report(profile), cached, self.forget)
        warm = self.print_cost(f"{what}, warm", self.report(profile), cached)
        self.print_cost(f"{what}, no cache", self.report(profile))
        texts = [target.run(self.report(profile, "--format", "json"), environment, cwd=self.scratch).stdout for environment in (cached, {})]
        if texts[0] != texts[1]:
            self.problems.append(f"{what}: the cache changes the report")
        return cold, warm

    def judge(self, what, figure, bound):
        if figure > bound and not self.arguments.smoke:
            self.problems.append(f"{what}: {figure:.3f} s, the bound is {bound:.3f}")


def executable_range(path):
    """(first, last) address of the program header that is executed."""
    with open(path, "rb") as file:
        header = file.read(64)
        offset, (size, count) = struct.unpack_from("<Q", header, 32)[0], struct.unpack_from("<HH", header, 54)
        for i in range(count):
            file.seek(offset + i * size)
            kind, flags, _, address, _, _, bytes_, _ = struct.unpack("<IIQQQQQQ", file.read(56))
            if kind == 1 and flags & 1:
                return address, address + bytes_
    raise AssertionError(f"{path} has no code")


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return notes.split("Build ID: ")[1].split()[0]


def compose(bench, name, sites, library, seed, started):
    """A profile of a JVM-like service: stacks of native frames in `library`, then Java frames; the owner is one of 40 packages."""
    choose = random.Random(seed)
    first, last = executable_range(library)
    addresses = [f"jvm+{choose.randrange(first, last):x}" for _ in range(ADDRESSES)]
    methods = [f"java:com.acme.part{i % 40}.Class{i}.method{i % 7}:{i % 400 + 1}" for i in range(METHODS)]
    lines = [f"started {started}", "uptime 3000", f"library jvm {library} {build_id(library)}", "end exit:0"]
    for site in range(sites):
        depth = choose.randrange(*FRAMES)
        native = depth // 3
        frames = choose.choices(addresses, k=native) + choose.choices(methods, k=depth - native)
        lines += [f"site s{site} {' '.join(frames)}", f"live s{site} 4096 526000 1"]
    text, profile = os.path.join(bench.scratch, f"{name}.txt"), os.path.join(bench.scratch, f"{name}.cad")
    with open(text, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run([bench.arguments.compose, text, profile], check=True)
    os.unlink(text)
    return profile


def large_profiles(bench, sites):
    homes = programs.jdk_homes()
    library = os.path.join(homes[-1], "lib/server/libjvm.so") if homes else os.path.realpath(bench.arguments.cadastre)
    before, after = (compose(bench, f"sites{i}", sites, library, seed=1, started=i * 1000) for i in (0, 1))
    what = f"{sites:,} sites"
    cached = {"CADASTRE_SYMBOL_CACHE": bench.cache}
    _, warm = bench.print_reports(f"report, {what}", after)
    bench.judge(f"report on {what}", warm.cpu_s, MOST_S_OF_SITES)
    for flags in (["--by", "site"], ["--format", "json"], ["--format", "csv", "--by", "site"]):
        bench.print_cost(f"report {' '.join(flags)}, {what}, warm", bench.report(after, *flags), cached)
    bench.print_cost(f"diff, {what}, warm", [bench.arguments.cadastre, "diff", before, after], cached)


JAVAC_SOURCE = "package com.acme.made; public class Made{n} {{ int work(int x) {{ return java.util.List.of(x, {n}).stream().mapToInt(i -> i).sum(); }} }}\n"


def record_javac(bench, home, prefix, environment):
    sources = []
    for number in range(3 if bench.arguments.smoke else 100):
        sources.append(os.path.join(bench.scratch, f"Made{number}.java"))
        with open(sources[-1], "w", encoding="utf-8") as file:
            file.write(JAVAC_SOURCE.format(n=number))
    command = [*prefix, f"{home}/bin/javac", "-J-XX:-UsePerfData", "-d", f"{bench.scratch}/classes", *sources]
    ran = target.run(command, environment, timeout=600)
    if ran.status != 0:
        raise AssertionError(f"{command}: {ran.stderr}")
    return ran


def jvm(bench):
    homes = programs.jdk_homes()
    if not homes:
        print("left out: no JDK found")
        return
    home = homes[-1]
    ran = record_javac(bench, home, [], target.preload_environment(bench.arguments.library, bench.scratch, "64k"))
    cold, warm = bench.print_reports(f"report, javac of JDK {programs.java_feature(home)}", target.profiles_of(bench.scratch, ran.pid)[0])
    bench.judge("report of a JVM, warm", warm.seconds, MOST_S_WARM)
    slowest_s = 0
    for peer in () if bench.arguments.smoke else (heaptrack_print, jeprof):
        cost = peer(bench, home)
        if cost is not None:
            print(f"{peer.__name__} over the cold report: {cost.seconds / cold.seconds:.1f}×")
            slowest_s = max(slowest_s, cost.seconds)
    if slowest_s > 0:
        bench.judge(f"{PEERS_PER_REPORT} cold reports in the time of the slower peer", PEERS_PER_REPORT * cold.seconds, slowest_s)


def heaptrack_print(bench, home):
    if not shutil.which("heaptrack_print"):
        print("left out: heaptrack is not installed")
        return None
    recorded = os.path.join(bench.scratch, "heaptrack")
    record_javac(bench, home, ["heaptrack", "-o", recorded], {})
    file = next(entry.path for entry in os.scandir(bench.scratch) if entry.name.startswith("heaptrack.") and "tmp" not in entry.name)
    return bench.print_cost("heaptrack_print", ["heaptrack_print", file])


def jeprof(bench, home):
    library = target.installed_library("libjemalloc.so.2")
    if not shutil.which("jeprof") or not library:
        print("left out: jeprof is not installed")
        return None
    prefix = os.path.join(bench.scratch, "jeprof")
    record_javac(bench, home, [], {"LD_PRELOAD": library, "MALLOC_CONF": f"prof:true,prof_active:true,lg_prof_sample:16,prof_final:true,prof_prefix:{prefix}"})
    heaps = [entry.path for entry in os.scandir(bench.scratch) if entry.name.startswith("jeprof.") and entry.name.endswith(".heap")]
    if not heaps:
        print("left out: this jemalloc was built without its profiler")
        return None
    return bench.print_cost("jeprof --text", ["jeprof", "--text", f"{home}/bin/java", max(heaps, key=os.path.getsize)])


# A compilation unit of some megabytes of DWARF, as C++ has them.
UNIT = """#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
static std::map<std::string, std::unordered_map<int, std::function<int(std::string)>>> table;
extern "C" int entry_point(const char* text) {
  std::smatch found;
  std::string words = text;
  std::regex_search(words, found, std::regex("a(b|c)*d"));
  table[words][1] = [](std::string s) { std::sort(s.begin(), s.end()); return static_cast<int>(s.size()); };
  return table[words][1](words);
}
"""


def large_debug_file(bench, units):
    if not shutil.which("g++") or not shutil.which("objcopy"):
        print("left out: no g++ or objcopy")
        return
    directory = os.path.join(bench.arguments.disk, f"cadastre-report-bench-{os.getpid()}")
    os.mkdir(directory)
    try:
        unit, library, debug = (os.path.join(directory, name) for name in ("unit.o", "liblarge.so", "liblarge.debug"))
        with open(os.path.join(directory, "unit.cc"), "w", encoding="utf-8") as file:
            file.write(UNIT)
        subprocess.run(["g++", "-g", "-O1", "-fPIC", "-c", "unit.cc", "-o", unit], cwd=directory, check=True)
        for i in range(units):
            subprocess.run(["objcopy", f"--redefine-sym=entry_point=entry_point_{i}", unit, f"{i}.o"], cwd=directory, check=True)
        subprocess.run(["g++", "-shared", "-Wl,--build-id=sha1", "-o", library] + [f"{i}.o" for i in range(units)], cwd=directory, check=True)
        subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", library], check=True)
        for i in range(units):
            os.unlink(os.path.join(directory, f"{i}.o"))
        # Two hundred entry points of all, so that most units are nobody's.
        names = subprocess.run(["nm", debug], check=True, capture_output=True, text=True).stdout.split("\n")
        starts = [line.split()[0] for line in names if " T entry_point_" in line]
        chosen = random.Random(1).sample(starts, min(200, len(starts)))
        lines = [f"library large {library} {build_id(library)}", "uptime 100", "end exit:0"]
        for i, start in enumerate(chosen):
            lines += [f"site s{i} large+{int(start, 16) + 30:x}", f"live s{i} 4096 526000 1"]
        text, profile = os.path.join(directory, "p.txt"), os.path.join(directory, "p.cad")
        with open(text, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        subprocess.run([bench.arguments.compose, text, profile], check=True)
        bench.print_reports(f"report, debug file of {os.path.getsize(debug) >> 20} MiB, {len(chosen)} of {units} units", profile)
        document = target.report(bench.arguments.cadastre, profile)
        lines = sum(frame["line"] is not None for site in document["sites"] for frame in site["frames"])
        if lines < len(chosen):
            bench.problems.append(f"the debug file was not read: {lines} lines")
    finally:
        target.remove(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cadastre", "compose", "library"):
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    parser.add_argument("--disk", default="/var/tmp", help="directory for the library with the large debug file (500 MB; needs twice that)")
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()
    scratch = target.scratch_directory("report-bench")
    try:
        bench = Bench(arguments, scratch)
        print("| | s | processor s | peak MiB |\n|---|---|---|---|")
        large_profiles(bench, 1000 if arguments.smoke else 100_000)
        jvm(bench)
        large_debug_file(bench, 2 if arguments.smoke else 300)
        target.finish(bench.problems)
    finally:
        target.remove(scratch)


if __name__ == "__main__":
    main()
