#!/usr/bin/env python3
"""What exact records of mappings cost: a pair of mmap and munmap of 64 KiB, and the start of a JVM, which maps hundreds of ranges.

  mapping_bench.py --library build/release/interposer/libcadastre.so --program build/release/tests/bench/mapping_loop [--smoke]

Runs alternate (bare, preloaded, bare, ...), so drift of the machine hits both; medians and the best of the rounds are compared. Exits 1
where both are over the bound: 1.15 for the pair, 1.03 for the JVM's start in user and system time; never with --smoke.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402
import ways  # noqa: E402


def pair(command, environment):
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def start_of_jvm(command, environment):
    """Processor seconds of its whole life."""
    return ways.processor_seconds(lambda: subprocess.run(command, env=environment, check=True, capture_output=True))[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--smoke", action="store_true", help="one round each, no judgement")
    options = parser.parse_args()
    out = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    bare = target.clean_environment()
    ours = {**bare, **target.preload_environment(options.library, out, "512k")}
    cases = [("mmap+munmap 64 KiB, ns", pair, [options.program, "2" if options.smoke else "100"], 1.15)]
    for home in programs.jdk_homes():
        cases.append((f"java {programs.java_feature(home)} -version, CPU s", start_of_jvm,
                      [f"{home}/bin/java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-version"], 1.03))
    failed = False
    print(f"{'what':32} {'bare':>9} {'ours':>9} {'median':>7} {'best':>7}")
    for name, measure, command, bound in cases:
        times = {"bare": [], "ours": []}
        for _ in range(1 if options.smoke else options.rounds):
            times["bare"].append(measure(command, bare))
            times["ours"].append(measure(command, ours))
            for file in os.listdir(out):
                os.unlink(os.path.join(out, file))
        medians = {way: statistics.median(values) for way, values in times.items()}
        ratio, best = medians["ours"] / medians["bare"], min(times["ours"]) / min(times["bare"])
        print(f"{name:32} {medians['bare']:9.3f} {medians['ours']:9.3f} {ratio:7.3f} {best:7.3f}", flush=True)
        if not options.smoke and ratio > bound and best > bound:
            print(f"FAIL: over {bound}")
            failed = True
    shutil.rmtree(out, ignore_errors=True)
    return 1 if failed else 0


raise SystemExit(main())
