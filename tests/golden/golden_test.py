#!/usr/bin/env python3
"""Compares what commands print with the files here, word for word; `--update` writes those files.

A directory is one profile: profile.txt describes it, owners.csv are its rules. Every other file is named by its command line
("report --by team") and holds the exit status, stdout and stderr of `cadastre report pay.cad --by team`, run where pay.cad and owners.csv lie.
"""
import argparse
import difflib
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--compose", required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    failures = 0
    for case in sorted(entry.path for entry in os.scandir(HERE) if entry.is_dir() and os.path.exists(os.path.join(entry.path, "profile.txt"))):
        scratch = target.scratch_directory("golden")
        try:
            subprocess.run([arguments.compose, os.path.join(case, "profile.txt"), os.path.join(scratch, "pay.cad")], check=True)
            if os.path.exists(os.path.join(case, "owners.csv")):
                shutil.copy(os.path.join(case, "owners.csv"), scratch)
            for name in sorted(os.listdir(case)):
                if name in ("profile.txt", "owners.csv"):
                    continue
                command, *flags = name.split()
                if command == "rules":
                    command, flags = "rules " + flags[0], flags[1:]
                ran = target.run([os.path.abspath(arguments.cadastre), *command.split(), "pay.cad", *flags], cwd=scratch)
                got = f"exit {ran.status}\n{ran.stdout}" + (f"--- stderr\n{ran.stderr}" if ran.stderr else "")
                path = os.path.join(case, name)
                with open(path, encoding="utf-8") as file:
                    want = file.read()
                if got == want:
                    continue
                if arguments.update:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(got)
                    print(f"wrote {path}")
                    continue
                failures += 1
                print(f"FAILED: {os.path.basename(case)}: cadastre {name}")
                sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(want.splitlines(), got.splitlines(), "wanted", "printed", lineterm=""))
        finally:
            target.remove(scratch)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
