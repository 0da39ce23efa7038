#!/usr/bin/env python3
"""One real program, bare and under the preload: same standard output, standard error and exit status.

Exists because "the target never notices" is the first promise, and only real programs try all of it. With --behind the bare run has
that allocator preloaded too, so that the only difference is Cadastre. Also demands that something was recorded: a preload that
switched itself off would pass otherwise.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import programs  # noqa: E402
import target  # noqa: E402


def compare(name, run_job, library, interval, behind=None):
    """What differs between bare and preloaded; programs.Missing if the program is not here."""
    scratch = target.scratch_directory("preload")
    out, work = os.path.join(scratch, "out"), os.path.join(scratch, "work")
    os.mkdir(out)
    bare_environment = {"LD_PRELOAD": behind} if behind else {}
    jobs = []
    try:
        for environment in (bare_environment, target.preload_environment(library, out, interval, behind)):
            target.remove(work)
            os.mkdir(work)
            job = programs.Job(work, environment)
            run_job(job)
            jobs.append(job)
        recorded = len(os.listdir(out))
    finally:
        target.remove(scratch)

    bare, preload = jobs
    problems = [f"{what} differs: {target.first_difference(getattr(bare, what), getattr(preload, what))}"
                for what in ("stdout", "stderr") if getattr(bare, what) != getattr(preload, what)]
    if bare.status != preload.status:
        problems.append(f"status {preload.status}, bare {bare.status}")
    if interval == "1" and recorded == 0:
        problems.append("nothing was recorded")
    print(f"{name} at interval {interval}: {len(bare.stdout)} bytes of stdout, {len(bare.stderr)} of stderr, status {bare.status}, {recorded} profiles")
    return [f"{name} at interval {interval}: {problem}" for problem in problems]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", required=True, choices=sorted(programs.JOBS))
    parser.add_argument("--interval", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--behind", help="a preloaded allocator, by file name")
    parser.add_argument("--part", help="I/N: run on one day in N")
    args = parser.parse_args()
    if args.part:
        target.skip_until_its_day(args.part)
    behind = target.find_library(args.behind) if args.behind else None
    try:
        problems = compare(args.job, programs.JOBS[args.job], args.library, args.interval, behind)
    except programs.Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(target.SKIP)
    target.finish(problems)


if __name__ == "__main__":
    main()
