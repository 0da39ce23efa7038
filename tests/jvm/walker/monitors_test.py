#!/usr/bin/env python3
"""A virtual thread that is put away because it has to wait for a monitor (JDK 24 and later): the method that wanted it is in the stack.

The JVM allocates for the waiting thread when its frames have been copied away and the place that it would return to has been replaced. The
interpreter and each compiler get there in their own way.
"""
import argparse
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../support", "../../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

WAYS = {"interpreter": ["-Xint"], "C1": ["-XX:TieredStopAtLevel=1"], "C2": ["-XX:-TieredCompilation", "-Xcomp"], "Z": ["-XX:+UseZGC"]}
MIN_SAMPLES = 20


def samples(args, home, flags, out, problems):
    """How many samples there are of the JVM's work for threads that wait, and how many of them name the method."""
    command = [f"{home}/bin/java", "-Xmx96m", *flags, "-cp", args.classes, "Monitors"]
    outcome = target.run(command, target.preload_environment(args.library, out, "1", extra="memory=256m"), timeout=240)
    if outcome.status != 0 or "count 2400" not in outcome.stdout:
        problems.append(f"{home} {flags}: ended with {outcome.status}: {(outcome.stderr or outcome.stdout)[-500:]}")
        return 0, 0
    profile = target.profiles_of(out, outcome.pid)[-1]
    document = target.report(args.cadastre, profile, "--by", "site")
    os.unlink(profile)
    waiting = named = 0
    for site in document["sites"]:
        functions = [frame["function"] for frame in site["frames"]]
        if any("vthread_monitor_enter" in function for function in functions):
            waiting += site["samples"]
            named += site["samples"] if "Monitors.wantsTheMonitor" in functions else 0
    return waiting, named


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "classes"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    homes = [home for home in programs.jdk_homes() if (programs.java_feature(home) or 0) >= 24]
    if not homes:
        print("skipped: no JDK of 24 or later is installed")
        sys.exit(target.SKIP)
    out = target.scratch_directory("monitors")
    problems = []
    try:
        for home in homes:
            for number, (way, flags) in enumerate(WAYS.items()):
                if not target.is_todays(number, 2):
                    continue
                waiting, named = samples(args, home, flags, out, problems)
                print(f"{home} {way}: {waiting} samples, {named} with the method")
                if waiting < MIN_SAMPLES or named != waiting:
                    problems.append(f"{home} {way}: {waiting - named} of {waiting} samples do not say who waits")
    finally:
        target.remove(out)
    target.finish(problems)


if __name__ == "__main__":
    main()
