#!/usr/bin/env python3
"""libc's malloc beside another allocator's, found by libc's handle: counted, given back and unchanged."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import target  # noqa: E402

HELD = {"leak_of_libc": 1000000, "grown_in_libc": 200000, "aligned_in_libc": 94000, "given_back": 0}


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "program", "allocator"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    behind = target.find_library(args.allocator)
    out = target.scratch_directory("beside")
    problems = []
    try:
        bare = target.run([args.program], {"LD_PRELOAD": behind})
        recorded = target.run([args.program], target.preload_environment(args.library, out, "1", behind=behind))
        if bare.status != 0 or (recorded.status, recorded.stdout, recorded.stderr) != (bare.status, bare.stdout, bare.stderr):
            problems.append(target.first_difference(bare.stdout + bare.stderr, recorded.stdout + recorded.stderr))
        document = target.report(args.cadastre, target.profiles_of(out, recorded.pid)[-1])
        for function, wanted in HELD.items():
            found = target.sum_sites(document, function)["live_bytes"]
            if found != wanted:
                problems.append(f"{function} holds {found} bytes, not {wanted}")
    finally:
        target.remove(out)
    target.finish(problems)


if __name__ == "__main__":
    main()
