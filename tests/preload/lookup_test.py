#!/usr/bin/env python3
"""What dlsym finds by a handle is counted, what is private stays private, and a JVM that cannot be walked is said to be one."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import target  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "program", "private", "jvm"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    command = [args.program, args.private, args.jvm]
    out = target.scratch_directory("lookup")
    problems = []
    try:
        bare = target.run(command)
        recorded = target.run(command, target.preload_environment(args.library, out, "1"))
        if bare.status != 0 or "everybody's" not in bare.stdout:
            problems.append(f"bare: {bare}")
        if (recorded.status, recorded.stdout, recorded.stderr) != (bare.status, bare.stdout, bare.stderr):
            problems.append(target.first_difference(bare.stdout + bare.stderr, recorded.stdout + recorded.stderr))
        profile = target.profiles_of(out, recorded.pid)[-1]
        document = target.report(args.cadastre, profile)
        for function, wanted in (("leak_by_handle", 1000000), ("leak_by_next", 500000)):
            found = target.sum_sites(document, function)["live_bytes"]
            if found != wanted:
                problems.append(f"{function} holds {found} bytes, not {wanted}")
        text = target.run([args.cadastre, "report", profile]).stdout
        if "no Java frames: libjvm.so 99.0.1+2 does not say where to find AbstractInterpreter::_code" not in text:
            problems.append(f"the report says nothing about the JVM:\n{text}")
        if "start_vm" not in text and target.sum_sites(document, "start_vm")["live_bytes"] != 100000:
            problems.append("the JVM's own memory is not there")
    finally:
        target.remove(out)
    target.finish(problems)


if __name__ == "__main__":
    main()
