#!/usr/bin/env python3
"""Threads have the names that Java gives them, at full length and no others: under each collector, with references of each form.

names/ThreadNames.java says what its threads are called. With every allocation recorded each of its threads has samples, so each name
must be there whole; while collectors move strings about, a name may be missing (then the kernel's is there) but never be another's.
A try that fails is made again with later samples: of many threads nearly all must have succeeded.
"""
import argparse
import collections
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../support", "../../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

EVERY, MOST = ("Serial", "Parallel", "G1", "Z", "Shenandoah"), ("G1",)
# Flags, and the collectors under which they are tried without --all. What a JDK does not know is left out.
FORMS = {
    "as it is": ([], EVERY),
    "no compressed oops": (["-XX:-UseCompressedOops"], MOST),
    "no compressed classes": (["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"], MOST),
    "no compact strings": (["-XX:-CompactStrings"], MOST),
    "compact headers": (["-XX:+UseCompactObjectHeaders"], ("G1", "Z")),
    "shifted oops": (["-XX:ObjectAlignmentInBytes=16"], MOST),
    "heap above 32 GB": (["-XX:HeapBaseMinAddress=40g"], MOST),
    "one generation": (["-XX:-ZGenerational"], ("Z",)),
    "generational": (["-XX:+ZGenerational"], ("Z",)),
}
# Of the many threads, those that may go without their whole name: each had some twenty samples to be read at.
MAY_MISS = 0.02
KERNEL_BYTES = 15


def kernel_names(name):
    """What HotSpot may make of a name for the kernel."""
    data = b"".join(chr(unit).encode("utf-8", "surrogatepass") for unit in
                    memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H"))
    cut = {data[:KERNEL_BYTES]}
    if len(data) > KERNEL_BYTES:
        cut.add(data[:7] + b".." + data[-6:])
    return {each.decode("utf-8", "replace") for each in cut}


def in_profile(name):
    """A Java name as the profile has it."""
    text = name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return re.sub(r"[\x00-\x1f\x7f]", "?", text)


def run(args, home, out, options, threads, at_a_time):
    command = [f"{home}/bin/java", "-Xmx96m", *options, "-cp", args.classes, "ThreadNames", str(threads), str(at_a_time)]
    outcome = target.run(command, target.preload_environment(args.library, out, "1", extra="memory=512m"), timeout=300)
    if outcome.status != 0:
        return None, f"ended with {outcome.status}: {(outcome.stderr or outcome.stdout)[-1000:]}"
    profile = target.profiles_of(out, outcome.pid)[-1]
    text = target.run([args.cadastre, "print", profile], timeout=120).stdout
    os.unlink(profile)
    given = collections.defaultdict(list)
    for tid, name in re.findall(r"^NAME (\d+) (.*)$", outcome.stdout, re.M):
        plain = re.sub(r"\\u([0-9a-f]{4})", lambda unit: chr(int(unit.group(1), 16)), name)
        given[int(tid)].append(plain)
    found = collections.defaultdict(list)
    for _, tid, name in target.printed_threads(text):
        found[int(tid)].append(name)
    return (given, found), None


def judge(given, found):
    """Each thread's last name must be among those found for its id (ids are used again); no name may be a stranger's."""
    problems, missed = [], []
    for tid, names in given.items():
        whole = [in_profile(name) for name in names]
        cut = {each for name in names for each in kernel_names(name)}
        wrong = [name for name in found[tid] if name not in whole and name not in cut]
        # A thread that begins still has the name of the one that made it.
        wrong = [name for name in wrong if name not in ("java", "main", "makes-garbage-all-the-time")]
        if wrong:
            problems.append(f"thread {tid} is called {wrong}, the program called it {names}")
        if whole[-1] not in found[tid]:
            missed.append(f"{tid}: {names[-1]!r}, found {found[tid]}")
    fixed = [miss for miss in missed if "one-of-many" not in miss]
    if fixed:
        problems.append(f"no whole name: {fixed}")
    if len(missed) > MAY_MISS * len(given):
        problems.append(f"{len(missed)} of {len(given)} threads have no whole name: {missed[:3]}")
    return problems, len(missed)


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "classes"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--home", action="append", help="instead of the JDKs found")
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--at-a-time", type=int, default=50)
    parser.add_argument("--all", action="store_true", help="every form with every collector")
    args = parser.parse_args()
    homes = args.home or programs.jdk_homes()
    if not homes:
        print("skipped: no JDK found")
        sys.exit(target.SKIP)
    problems, ran, seen = [], 0, 0
    out = target.scratch_directory("names")
    try:
        for home in homes:
            for collector in EVERY:
                for form, (options, collectors) in FORMS.items():
                    if not args.all and collector not in collectors:
                        continue
                    seen += 1
                    if not args.all and not target.is_todays(seen, 2):
                        continue
                    flags = [f"-XX:+Use{collector}GC", *options]
                    # A flag that this JDK lacks, or that does not go with the collector.
                    if target.run([f"{home}/bin/java", *flags, "-version"]).status != 0:
                        continue
                    result, problem = run(args, home, out, flags, args.threads, args.at_a_time)
                    ran += 1
                    where = f"{home} {collector}, {form}"
                    if problem:
                        problems.append(f"{where}: {problem}")
                        continue
                    wrong, missed = judge(*result)
                    problems += [f"{where}: {each}" for each in wrong]
                    print(f"{where}: {len(result[0])} threads, {missed} without their whole name", flush=True)
    finally:
        target.remove(out)
    if ran == 0:
        problems.append("no JDK ran")
    target.finish(problems)


if __name__ == "__main__":
    main()
