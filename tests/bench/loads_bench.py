#!/usr/bin/env python3
"""The loads of loads.cc under each allocator, bare and recorded, and under the profilers that are installed: one run, medians, ratios.

  loads_bench.py --library LIB --loads build/release/tests/bench/loads [--forwarding LIB] [--rounds 5] [--json FILE] [--smoke]

Alternating runs, so drift of the machine hits every way. A profiler that records every allocation (heaptrack, Cadastre at interval 1) is
slower by so much that it has loads enough in --exact. Prints Markdown; --json writes the medians.
"""
import argparse
import json
import os
import re
import subprocess

import ways


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--loads", required=True)
    parser.add_argument("--forwarding")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one load in one run, at least")
    parser.add_argument("--only", default=".", help="loads whose name matches")
    parser.add_argument("--allocators", default="glibc,jemalloc,tcmalloc,mimalloc")
    parser.add_argument("--exact", action="store_true", help="interval 1 and heaptrack, on glibc")
    parser.add_argument("--peer-library", action="append", default=[], help="another profiler's library, by path")
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    with ways.Scratch() as scratch:
        if args.exact:
            found = ways.ways(scratch, args.library, intervals=("512k", "1"), peers=("heaptrack",), more=args.peer_library)
        else:
            found = ways.ways(scratch, args.library, args.allocators.split(","), forwarding=args.forwarding,
                              peers=("jemalloc prof", "gperftools"), more=args.peer_library)

        def measure(way):
            command = [args.loads, "--benchmark_format=json", f"--benchmark_filter={args.only}",
                       f"--benchmark_min_time={0.001 if args.smoke else args.seconds}"]
            environment = {**ways.target.clean_environment(), **way.environment}
            done = subprocess.run(way.command(command), env=environment, check=True, capture_output=True, text=True)
            scratch.empty()
            text = done.stdout[done.stdout.index("{\n"):done.stdout.rindex("\n}") + 2]  # heaptrack speaks before and after
            return {re.sub("/iterations:[0-9]+|/real_time", "", load["name"]): load["real_time"] for load in json.loads(text)["benchmarks"]}

        figures = ways.alternate(1 if args.smoke else args.rounds, found, measure)
        ways.print_table(figures, found, "ns")
        if args.json:
            ways.write_json(args.json, os.path.basename(args.loads), "ns", figures, found)


if __name__ == "__main__":
    main()
