#!/usr/bin/env python3
"""Whole programs, bare and recorded and under the profilers that are installed: one run, medians of alternating rounds, ratios.

  programs_bench.py --library LIB --built build/release/tests/bench [--exact] [--length N] [--only REGEX] [--rounds 5] [--json FILE] [--smoke]

At 512 KiB the programs are what people run; with --exact every allocation is recorded (Cadastre at interval 1, heaptrack) in programs that
do little else than allocate, and the size of what is left is compared too: heaptrack writes a log, which grows with time, and Cadastre the
state, which does not, so --length N makes them N times as long. Times are of the wall, and of the processor (user and system,
children included), which a busy machine blurs less. Exit status 1 where a program fails; the figures are not judged here.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

import ways

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "preload"))
import programs  # noqa: E402

SOURCES = os.path.join(here, "programs")


class Program:
    """`figures`: what its output says is measured, instead of its time: {name: (unit, value) of each number}."""

    def __init__(self, name, command, stdin=None, environment=None, figures=()):
        self.name, self.command, self.stdin, self.environment, self.figures = name, command, stdin, environment or {}, figures


def compiler(smoke):
    gcc = shutil.which("g++")
    if not gcc:
        return None
    cc1plus = subprocess.run([gcc, "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True).stdout.strip()
    source = "/dev/null" if smoke else f"{SOURCES}/headers.cc"
    # The compiler itself: heaptrack does not follow what the driver starts.
    return [Program("C++ compile", [cc1plus, "-quiet", "-D_GNU_SOURCE", "-imultiarch", "x86_64-linux-gnu", "-std=c++20", "-O1", source, "-o",
                                    "/dev/null"])]


def sqlite(_):
    if not shutil.which("sqlite3"):
        return None
    return [Program("sqlite", ["sqlite3", ":memory:"], stdin=f"{SOURCES}/tables.sql")]


def rounds(args, usual):
    return "1" if args.smoke else str(usual * args.length)


def python(args):
    command = ["/usr/bin/python3", "-s", f"{SOURCES}/documents.py", rounds(args, 12)]
    malloc = {"PYTHONMALLOC": "malloc"}
    tables = ["/usr/bin/python3", "-s", f"{SOURCES}/tables.py", f"{SOURCES}/tables.sql"]
    return [Program("sqlite in python3", [*tables, "1"]), Program("sqlite in python3, 2 threads", [*tables, "2"]),
            Program("python3 json", [*command, "1"]), Program("python3 json, malloc", [*command, "1"], environment=malloc),
            Program("python3 json, malloc, 2 threads", [*command, "2"], environment=malloc)]


def built(args):
    trees = [f"{args.built}/trees", "6" if args.smoke else "17", rounds(args, 6)]
    words = [f"{args.built}/words", rounds(args, 12)]
    fractions = [f"{args.built}/fractions", rounds(args, 20000)]
    return [Program(f"{name}{also}", [*command, threads]) for name, command in (("words", words), ("trees", trees), ("fractions", fractions))
            for threads, also in (("1", ""), ("2", ", 2 threads"))]


def perl(args):
    if not shutil.which("perl"):
        return None
    return [Program("perl", ["perl", f"{SOURCES}/ledger.pl", rounds(args, 8)])]


def jvm(smoke, scratch):
    homes = programs.jdk_homes()
    if not homes:
        return None
    found = []
    for home in homes:
        feature = programs.java_feature(home)
        classes = os.path.join(scratch.path + "-classes", str(feature))
        os.makedirs(classes, exist_ok=True)
        subprocess.run([f"{home}/bin/javac", "-d", classes, f"{SOURCES}/Deflating.java", f"{SOURCES}/Service.java"], check=True,
                       env=ways.target.clean_environment())
        java = [f"{home}/bin/java", "-XX:-UsePerfData", "-Xmx256m", "-cp", classes]
        found.append(Program(f"java {feature} -version", [*java, "-version"]))
        found.append(Program(f"java {feature} Deflater", [*java, "Deflating", "10" if smoke else "40000"]))
        # Without this option an answer waits for the client's delayed acknowledgement.
        found.append(Program(f"java {feature} service", [*java, "-Dsun.net.httpserver.nodelay=true", "Service", *(("40", "2") if smoke else ("12000", "4"))],
                             figures=(("requests/s", r"^([\d.]+) "), ("p99 us", r" ([\d.]+)$"))))
    return found


def all_programs(args, scratch):
    kinds = {"compiler": lambda: compiler(args.smoke), "sqlite3": lambda: sqlite(args.smoke), "python3": lambda: python(args),
             "perl": lambda: perl(args), "what is built here": lambda: built(args)}
    if not args.exact:
        kinds["a JDK"] = lambda: jvm(args.smoke, scratch)
    found = []
    for name, kind in kinds.items():
        these = kind()
        if these is None:
            print(f"left out: {name} is not installed")
        else:
            found += these
    if args.exact:  # "python3 json" with its own allocator calls malloc for little
        found = [program for program in found if program.name != "python3 json"]
    return [program for program in found if re.search(args.only, program.name)]


def run(program, way, scratch):
    """{figure: value}; ends the benchmark where the program fails."""
    environment = {**ways.target.clean_environment(), **program.environment, **way.environment}
    begin = time.monotonic()
    with open(program.stdin or "/dev/null", "rb") as stdin:
        done, of_processor = ways.processor_seconds(lambda: subprocess.run(
            way.command(program.command), env=environment, stdin=stdin, capture_output=True, text=True, check=False, timeout=900))
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        scratch.empty()
        said = (done.stdout + done.stderr).strip().splitlines()
        print(f"{program.name} under {way.name}: status {done.returncode}: {said[-1] if said else ''}", flush=True)
        if way.is_peer:
            return {}
        sys.exit(1)
    figures = {f"{program.name}: s": seconds, f"{program.name}: processor s": of_processor}
    if program.figures:
        figures = {f"{program.name}: {unit}": float(re.search(pattern, done.stdout.strip()).group(1)) for unit, pattern in program.figures}
    left = scratch.empty()
    if way.name != way.base and left:
        figures[f"{program.name}: MB left"] = left / 1e6
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--built", required=True, help="folder of what is built of programs/")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=int, default=1, help="times the usual length, where a program has rounds")
    parser.add_argument("--only", default=".", help="programs whose name matches")
    parser.add_argument("--exact", action="store_true", help="interval 1 and heaptrack")
    parser.add_argument("--allocator", default="glibc")
    parser.add_argument("--peer-library", action="append", default=[], help="another profiler's library, by path")
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    with ways.Scratch() as scratch:
        intervals = ("1",) if args.exact else ("512k",)
        found = ways.ways(scratch, args.library, (args.allocator,), intervals, peers=("heaptrack",) if args.exact else (),
                          more=args.peer_library)
        figures = {}
        try:
            for program in all_programs(args, scratch):
                for way in () if args.smoke else found:
                    run(program, way, scratch)  # what is read from disk is read once
                figures.update(ways.alternate(1 if args.smoke else args.rounds, found, lambda way: run(program, way, scratch)))
        finally:
            shutil.rmtree(scratch.path + "-classes", ignore_errors=True)
        ways.print_table(figures, found, "")
        if args.json:
            ways.write_json(args.json, "programs, every allocation" if args.exact else "programs", "", figures, found)


if __name__ == "__main__":
    main()
