#!/usr/bin/env python3
"""Each kind of native leak that Java programs are known for is charged to the package that its maintainer would mend.

The programs are in leaks/, one kind each, as people reported them; leaks/leaks_table.py says for each what leaks, through which wrapper,
and how its size is known. At interval 1 the bytes are exact, at interval 64 KiB within 4 standard errors: on one JDK a day, in turn,
or on all of them with CADASTRE_TEST_ALL=1. The
innocent parts of the program, which work beside the leak, own what they hold and no more.

A program whose library is not installed is skipped, and said so; the test is skipped only when all of its group are.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "leaks"))
import leak_check  # noqa: E402
import leaks_table  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "native", "rules"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--classes", required=True, action="append", help="a directory of classes; left out where it does not exist")
    parser.add_argument("--jars", default="/usr/share/java")
    parser.add_argument("--group", required=True, choices=leaks_table.GROUPS)
    parser.add_argument("--only", help="a part of the class's name")
    args = parser.parse_args()

    def find_jars(leak):
        jars = [os.path.join(args.jars, f"{name}.jar") for name in leak.jars]
        missing = [jar for jar in jars if not os.path.exists(jar)]
        if missing:
            return None, f"{', '.join(missing)} not found; {leak.package} is not installed"
        compiled = leak.name.replace(".", "/") + ".class"
        if not any(os.path.exists(os.path.join(path, compiled)) for path in args.classes):
            return None, "it was not compiled: its library, or a JDK that can compile it, was not there when the build was configured"
        return jars, None

    leaks = [leak for leak in leaks_table.GROUPS[args.group] if not args.only or args.only in leak.name]
    sys.exit(leak_check.check_all(args, leaks, find_jars))


if __name__ == "__main__":
    main()
