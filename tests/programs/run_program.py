#!/usr/bin/env python3
"""One trap program, bare and under the preload: it must not notice, and at interval 1 the profile must say what it says.

Exists because each of these programs has broken some preloaded tool. Prints what was compared; exit 1 with the differences. With
--allocator the bare run has that allocator preloaded too: what the program does under the allocator alone, faults included, it must do with
Cadastre before and after it. An allocator that stands before Cadastre serves malloc, so there is no profile to compare then.
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

# Arguments to run a program with, besides none: name -> list of (argument, exit status). FILE is a new file.
ARGUMENTS = {
    "h17_exit_ways": [(str(i), status) for i, status in enumerate((21, 22, 23, 24, 134, 0, 0, 143, 137))],
    "h18_fd_hygiene": [("FILE", 0)],
}

# Mappings, and what a program says of children it forks and execs by itself, are not compared yet (the mmap family and the
# recording of children have issues of their own). That these programs run unharmed is checked all the same.
NOT_COMPARED = {
    ("h19_mmap_overlay", "site_base"): "a mapping",
    ("h19_mmap_overlay", "site_overlay"): "a mapping",
    ("h19_mmap_overlay", "site_move"): "a mapping",
    ("h36_huge", "site_reserve"): "a mapping",
    ("h32_seccomp", "count"): "100 of the 6,100 are mappings",
    ("h12_small_stack", "count"): "on a stack this small only the leaf is taken, and half of them call operator new",
    ("h17_exit_ways", ""): "said of children; compared where the program is run with an argument",
    ("h18_fd_hygiene", ""): "said of a child; compared where the program is run with an argument",
}

# What an allocator does wrong, and does right when Cadastre has called it before the program does: (allocator, program): why. Of the
# program's lines that begin with FAIL none may be new then.
PEER_FAULTS = {
    ("libjemalloc.so.2", "h07_aligned_family"): "it has no pvalloc, and gets libc's block to free; behind Cadastre it is its own",
    ("libmimalloc.so.2", "h05_errno"): "its first malloc changes errno",
    ("libmimalloc.so.2", "h32_seccomp"): "its first malloc asks for files",
}

# Functions whose file is gone when the profile is read: found by the file name of the library that called malloc.
BY_LIBRARY = {("h27_dynamic_tls", "site_tls"): "libtwin.so"}

# What the programs print of themselves that differs between any two runs: times, pids, and how much memory the process has
# (which a profiler's own pages change; the programs judge by their exit status whether it is too much).
VOLATILE = [
    (r"rss \+-?\d+ KB", "rss"),
    (r"\(-?\d+ KB a thread\)", ""),
    (r"maps [+-]\d+", "maps"),
    (r"fds [+-]\d+", "fds"),
    (r"took \d+\.\d+ s", "took"),
    (r"child pid \d+", "child pid"),
    (r"^FAIL (\w+) 0x[0-9a-f]+$", r"FAIL \1"),  # where a block lies
]


def normalise(text):
    for pattern, replacement in VOLATILE:
        text = re.sub(pattern, replacement, text, flags=re.M)
    return text


def compare_profile(args, name, outcome, out, stated):
    profiles = target.profiles_of(out, outcome.pid, os.path.basename(args.program))
    if not profiles:
        return [f"no profile of pid {outcome.pid} in {os.listdir(out)}"]
    document = target.report(args.cadastre, profiles[-1])
    problems = []
    if document["losses"]["dropped_samples"]:
        problems.append(f"{document['losses']['dropped_samples']} samples were dropped")
    for site, want in stated:
        reason = NOT_COMPARED.get((name, site))
        if reason:
            print(f"not compared: {name} {site}: {reason}")
            continue
        got = target.sum_sites(document, site, leaf_library=BY_LIBRARY.get((name, site)))
        checks = target.checks_of(want)
        if (name, "count") in NOT_COMPARED:
            print(f"not compared: {name} count: {NOT_COMPARED[(name, 'count')]}")
            checks = [check for check in checks if check[0] not in ("samples", "allocated_bytes")]
        for key, value in checks:
            verdict = "ok" if got[key] == value else "WRONG"
            print(f"{verdict}: {site} {key} {got[key]}, the program says {value}")
            if verdict != "ok":
                problems.append(f"{site}: {key} is {got[key]}, the program says {value} ({got['sites']} sites)")
    if name == "h15_fork_storm" and target.sum_sites(document, "site_child")["sites"]:
        problems.append("site_child is in the parent's profile")
    return problems


def is_no_worse(recorded, bare, right_status):
    def faults(outcome):
        return set(re.findall(r"^FAIL.*$", normalise(outcome.stdout), re.M))
    return recorded.status in (bare.status, right_status) and faults(recorded) <= faults(bare)


def check(args, name, argument, expected_status, stated, behind=None, before=None):
    """One way to run the program, both bare and preloaded. Returns problems."""
    out = target.scratch_directory("programs")
    own = os.path.join(out, "own")
    os.mkdir(own)
    try:
        command = [args.program]
        file = None
        if argument == "FILE":
            file = os.path.join(own, "file")
            command.append(file)
        elif argument is not None:
            command.append(argument)
        allocator = behind or before
        bare = target.run(command, {"LD_PRELOAD": allocator} if allocator else {}, timeout=100)
        if file:
            os.unlink(file)
        recorded = target.run(command, target.preload_environment(args.library, out, args.interval, behind, before=before), timeout=200)

        problems = []
        fault = PEER_FAULTS.get((os.path.basename(allocator or ""), name))
        if fault and is_no_worse(recorded, bare, expected_status):
            print(f"not compared: {name} under {os.path.basename(allocator)}: {fault}")
            return []
        if allocator:
            expected_status = bare.status
        if bare.status != expected_status:
            problems.append(f"bare: status {bare.status}, expected {expected_status}: {bare.stdout}")
        if recorded.status != expected_status:
            problems.append(f"status {recorded.status}, expected {expected_status}: {recorded.stdout}{recorded.stderr}")
        for stream in ("stdout", "stderr"):
            want, got = normalise(getattr(bare, stream)), normalise(getattr(recorded, stream))
            if stream == "stderr" and name == "h34_file_limit":
                # It may say once that there will be no profile.
                got = re.sub(r"\A(cadastre: [^\n]*\n)", "", got)
            if want != got:
                problems.append(f"{stream} differs: {target.first_difference(want, got)}")
        if file:
            with open(file, "rb") as opened:
                content = opened.read()
            if content != b"0123456789":
                problems.append(f"the application's file holds {content[:80]!r}")
        if args.interval == "1" and not before:
            told = stated if stated is not None else target.expectations(recorded.stdout)
            if stated is None and (name, "") in NOT_COMPARED:
                print(f"not compared: {name}: {NOT_COMPARED[(name, '')]}")
            elif told:
                problems += compare_profile(args, name, recorded, out, told)
        return [f"{' '.join(command[1:]) or 'no argument'}: {p}" for p in problems]
    finally:
        target.remove(out)


def stated_for(name):
    """What a right profile shows of a program that is run with an argument: known here, because it may not come to say it."""
    if name == "h17_exit_ways":
        return [("site_exit", {"count": 1000, "bytes": 100000, "live": 1000, "livebytes": 100000})]
    before, after = sum(64 + i % 50 for i in range(10000)), 10000 * 64
    return [("site_before", {"count": 10000, "bytes": before, "live": 10000, "livebytes": before}),
            ("site_after", {"live": 10000, "livebytes": after})]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--interval", required=True)
    parser.add_argument("--allocator", help="preloaded too, by file name: once after and once before Cadastre")
    parser.add_argument("--part", help="I/N: run on one day in N")
    args = parser.parse_args()
    if args.part:
        target.skip_until_its_day(args.part)
    orders = [{}]
    if args.allocator:
        path = target.find_library(args.allocator)
        orders = [{"behind": path}, {"before": path}]
    name = os.path.basename(args.program).removesuffix(".bin")

    problems = []
    for order in orders:
        found = check(args, name, None, 0, None, **order)
        for argument, status in ARGUMENTS.get(name, []):
            found += check(args, name, argument, status, stated_for(name), **order)
        problems += [f"{''.join(f'allocator {where}: ' for where in order)}{problem}" for problem in found]
    target.finish([f"{name} at interval {args.interval}: {problem}" for problem in problems])


if __name__ == "__main__":
    main()
