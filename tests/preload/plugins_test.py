#!/usr/bin/env python3
"""A C host that loads C++ plug-ins runs as it does bare, and each of their allocations is counted once.

Exists because a preloaded operator new is found first by plug-ins that brought a C++ runtime, or an operator new, of their own. Plug-ins
that are bound to libc directly (RTLD_DEEPBIND, another namespace) are not seen; they must run all the same.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import target  # noqa: E402

SEEN = {"local", "global"}


def check(args, how, plugins, allocator, before):
    out = target.scratch_directory("plugins")
    try:
        command = [args.host, how, *plugins]
        bare = target.run(command, {"LD_PRELOAD": allocator} if allocator else {})
        order = {"before": allocator} if before else {"behind": allocator}
        recorded = target.run(command, target.preload_environment(args.library, out, args.interval, **order))
        problems = []
        for what in ("status", "stdout", "stderr"):
            want, got = str(getattr(bare, what)), str(getattr(recorded, what))
            if want != got:
                problems.append(f"{what} differs: {target.first_difference(want, got)}")
        if not allocator and bare.status != 0:
            problems.append(f"bare: {bare}")
        if how not in SEEN or before or args.interval != "1" or bare.status != 0:
            return problems
        document = target.report(args.cadastre, target.profiles_of(out, recorded.pid)[-1])
        told = {site: want for site, want in target.expectations(recorded.stdout)}
        for site, want in told.items():
            got = target.sum_sites(document, site)
            many = len(plugins) if site.startswith("site_plugin") else 1
            problems += [f"{site}: {key} is {got[key]}, the programs say {many * value}"
                         for key, value in target.checks_of(want) if got[key] != many * value]
        return problems if told else problems + ["the program says nothing"]
    finally:
        target.remove(out)


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "cadastre", "host", "interval"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--allocator")
    parser.add_argument("--plugin", action="append", required=True)
    args = parser.parse_args()
    allocator = target.find_library(args.allocator) if args.allocator else None
    problems = []
    for how in ("local", "global", "deep", "storm", "namespace"):
        for plugins in [[plugin] for plugin in args.plugin] + [args.plugin]:
            for before in ([False, True] if allocator else [False]):
                names = " ".join(os.path.basename(plugin) for plugin in plugins)
                found = check(args, how, plugins, allocator, before)
                problems += [f"{how} {names}{', allocator before' if before else ''}: {p}" for p in found]
    target.finish(problems)


if __name__ == "__main__":
    main()
