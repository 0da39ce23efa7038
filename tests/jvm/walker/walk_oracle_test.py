#!/usr/bin/env python3
"""Java frames as captured are what the JVM itself says, in a stress with everything that makes stacks hard to walk.

At most one stack in a thousand may differ from AsyncGetCallTrace's (walk_oracle.cc); where that one is known to be wrong, JVMTI decides.
With -Xcomp AsyncGetCallTrace gives an error for most stacks, and for others the debug information of a neighbouring call: JVMTI is the
oracle there. (Its first round compiles everything, one method after the other, and with Shenandoah takes longer than a whole run is meant to:
108 stacks and none different, on JDK 17 and 25. So the stress counts its seconds from the end of that round.) Virtual threads are compared in runs of their own, with JVMTI too: none of their stacks may differ, and of those of which a
part lies on the Java heap most must be whole (a collector may always come between; ZGC's references are often not up to date). By default a slice of the matrix that changes with the date; --all runs each JDK, compiler mode and collector until
100,000 stacks were compared.
"""
import argparse
import datetime
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../support", "../../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

MODES = {"default": [], "int": ["-Xint"], "c1": ["-XX:TieredStopAtLevel=1"], "comp": ["-Xcomp"]}
COLLECTORS = {"serial": "-XX:+UseSerialGC", "parallel": "-XX:+UseParallelGC", "g1": "-XX:+UseG1GC", "z": "-XX:+UseZGC",
              "shenandoah": "-XX:+UseShenandoahGC"}
WANTED = 100000


def run_once(args, java, flags, jvmti, seconds, words=()):
    out = os.path.join(args.scratch, "counts")
    environment = {"LD_PRELOAD": args.oracle, "CADASTRE_ORACLE_OUT": out, "CADASTRE_ORACLE": "jvmti" if jvmti else "asgct"}
    command = [java, *flags, "-Xmx256m", f"-agentpath:{args.oracle}", f"-Djava.library.path={args.stress}", "-jar",
               f"{args.stress}/stress.jar", str(seconds), "2", *words]
    outcome = target.run(command, environment, cwd=args.scratch, timeout=240)
    if outcome.status != 0 or "rounds done" not in outcome.stdout:
        raise AssertionError(f"{' '.join(command)}\nended with {outcome.status}: {outcome.stdout[-2000:]}{outcome.stderr[-2000:]}")
    with open(out) as file:
        counts = {name: int(value) for name, value in (line.split() for line in file)}
    os.unlink(out)
    return counts, outcome.stderr


def judge(args, java, name, flags, wanted):
    """Repeats until enough stacks were compared."""
    jvmti = "-Xcomp" in flags
    total, stderr = {}, ""
    for _ in range(30):
        counts, errors = run_once(args, java, flags, jvmti, args.seconds)
        stderr = stderr or errors
        total = {key: total.get(key, 0) + value for key, value in counts.items()}
        compared = total["equal"] + total["different"] + total["oracle_only"]
        if compared >= wanted:
            break
    wrong = total["different"] - total["decided_for_walker"] + total["oracle_only"]
    print(f"{name}: {compared} compared, {total['different']} different ({total['decided_for_walker']} decided for us by JVMTI, "
          f"{total['decided_for_oracle']} against us), {total['oracle_only']} without our frames, {total['walker_only']} of ours alone, "
          f"{total['oracle_errors']} errors of the oracle, {total['cut']} cut", flush=True)
    problems = []
    if compared < wanted:
        problems.append(f"{name}: only {compared} stacks could be compared")
    if wrong * 1000 > compared or total["decided_for_oracle"] > 0 or total["cut"] * 1000 > total["walks"]:
        problems.append(f"{name}: more than one stack in a thousand is wrong or cut\n{stderr[:4000]}")
    return problems


def judge_virtual_threads(args, java, name, flags, wanted):
    """The same for virtual threads that have waited."""
    total, stderr = {}, ""
    for _ in range(30):
        counts, errors = run_once(args, java, flags, True, args.seconds, ["virtual"])
        stderr = stderr or errors
        total = {key: total.get(key, 0) + value for key, value in counts.items()}
        if total["finished_equal"] >= wanted:
            break
    print(f"{name} virtual: {total['equal']} compared, {total['different']} different, {total['finished_from_heap']} finished from the "
          f"heap, {total['finished_equal']} of them compared, {total['continuations']} cut there", flush=True)
    problems = []
    if total["finished_equal"] < wanted:
        problems.append(f"{name} virtual: only {total['finished_equal']} stacks that lie on the heap could be compared")
    if total["different"] > 0:
        problems.append(f"{name} virtual: {total['different']} stacks differ\n{stderr[:4000]}")
    if total["continuations"] > total["finished_from_heap"]:
        problems.append(f"{name} virtual: {total['continuations']} stacks are cut at the heap")
    return problems


def has_collector(java, flag):
    return target.run([java, flag, "-version"]).status == 0


def slices(homes, everything, day):
    """(name, java, flags) to run."""
    for number, home in enumerate(homes):
        java = f"{home}/bin/java"
        collectors = [name for name, flag in COLLECTORS.items() if has_collector(java, flag)]
        modes = list(MODES)
        if everything:
            chosen = [(mode, collector) for mode in modes for collector in collectors]
        else:
            chosen = [(modes[(day + number) % len(modes)], collectors[(day // len(modes) + number) % len(collectors)])]
        for mode, collector in chosen:
            yield f"{home} {mode} {collector}", java, [*MODES[mode], COLLECTORS[collector]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True, help="libwalk_oracle.so")
    parser.add_argument("--stress", required=True, help="directory of stress.jar and libstress.so")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--java", action="append", help="homes of JDKs (default: those found)")
    parser.add_argument("--seconds", type=float, default=4)
    args = parser.parse_args()
    homes = args.java or programs.jdk_homes()
    if not homes:
        print("skipped: no JDK found")
        sys.exit(target.SKIP)
    args.scratch = target.scratch_directory("oracle")
    problems = []
    try:
        for name, java, flags in slices(homes, args.all, datetime.date.today().toordinal()):
            try:
                problems += judge(args, java, name, flags, WANTED if args.all else 5000)
                if "-Xcomp" not in flags and int(programs.java_feature(os.path.dirname(os.path.dirname(java)))) >= 21:
                    problems += judge_virtual_threads(args, java, name, flags, 20000 if args.all else 1000)
            except AssertionError as error:
                problems.append(f"{name}: {error}")
    finally:
        target.remove(args.scratch)
    for problem in problems:
        print(f"FAILED: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
