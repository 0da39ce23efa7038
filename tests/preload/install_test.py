#!/usr/bin/env python3
"""An installed Cadastre works where it is copied to: `cmake --install`, the prefix moved elsewhere, a program recorded and reported.

Exists because a library found through the build tree, or through an absolute path compiled in, works for its developer only.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

EXPECTED = ["bin/cadastre", "lib/cadastre/libcadastre.so", "lib/cadastre/libcadastre-unwind.so"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--build", required=True)
    args = parser.parse_args()
    scratch = target.scratch_directory("install")
    problems = []
    try:
        first, second = os.path.join(scratch, "first"), os.path.join(scratch, "moved here")
        subprocess.run([args.cmake, "--install", args.build, "--prefix", first], check=True, stdout=subprocess.DEVNULL)
        missing = [name for name in EXPECTED if not os.path.exists(os.path.join(first, name))]
        if missing:
            problems.append(f"not installed: {missing}")
        shutil.move(first, second)
        for folder, _, names in os.walk(second):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    if first.encode() in file.read():
                        problems.append(f"{name} names the prefix that it was installed to")

        out = os.path.join(scratch, "out")
        os.mkdir(out)
        command = os.path.join(second, "bin/cadastre")
        # From another directory and through PATH, as users do. A symbolic link to the command must work too.
        link = os.path.join(scratch, "bin")
        os.mkdir(link)
        os.symlink(command, os.path.join(link, "cadastre"))
        for start, environment in ((command, {}), ("cadastre", {"PATH": f"{link}:{os.environ['PATH']}"})):
            ran = subprocess.run([start, "run", "--interval", "1", "--out", out, "--", "/bin/sh", "-c", "echo hello; exit 3"],
                                 cwd="/", env={**target.clean_environment(), **environment}, capture_output=True, text=True, check=False)
            if ran.returncode != 3 or not ran.stdout.startswith("hello\n"):
                problems.append(f"run through {start}: status {ran.returncode}, {ran.stdout!r}, {ran.stderr!r}")
                continue
            said = re.search(r"^cadastre: recording to (.*)$", ran.stderr, re.M)
            if not said:
                problems.append(f"run does not say where the profile is: {ran.stderr!r}")
                continue
            document = target.report(command, said.group(1))
            if document["totals"]["allocated_bytes"] <= 0:
                problems.append("nothing was recorded")
        copied = subprocess.run([command, "install", os.path.join(scratch, "copy")], env=target.clean_environment(), capture_output=True, text=True,
                                check=False)
        if copied.returncode != 0 or copied.stdout or "scripts/bundle" not in copied.stderr or copied.stderr.count("\n") != 1:
            problems.append(f"a copy of a command that needs libraries does not say so: {copied}")
    finally:
        target.remove(scratch)
    target.finish(problems)


if __name__ == "__main__":
    main()
