#!/usr/bin/env python3
"""A JVM program whose memory is mostly the JVM's own: javac on 200 generated classes, bare and recorded, in alternating runs.

Medians of five; the bound is 1.3 times the bare time with every allocation recorded. Usage: javac_bench.py --library LIB [--smoke]
"""
import argparse
import os
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

SOURCE = """package com.acme.generated;
import java.util.*;
import java.util.function.*;
public class Generated{n} {{
  private final Map<String, List<Integer>> values = new HashMap<>();
  enum Kind {{ FIRST, SECOND, THIRD }}
  record Pair(String name, int count) {{}}
  public int work(Kind kind, int count) {{
    IntUnaryOperator twice = x -> x * 2 + count;
    switch (kind) {{
      case FIRST: values.computeIfAbsent("first" + count, k -> new ArrayList<>()).add(twice.applyAsInt({n})); break;
      case SECOND: for (Pair pair : List.of(new Pair("a", 1), new Pair("b", {n}))) values.put(pair.name(), List.of(pair.count())); break;
      default: values.clear();
    }}
    return values.values().stream().flatMap(List::stream).mapToInt(Integer::intValue).sum();
  }}
}}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--smoke", action="store_true", help="ten classes, one run, no judgement")
    args = parser.parse_args()
    homes = programs.jdk_homes()
    if not homes:
        print("skipped: no JDK found")
        sys.exit(target.SKIP)
    slow = []
    for home in homes:
        scratch = target.scratch_directory("javac")
        try:
            sources = []
            for number in range(10 if args.smoke else 200):
                sources.append(f"{scratch}/Generated{number}.java")
                with open(sources[-1], "w") as file:
                    file.write(SOURCE.format(n=number))
            ways = {"bare": {}, "512k": target.preload_environment(args.library, scratch, "512k"),
                    "1": target.preload_environment(args.library, scratch, "1")}
            times = {way: [] for way in ways}
            for _ in range(1 if args.smoke else 5):
                for way, environment in ways.items():
                    begin = time.monotonic()
                    outcome = target.run([f"{home}/bin/javac", "-J-XX:-UsePerfData", "-d", f"{scratch}/classes", *sources], environment,
                                         timeout=300)
                    times[way].append(time.monotonic() - begin)
                    if outcome.status != 0:
                        print(f"FAILED: {outcome}")
                        sys.exit(1)
                    for profile in target.profiles_of(scratch, outcome.pid):
                        os.unlink(profile)
            medians = {way: sorted(values)[len(values) // 2] for way, values in times.items()}
            print(f"JDK {programs.java_feature(home)}: bare {medians['bare']:.2f} s, interval 512k {medians['512k'] / medians['bare']:.2f}×, "
                  f"interval 1 {medians['1'] / medians['bare']:.2f}×", flush=True)
            if medians["1"] > 1.3 * medians["bare"]:
                slow.append(f"JDK {programs.java_feature(home)}: {medians['1'] / medians['bare']:.2f}×")
        finally:
            target.remove(scratch)
    if slow and not args.smoke:
        print(f"over 1.3×: {'; '.join(slow)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
