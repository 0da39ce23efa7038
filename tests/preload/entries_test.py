#!/usr/bin/env python3
"""Every entry point of an allocator does under the preload what it does without, and is counted once, with its size, until it is freed.

Exists because allocators have more ways in and out than malloc and free, call each other's, and are looked for by weak references that
must not find what is not there. Runs the programs given (entries_target.cc in all the ways in which it can be linked and loaded) bare and
under the preload, alone and with an allocator behind or before Cadastre; compares what they say, and the profile with what they say.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import target  # noqa: E402


def compare(args, out, outcome):
    profiles = target.profiles_of(out, outcome.pid)
    if not profiles:
        return ["no profile"]
    document = target.report(args.cadastre, profiles[-1])
    problems = [] if document["losses"]["dropped_samples"] == 0 else ["samples were dropped"]
    told = target.expectations(outcome.stdout)
    for site, want in told:
        got = target.sum_sites(document, site)
        problems += [f"{site}: {key} is {got[key]}, the program says {value}" for key, value in target.checks_of(want) if got[key] != value]
    print(f"{len(told)} entry points compared")
    return problems if told else problems + ["the program says nothing"]


def unusable(args, out, outcome, server):
    """Malloc is served before Cadastre: the report must say by whom."""
    profiles = target.profiles_of(out, outcome.pid)
    said = target.run([args.cadastre, "report", profiles[-1]]) if profiles else None
    wanted = f"{os.path.basename(server)} serves malloc before Cadastre"
    return [] if said and wanted in said.stdout + said.stderr else [f"the report does not say that {wanted}: {said}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--allocator", help="preloaded too, by file name")
    parser.add_argument("--own-malloc", action="store_true", help="the program defines malloc itself")
    parser.add_argument("--program", action="append", required=True, help="a program, or a program and its argument with a comma between")
    args = parser.parse_args()
    allocator = target.find_library(args.allocator) if args.allocator else None
    problems = []
    for program in args.program:
        command = program.split(",")
        for before in ([False, True] if allocator else [False]):
            out = target.scratch_directory("entries")
            try:
                bare = target.run(command, {"LD_PRELOAD": allocator} if allocator else {})
                order = {"before": allocator} if before else {"behind": allocator}
                recorded = target.run(command, target.preload_environment(args.library, out, "1", **order))
                found = [] if bare.status == 0 and "FAIL" not in bare.stdout else [f"bare: {bare}"]
                for what in ("status", "stdout", "stderr"):
                    want, got = str(getattr(bare, what)), str(getattr(recorded, what))
                    if want != got:
                        found.append(f"{what} differs: {target.first_difference(want, got)}")
                if before or args.own_malloc:
                    found += unusable(args, out, recorded, allocator if before else command[0])
                else:
                    found += compare(args, out, recorded)
                problems += [f"{os.path.basename(command[-1])}{', allocator before' if before else ''}: {p}" for p in found]
            finally:
                target.remove(out)
    target.finish(problems)


if __name__ == "__main__":
    main()
