#!/usr/bin/env python3
"""What one warm capture of 20 native and 30 Java frames costs, for each JDK and compiler mode. The bound is 1 µs (median).

The clock's own cost, about 25 ns, is in the figures. Usage: java_walk_bench.py --oracle libwalk_oracle.so --stress DIR [--smoke]
"""
import argparse
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

MODES = {"C2": [], "C1": ["-XX:TieredStopAtLevel=1"], "interpreter": ["-Xint"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--stress", required=True)
    parser.add_argument("--smoke", action="store_true", help="few calls, no judgement")
    args = parser.parse_args()
    homes = programs.jdk_homes()
    if not homes:
        print("skipped: no JDK found")
        sys.exit(target.SKIP)
    calls = 20000 if args.smoke else 300000
    print(f"{'JDK':4} {'mode':12} {'native':>6} {'Java':>5} {'median':>8} {'p90':>8}")
    slow = []
    for home in homes:
        for mode, flags in MODES.items():
            scratch = target.scratch_directory("walk")
            try:
                medians = []
                for _ in range(1 if args.smoke else 5):
                    out = f"{scratch}/times"
                    outcome = target.run(
                        [f"{home}/bin/java", *flags, f"-agentpath:{args.oracle}", f"-Djava.library.path={args.stress}", "-cp",
                         f"{args.stress}/stress.jar", "com.acme.stress.Depth", str(calls), "28", "18"],
                        {"LD_PRELOAD": args.oracle, "CADASTRE_ORACLE_OUT": out, "CADASTRE_ORACLE": "time"})
                    if outcome.status != 0:
                        print(f"FAILED: {outcome}")
                        sys.exit(1)
                    with open(out) as file:
                        row = {name: int(value) for name, value in (line.split() for line in file)}
                    medians.append(row["median_ns"])
                median = sorted(medians)[len(medians) // 2]
                print(f"{programs.java_feature(home):<4} {mode:12} {row['native_frames']:6} {row['java_frames']:5} {median:5} ns "
                      f"{row['p90_ns']:5} ns", flush=True)
                if median > 1000:
                    slow.append(f"JDK {programs.java_feature(home)} {mode}: {median} ns")
            finally:
                target.remove(scratch)
    if slow and not args.smoke:
        print(f"over 1 µs: {'; '.join(slow)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
