"""Runs a command bare and under the preload, for the tests whose target is a whole program.

Everything here is standard library. Used by tests/programs, tests/preload, tests/jvm and tests/golden.
"""
import argparse
import collections
import datetime
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SKIP = 77  # ctest's SKIP_RETURN_CODE

Outcome = collections.namedtuple("Outcome", "status stdout stderr pid")

os.environ.setdefault("CADASTRE_SYMBOL_CACHE", "off")  # of tests that hand on what they have; nothing goes into the user's home


def scratch_directory(prefix):
    """A new directory on tmpfs where there is one: that is where profiles live by default."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix=f"cadastre-{prefix}-", dir=base)


def is_todays(index, days):
    """Of a matrix whose parts resemble each other one in `days` is run each day; CADASTRE_TEST_ALL=1 runs all."""
    return bool(os.environ.get("CADASTRE_TEST_ALL")) or (datetime.date.today().toordinal() + index) % days == 0


def skip_until_its_day(part):
    """`part` is "I/N"."""
    if is_todays(*(int(number) for number in part.split("/"))):
        return
    print(f"skipped: part {part} of a matrix, of which one part is run each day; CADASTRE_TEST_ALL=1 runs it today")
    sys.exit(SKIP)


def preload_environment(library, out, interval, behind=None, extra="", before=None):
    """The variables that record a program. `behind`, `before`: an allocator preloaded after or before Cadastre."""
    options = f"interval={interval},out={out}" + (f",{extra}" if extra else "")
    return {"LD_PRELOAD": ":".join(path for path in (before, library, behind) if path), "CADASTRE_OPTIONS": options}


def installed_library(name):
    """The path of an installed library; None where it is not."""
    if os.path.isabs(name):
        return name
    for directory in ("/usr/lib/x86_64-linux-gnu", "/usr/local/lib", "/usr/lib64"):
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return path
    return None


def find_library(name):
    """The same, or the end of this test: it is skipped where the library is not installed."""
    path = installed_library(name)
    if not path:
        print(f"skipped: {name} is not installed")
        sys.exit(SKIP)
    return path


def test_arguments(*names, more=None):
    """For a unittest program whose paths ctest gives as --NAME: (what was given, argv for unittest.main)."""
    parser = argparse.ArgumentParser()
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    if more is not None:
        more(parser)
    arguments, rest = parser.parse_known_args()
    return arguments, [sys.argv[0], *rest]


def clean_environment():
    """Ours without what would make the bare run differ from itself or from the preloaded one, and no cache in the user's home."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "CADASTRE_"))}
    kept.update({"LC_ALL": "C.UTF-8", "TZ": "UTC", "CADASTRE_SYMBOL_CACHE": "off"})
    return kept


def run(command, environment=None, cwd=None, timeout=120, stdin=b""):
    """Runs to the end. A signal N is status 128+N, as a shell says it. A hang is an error, not a wait for ever."""
    env = clean_environment()
    env.update(environment or {})
    with subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            raise AssertionError(f"hangs after {timeout} s: {command}\n{stdout!r}\n{stderr!r}") from None
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Outcome(status, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"), process.pid)


def profiles_of(out, pid, exe="*"):
    """Profiles that process PID left in directory `out` (cadastre-HOST-EXE-PID-TIME.cad), oldest first."""
    return sorted(glob.glob(f"{glob.escape(out)}/cadastre-*-{exe}-{pid}-*.cad"), key=os.path.getmtime)


def report(cadastre, profile, *arguments):
    """`cadastre report PROFILE --format json` as an object, every site in it."""
    command = [cadastre, "report", profile, "--format", "json", *arguments]
    outcome = run(command, timeout=300)
    if outcome.status != 0:
        raise AssertionError(f"{' '.join(command)} ended with {outcome.status}: {outcome.stderr}")
    return json.loads(outcome.stdout)


def printed_threads(text):
    """(index, tid, name) of each thread in what `cadastre print` says, as strings."""
    facts = r"(?: ended)?(?: stack \[\w+, \w+\))?(?: created at site \d+)?(?: creator created at site \d+)?"
    return re.findall(rf"^thread (\d+) tid (\d+) since [\d.e-]+ s{facts} (.*)$", text, re.M)


def names_function(frame_function, function):
    """Is FRAME_FUNCTION the C or C++ function FUNCTION, with parameters or a compiler's clone suffix or without?"""
    return re.match(re.escape(function) + r"($|\(|\.| \[clone)", frame_function) is not None


# A program that prints inside a function allocates its stream's buffer there; no program counts that.
STREAM_BUFFER = ("_IO_file_doallocate", "_IO_wfile_doallocate")


def sum_sites(document, function, leaf_library=None):
    """Sums live bytes, live blocks, allocated bytes and samples of all malloc sites with a frame FUNCTION.

    With `leaf_library` instead: of the sites whose leaf frame lies in a library of that file name.
    """
    total = collections.Counter(sites=0, live_bytes=0, live_count=0, allocated_bytes=0, samples=0)
    for site in document["sites"]:
        frames = site["frames"]
        if leaf_library:
            found = frames and os.path.basename(frames[0]["library"] or "") == leaf_library
        else:
            found = any(names_function(f["function"], function) for f in frames)
        if site["kind"] == "malloc" and found and not any(f["function"] in STREAM_BUFFER for f in frames):
            total["sites"] += 1
            for key in ("live_bytes", "live_count", "allocated_bytes", "samples"):
                total[key] += site[key]
    return total


def expectations(stdout):
    """ALLOC lines: [(site, {key: value})]. One line may speak of several sites, separated by ';'."""
    found = []
    for line in re.findall(r"^ALLOC (.*)$", stdout, re.M):
        for part in line.split(";"):
            match = re.match(r"\s*(site_\w+)\b(.*)", part)
            if match:
                found.append((match.group(1), {k: int(v) for k, v in re.findall(r"\b(\w+)=(\d+)\b", match.group(2))}))
    return found


def checks_of(want):
    """What one ALLOC line promises, by the names of sum_sites: [(name, value)]."""
    checks = []
    if "livebytes" in want:
        checks.append(("live_bytes", want["livebytes"]))
        if "live" in want:
            checks.append(("live_count", want["live"]))
    elif want.get("live") == 0:
        checks.append(("live_bytes", 0))
    if "count" in want and "bytes" in want:
        checks += [("samples", want["count"]), ("allocated_bytes", want["bytes"])]
    return checks


def remove(directory):
    shutil.rmtree(directory, ignore_errors=True)


def finish(problems):
    """Prints what a test found and ends it: 0 if that is nothing."""
    for problem in problems:
        print(f"FAILED: {problem}")
    sys.exit(1 if problems else 0)


def first_difference(want, got):
    """Three lines that show where two texts part."""
    want_lines, got_lines = want.splitlines(), got.splitlines()
    for number, (a, b) in enumerate(zip(want_lines, got_lines), 1):
        if a != b:
            return f"line {number}\n  bare:    {a[:300]}\n  preload: {b[:300]}"
    return f"{len(want_lines)} lines bare, {len(got_lines)} under the preload:\n  bare ends: {want_lines[-1:]}\n  preload ends: {got_lines[-3:]}"
