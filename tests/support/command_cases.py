"""Tests that are a list of cases: each is a function, all run in a directory of files, and all failures are printed."""
import os
import subprocess

import target

MOST_PRINTED = 30

_programs = {}
_scratch = None
_problems = []


def expect(condition, message):
    if not condition:
        _problems.append(message)


def program(name):
    """The path that the command line gives as --NAME."""
    return _programs[name]


def path_of(name):
    return os.path.join(_scratch, name)


def write(name, content):
    """Writes a file, and its directory if need be; its path."""
    path = path_of(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def cadastre(*words, stdin="", environment=None):
    """(exit status, stdout, stderr), run where the files are. Both are UTF-8, or the case fails."""
    process = subprocess.run([_programs["cadastre"], *words], cwd=_scratch, env={**target.clean_environment(), **(environment or {})},
                             input=stdin.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    return process.returncode, process.stdout.decode(), process.stderr.decode()


def run_all(name, cases, programs=("cadastre",), before_each=None):
    """Runs them with the programs of the command line, and ends the test. With `before_each`, which is called first, each case has a directory of
    its own."""
    global _scratch
    arguments, _ = target.test_arguments(*programs)
    for each in programs:
        _programs[each] = os.path.abspath(getattr(arguments, each))
    groups = [cases] if before_each is None else [[before_each, case] for case in cases]
    for group in groups:
        _scratch = target.scratch_directory(name)
        try:
            for case in group:
                case()
        except Exception as error:  # one broken case must not hide what the others found
            _problems.append(f"{case.__name__}: {error!r}")
        finally:
            target.remove(_scratch)
    target.finish(_problems[:MOST_PRINTED])
