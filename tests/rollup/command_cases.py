"""Tests that are a list of cases: each is a function, all run in one directory of files, and all failures are printed."""
import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

MOST_PRINTED = 30

_cadastre = None
_scratch = None
_problems = []


def expect(condition, message):
    if not condition:
        _problems.append(message)


def path_of(name):
    return os.path.join(_scratch, name)


def write(name, content):
    """Writes a file, and its directory if need be; its path."""
    path = path_of(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def cadastre(*words, stdin=""):
    """(exit status, stdout, stderr)"""
    process = subprocess.run([_cadastre, *words], cwd=_scratch, env=target.clean_environment(), input=stdin.encode(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    return process.returncode, process.stdout.decode(), process.stderr.decode()


def run_all(name, cases):
    """Runs them with the `--cadastre` of the command line, and ends the test."""
    global _cadastre, _scratch
    parser = argparse.ArgumentParser()
    parser.add_argument("--cadastre", required=True)
    _cadastre = os.path.abspath(parser.parse_args().cadastre)
    _scratch = target.scratch_directory(name)
    try:
        for case in cases:
            case()
    finally:
        target.remove(_scratch)
    target.finish(_problems[:MOST_PRINTED])
