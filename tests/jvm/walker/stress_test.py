#!/usr/bin/env python3
"""The stress under libcadastre.so itself: nothing crashes, hangs or prints anything else, however the JVM ends.

Each run is the stress for some seconds with one combination of JDK, flags, allocator behind, interval and way to end; the order is
shuffled by the date, so that over time all of them are run. --minutes N goes on for that long for each JDK.
"""
import argparse
import datetime
import itertools
import os
import random
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../support", "../../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

FLAGS = [[], ["-Xint"], ["-XX:TieredStopAtLevel=1"], ["-Xcomp"], ["-Xcheck:jni"], ["-XX:NativeMemoryTracking=detail"],
         ["-XX:+UseSerialGC"], ["-XX:+UseParallelGC"], ["-XX:+UseZGC"], ["-XX:+UseShenandoahGC"], ["-XX:+DeoptimizeALot"]]
WORDS = [[], ["overflow"], ["oome"], ["virtual"], ["overflow", "oome"]]
# How it ends: word for the program or signal, status, whether it still says that it is done.
ENDS = [("return", 0, True), ("exit", 3, True), ("halt", 4, True), (signal.SIGTERM, 143, False), (signal.SIGKILL, 137, False)]
INTERVALS = ["512k", "4k", "1"]


def allocators():
    found = [None]
    for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4"):
        path = f"/usr/lib/x86_64-linux-gnu/{name}"
        if os.path.exists(path):
            found.append(path)
    return found


def feature(home):
    return int(programs.java_feature(home))


def is_accepted(java, flags):
    return target.run([java, *flags, "-version"]).status == 0


def run_once(args, home, flags, words, behind, interval, end):
    word, status, says_done = end
    java = f"{home}/bin/java"
    out = target.scratch_directory("stress")
    environment = dict(target.clean_environment(), **target.preload_environment(args.library, out, interval, behind=behind,
                                                                                extra="exe=java"))
    ending = [word] if isinstance(word, str) else ["wait"]
    command = [java, *flags, "-Xmx128m", f"-XX:ErrorFile={out}/hs_err.log", f"-Djava.library.path={args.stress}", "-jar",
               f"{args.stress}/stress.jar", str(args.seconds), "3", *words, *ending]
    problems = []
    try:
        process = subprocess.Popen(command, env=environment, cwd=out, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            if not isinstance(word, str):
                process.stdout.readline()  # "started": a JVM that compiles everything first takes its time
                time.sleep(args.seconds * 0.7)  # in the middle of it
                process.send_signal(word)
            stdout, stderr = process.communicate(timeout=args.seconds + 150)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            problems.append("hangs")
        got = process.returncode if process.returncode >= 0 else 128 - process.returncode
        if got != status:
            problems.append(f"ended with {got}, not {status}")
        if says_done and "rounds done" not in stdout:
            problems.append("did not say that it is done")
        if os.path.exists(f"{out}/hs_err.log"):
            problems.append("crashed: " + open(f"{out}/hs_err.log").read()[:3000])
        unexpected = [line for line in stderr.splitlines() if "cadastre" in line]
        if unexpected:
            problems.append(f"stderr: {unexpected[:3]}")
        if not problems:
            problems += judge_profile(args, out, process.pid)
        elif stdout or stderr:
            problems.append(stdout[-1500:] + stderr[-1500:])
    finally:
        target.remove(out)
    return problems


def judge_virtual_threads(text):
    """Their stacks end at their own root, or say that they are cut; what carries them is never in them."""
    problems = []
    for site in text.split("\nsite ")[1:]:
        if "Stress.lambda$virtualThreads" not in site:
            continue
        frames = [line for line in site.splitlines()[1:] if line.startswith("  ")]
        if any("ForkJoin" in frame or "runContinuation" in frame for frame in frames):
            problems.append(f"a carrier's frames are in a virtual thread's stack:\n{site[:2000]}")
        if "Continuation.enterSpecial" not in frames[-1] and "[cut where the virtual thread" not in site:
            problems.append(f"a virtual thread's stack ends without saying why:\n{site[:2000]}")
    return problems[:2]


def judge_profile(args, out, pid):
    profiles = target.profiles_of(out, pid)
    if len(profiles) != 1:
        return [f"{len(profiles)} profiles"]
    text = target.run([args.cadastre, "print", profiles[0], "--live", "0"], timeout=120).stdout
    facts = dict(line.split(" ", 1) for line in text.splitlines() if " " in line and line[0] != " ")
    samples = int(facts["samples"].split()[0])
    cut = int(text.split("truncated_stacks ")[1].split()[0])
    continuations = text.count("[cut where the virtual thread")
    depth = text.count("[cut at the depth limit")
    unknown = sum(text.count(f"[{words}") for words in ("cut at an unknown pc", "cut at an unreadable word"))
    problems = []
    if "java frames yes" not in facts.get("jvm", ""):
        problems.append(f"the walker is not active: {facts.get('jvm')}")
    if samples == 0 or "java com.acme.stress." not in text:
        problems.append(f"{samples} samples, none with a frame of the stress's")
    problems += judge_virtual_threads(text)
    sites = text.count("\nsite ")
    if unknown * 50 > sites:
        problems.append(f"{unknown} of {sites} sites are cut")
    print(f"    {samples} samples, {sites} sites; {cut} stacks cut: {unknown} sites in native code, {depth} too deep, "
          f"{continuations} virtual threads", flush=True)
    return problems


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "stress"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--java", action="append", help="homes of JDKs (default: those found)")
    parser.add_argument("--minutes", type=float, default=0.3, help="for each JDK")
    parser.add_argument("--seconds", type=float, default=4, help="for each run")
    args = parser.parse_args()
    homes = args.java or programs.jdk_homes()
    if not homes:
        print("skipped: no JDK found")
        sys.exit(target.SKIP)
    problems = []
    for home in homes:
        combinations = list(itertools.product(FLAGS, WORDS, allocators(), INTERVALS, ENDS))
        random.Random(datetime.date.today().toordinal()).shuffle(combinations)
        deadline = time.monotonic() + args.minutes * 60
        for flags, words, behind, interval, end in combinations:
            if time.monotonic() > deadline:
                break
            if "virtual" in words and feature(home) < 21:
                continue
            if not is_accepted(f"{home}/bin/java", flags):
                continue
            name = f"{home} {' '.join([*flags, *words])} interval {interval}, {os.path.basename(behind or 'glibc')}, end {end[0]}"
            print(name, flush=True)
            problems += [f"{name}: {problem}" for problem in run_once(args, home, flags, words, behind, interval, end)]
    for problem in problems:
        print(f"FAILED: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
