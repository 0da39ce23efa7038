#!/usr/bin/env python3
"""Samples know their threads by the names that the JVM and the program gave them, and a compiler's samples what was being compiled."""
import argparse
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../support", "../../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402


def judge(args, home, out):
    command = [f"{home}/bin/java", "-Xmx128m", "-XX:+UseG1GC", f"-Djava.library.path={args.stress}", "-jar", f"{args.stress}/stress.jar", "2",
               "2"]
    outcome = target.run(command, target.preload_environment(args.library, out, "1"))
    if outcome.status != 0:
        return [f"ended with {outcome.status}: {outcome.stderr[-1000:]}"]
    profile = target.profiles_of(out, outcome.pid)[-1]
    text = target.run([args.cadastre, "print", profile], timeout=120).stdout
    os.unlink(profile)
    names = {index: name for index, _, name in target.printed_threads(text)}
    problems = [f"no thread is called {name}: {sorted(set(names.values()))}"
                for name in ("stress-0", "stress-1", "timer", "VM Thread") if name not in names.values()]
    if not any(name.startswith("GC Thread#") or name.startswith("G1 ") for name in names.values()):
        problems.append(f"no thread of the collector: {sorted(set(names.values()))}")
    compiled = re.findall(r"^live .* thread (\d+) compiling (.*)$", text, re.M)
    strangers = {names.get(thread) for thread, _ in compiled if not re.match(r"C[12] Comp", names.get(thread, ""))}
    if not compiled or not any(method.startswith(("java.", "jdk.", "com.acme.")) for _, method in compiled):
        problems.append(f"no compiler's sample names a method: {compiled[:3]}")
    if strangers:
        problems.append(f"compiling in {strangers}")
    print(f"{home}: {len(names)} threads, {len(compiled)} live samples of compilers, {len({m for _, m in compiled})} methods", flush=True)
    return problems


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "stress"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    homes = programs.jdk_homes()
    if not homes:
        print("skipped: no JDK found")
        sys.exit(target.SKIP)
    problems = []
    out = target.scratch_directory("threads")
    try:
        for home in homes:
            problems += [f"{home}: {problem}" for problem in judge(args, home, out)]
    finally:
        target.remove(out)
    target.finish(problems)


if __name__ == "__main__":
    main()
