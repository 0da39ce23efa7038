#!/usr/bin/env python3
"""malloc+free pairs, unsampled: ratios against the bare allocator in the same run.

  pair_bench.py --library build/release/interposer/libcadastre.so --program build/release/tests/bench/pair_loop [--smoke]

Runs alternate (bare, preloaded, bare, ...), so drift of the machine hits both; medians of the rounds are compared. Also counts instructions
per pair with callgrind where it is installed: a number that does not depend on noise. Exits 1 if the 64-byte pair on glibc is slower
than --limit (1.3) times bare in more than noise can explain (the best of the rounds is over the limit too); never with --smoke, which only shows that the benchmark works.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile

ALLOCATORS = {
    "glibc": None,
    "jemalloc": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
    "tcmalloc": "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
    "mimalloc": "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0",
}


def run(program, preload, size, millions, threads, out):
    env = dict(os.environ, CADASTRE_OPTIONS=f"interval=512k,out={out}")
    env.pop("LD_PRELOAD", None)
    if preload:
        env["LD_PRELOAD"] = " ".join(preload)
    return float(subprocess.run([program, str(size), str(millions), str(threads)], env=env, check=True, capture_output=True,
                                text=True).stdout)


def instructions(program, preload, out):
    """Instructions of one pair: the difference of two runs that differ by 100,000 pairs."""
    if not shutil.which("valgrind"):
        return None
    counts = []
    for millions in (0.1, 0.2):
        env = dict(os.environ, CADASTRE_OPTIONS=f"interval=512k,out={out}")
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--soname-synonyms=somalloc=nouserintercepts"]
        env.pop("LD_PRELOAD", None)
        if preload:
            env["LD_PRELOAD"] = " ".join(preload)
        text = subprocess.run(command + [program, "64", str(millions), "1"], env=env, capture_output=True, text=True).stderr
        match = re.search(r"Collected : (\d+)", text)
        if not match:
            return None
        counts.append(int(match.group(1)))
    return (counts[1] - counts[0]) / 100000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--limit", type=float, default=1.3)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--millions", type=float, default=10)
    parser.add_argument("--smoke", action="store_true", help="seconds instead of minutes: glibc alone, few rounds")
    options = parser.parse_args()
    rounds, millions = (5, 2) if options.smoke else (options.rounds, options.millions)
    out = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    failed = False
    print(f"{'allocator':10} {'size':>6} {'threads':>7} {'bare ns':>9} {'ours ns':>9} {'ratio':>6} {'added':>7}")
    for name, path in ALLOCATORS.items():
        if path and (options.smoke or not os.path.exists(path)):
            continue
        for size, threads in [(64, 1)] if options.smoke else [(16, 1), (64, 1), (512, 1), (4096, 1), (64, 2)]:
            bare, ours = [], []
            behind = [path] if path else []
            for _ in range(rounds):
                bare.append(run(options.program, behind, size, millions, threads, out))
                ours.append(run(options.program, [options.library] + behind, size, millions, threads, out))
            b, o = statistics.median(bare), statistics.median(ours)
            print(f"{name:10} {size:6} {threads:7} {b:9.2f} {o:9.2f} {o / b:6.2f} {o - b:+7.2f}")
            if not options.smoke and (name, size, threads) == ("glibc", 64, 1) and o / b > options.limit and min(ours) / min(bare) > options.limit:
                print(f"FAIL: {o / b:.2f} is over {options.limit}")
                failed = True
    if not options.smoke:
        bare, ours = instructions(options.program, [], out), instructions(options.program, [options.library], out)
        if bare and ours:
            print(f"instructions a pair (glibc, 64 bytes): bare {bare:.1f}, ours {ours:.1f}, added {ours - bare:.1f}")
        else:
            print("instructions a pair: skipped: valgrind is not installed or refused")
    shutil.rmtree(out, ignore_errors=True)
    return 1 if failed else 0


raise SystemExit(main())
