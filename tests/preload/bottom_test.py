#!/usr/bin/env python3
"""Stacks that end at an entry point without unwind tables are whole: the loader's _dl_start_user, a program's own _start.
And a program that was started through the loader is recorded under its own name.

Exists because every constructor's allocation has the former at its end, and a stack that is called cut though nothing is missing makes
the losses of a report look worse than they are.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402


def sites(printed):
    """[(head line, [frame, ...])] of `cadastre print`."""
    found = []
    for line in printed.splitlines():
        if line.startswith("site "):
            found.append((line, []))
        elif line.startswith("  ") and found:
            found[-1][1].append(line.strip())
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--program", required=True)
    args = parser.parse_args()
    loader = "/lib64/ld-linux-x86-64.so.2"
    scratch = target.scratch_directory("bottom")
    failed = 0
    try:
        for command in ([args.program], [loader, args.program], [loader, "--library-path", "/nowhere", args.program]):
            ran = target.run(command, target.preload_environment(args.library, scratch, "1"))
            profile = target.profiles_of(scratch, ran.pid, os.path.basename(args.program))
            if ran.status != 0 or len(profile) != 1:
                print(f"FAILED: {command}: status {ran.status}, {len(profile)} profiles: {ran.stderr}")
                failed = 1
                continue
            printed = target.run([args.cadastre, "print", profile[0], "--live", "0"]).stdout
            said = target.report(args.cadastre, profile[0])["profile"]
            if os.path.realpath(said["exe"]) != os.path.realpath(args.program) or said["command"] != [args.program]:
                print(f"FAILED: {command}: exe {said['exe']}, command {said['command']}")
                failed = 1
            for size, last in ((54321, "ld-linux-x86-64.so.2+"), (65432, "bare_entry+")):
                found = [s for s in sites(printed) if f" allocated {size} " in s[0]]
                if len(found) == 1 and " [cut" not in found[0][0] and found[0][1][-1].startswith(last):
                    continue
                print(f"FAILED: {command}: the block of {size} bytes: {found}")
                failed = 1
    finally:
        target.remove(scratch)
    sys.exit(failed)


if __name__ == "__main__":
    main()
