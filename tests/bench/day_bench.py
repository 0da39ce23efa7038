#!/usr/bin/env python3
"""A day's worth of samples: the profile stays within its cap, and the slow path costs at the end what it cost at the start.

  day_bench.py --library build/release/interposer/libcadastre.so --program build/release/tests/bench/day_loop --cadastre build/release/report/cadastre

A service that allocates 200 MB/s gives 400 samples a second at 512 KiB: 35 million in 24 hours. Here the same number comes from allocations of
16 to 1,015 bytes at an interval of 128 bytes, of which nearly all are samples. Costs are processor time of the threads, so other
processes count little. Exits 1 if the profile is larger than its cap, if a sample was dropped, or if the last three tenths cost more than
--limit (1.15) times what the first three did; with --smoke (300,000 samples) the last is only printed.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

A_DAY = 35  # millions of samples
INTERVAL = 128
MEMORY = 8 << 20


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "program", "cadastre"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--millions", type=float, default=A_DAY * 1.15, help="allocations, of which some 87 % are samples")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--limit", type=float, default=1.15)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.millions = 0.35
    out = target.scratch_directory("day")
    try:
        begin = time.monotonic()
        environment = {**target.clean_environment(), "LD_PRELOAD": args.library,
                       "CADASTRE_OPTIONS": f"interval={INTERVAL},memory={MEMORY},out={out}"}
        ran = subprocess.run([args.program, str(args.millions), str(args.threads)], env=environment, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - begin
        tenths = [float(line) for line in ran.stdout.split()]
        profile = os.path.join(out, os.listdir(out)[0])
        status = os.stat(profile)
        printed = target.run([args.cadastre, "print", profile, "--live", "0"]).stdout
        document = target.report(args.cadastre, profile)
    finally:
        target.remove(out)
    counters = {name: int(value) for name, value in re.findall(r"\b(samples|dropped_live_full|interval_doublings|mapping_events_lost) (\d+)", printed)}
    samples, losses = document["profile"]["samples"], document["losses"]
    growth = statistics.mean(tenths[-3:]) / statistics.mean(tenths[:3])
    print(f"{samples:,} samples in {seconds:.0f} s ({args.threads} threads), interval doubled {counters.get('interval_doublings', 0)} times")
    print(f"file: {status.st_blocks * 512 / 1024:.0f} KiB in use, {status.st_size / 1024:.0f} KiB long, cap {MEMORY / 1024:.0f} KiB")
    print("ns of an allocation and a free, by tenth of the run: " + " ".join(f"{tenth:.0f}" for tenth in tenths))
    print(f"the last three tenths over the first three: {growth:.3f}")
    problems = []
    if status.st_size > MEMORY or status.st_blocks * 512 > MEMORY + (1 << 16):
        problems.append("the profile is larger than its cap")
    if losses["dropped_samples"] or losses["volume_dropped"] or losses["sites_overflowed"]:
        problems.append(f"losses: {losses}")
    if samples < 0.8 * args.millions * 1e6:
        problems.append(f"only {samples} samples")
    if growth > args.limit and not args.smoke:
        problems.append(f"the slow path has become {growth:.3f} times as dear")
    target.finish(problems)


if __name__ == "__main__":
    main()
