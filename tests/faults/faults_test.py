#!/usr/bin/env python3
"""Every nth system call of the interposer fails, and every nth allocation of the program: the program does what it does bare.

Exists because a profiler is written and tried where system calls succeed, and runs where they do not: no descriptor left, no address
space, a full file system, an old kernel. For an allocation that fails, the bare program has the same one fail.

Without --all a slice that changes with the date; with it every call that there is, to the limits below. A plan counts only if its call
came (fault_plan.cc leaves a mark): a program's last call ends its row.
"""
import argparse
import datetime
import errno
import os
import random
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../preload", "../programs"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import run_program  # noqa: E402
import target  # noqa: E402

# x86-64 numbers, and the errors that the kernel may give there. "then" = all later ones too: not one bad moment, but a state.
SYSTEM_CALLS = [
    ("mmap", 9, [("ENOMEM", False), ("ENOMEM", True)]),
    ("openat", 257, [("EMFILE", False), ("EACCES", True)]),
    ("ftruncate", 77, [("EFBIG", False), ("ENOSPC", True)]),
    ("madvise", 28, [("EFAULT", False), ("EFAULT", True), ("EINVAL", True), ("EAGAIN", True)]),
]
OTHER_CALLS = [("read", 0, "EIO"), ("close", 3, "EIO"), ("statfs", 137, "ENOSYS"), ("readlinkat", 267, "EACCES"), ("prlimit64", 302, "EPERM"),
               ("fstat", 5, "EOVERFLOW"), ("newfstatat", 262, "EACCES"), ("uname", 63, "EFAULT"), ("prctl", 157, "EPERM"), ("gettid", 186, "ENOSYS"),
               ("tgkill", 234, "EPERM"), ("getpid", 39, "ENOSYS"), ("clock_gettime", 228, "EINVAL"), ("faccessat", 269, "EACCES"),
               ("access", 21, "EACCES"), ("rt_sigprocmask", 14, "EFAULT"), ("process_vm_readv", 310, "EPERM"),
               ("unlinkat", 263, "EBUSY"), ("getppid", 110, "ENOSYS")]
SYSTEM_CALLS += [(name, number, [(error, True)]) for name, number, error in OTHER_CALLS]
MOST_CALLS, MOST_OF_A_RUNTIME = 500, 50

# What each of these prints depends on timing or on the sizes of mappings, or it takes minutes at interval 1.
TOO_SLOW = {"h10_thread_churn", "h12_small_stack", "h15_fork_storm"}


class Program:
    def __init__(self, name, command, limit, environment=None, is_ours=True):
        self.name, self.command, self.limit, self.environment, self.is_ours = name, command, limit, environment or {}, is_ours

    def run(self, preload, extra, scratch):
        environment = {**self.environment, **extra}
        if preload:
            environment["LD_PRELOAD"] = preload
        outcome = target.run(self.command, environment, cwd=scratch, timeout=120)
        return outcome.status, self.normalise(outcome.stdout), self.normalise(outcome.stderr)

    @staticmethod
    def normalise(text):
        # Where the copy of a library's name cannot be had, the loader tells its own errno, which its last failure of any kind has left there.
        text = run_program.normalise(text).replace("cannot open shared object file: No such file or directory", "cannot open shared object file")
        return re.sub(r"/tmp/(h\d\d)-\w{6}\b", r"/tmp/\1-RANDOM", text)


def all_programs(args, scratch):
    """Those that --only names."""
    found = trap_programs(args)
    runtimes = {"python3": python3, "java": java}
    for name, runtime in runtimes.items():
        if args.only in (None, name):
            found += runtime(scratch)
    return [program for program in found if args.only in (None, program.name)]


def trap_programs(args):
    found = []
    for file in sorted(os.listdir(args.programs)):
        name = file.removesuffix(".bin")
        if file.endswith(".bin") and name not in TOO_SLOW:
            found.append(Program(name, [os.path.join(args.programs, file)], MOST_CALLS))
    return found


def python3(scratch):
    script = os.path.join(scratch, "program.py")
    with open(script, "w", encoding="utf-8") as opened:
        opened.write(programs.PYTHON)
    if not os.path.exists("/usr/bin/python3"):
        print("skipped: python3 is not installed")
        return []
    return [Program("python3", ["/usr/bin/python3", "-I", script], MOST_OF_A_RUNTIME, {"PYTHONHASHSEED": "0"}, False)]


def java(scratch):
    homes = programs.jdk_homes()
    if not homes:
        print("skipped: java: no JDK found")
        return []
    source = os.path.join(scratch, "Program.java")
    with open(source, "w", encoding="utf-8") as opened:
        opened.write(programs.JAVA)
    subprocess.run([f"{homes[0]}/bin/javac", "-d", scratch, source], check=True, env=target.clean_environment())
    return [Program("java", [f"{homes[0]}/bin/java", *programs.SMALL_HEAP, "-cp", scratch, "Program"], MOST_OF_A_RUNTIME, None, False)]


class Faults:
    def __init__(self, args, scratch):
        self.args, self.scratch, self.problems, self.runs, self.hits = args, scratch, [], 0, 0
        self.out, self.marker = os.path.join(scratch, "out"), os.path.join(scratch, "marker")
        os.mkdir(self.out)

    def recorded(self, program, extra, behind=None):
        """Runs it under the preload; did the planned fault come?"""
        if os.path.exists(self.marker):
            os.unlink(self.marker)
        environment = target.preload_environment(self.args.library, self.out, self.interval, behind)
        result = program.run(environment.pop("LD_PRELOAD"), {**environment, **extra}, self.scratch)
        self.runs += 1
        for name in os.listdir(self.out):
            os.unlink(os.path.join(self.out, name))
        hit = os.path.exists(self.marker)
        self.hits += hit
        return result, hit

    def problem(self, text):
        print(text, flush=True)  # at once: the whole takes hours
        self.problems.append(text)

    def compare(self, what, bare, recorded):
        for part, want, got in zip(("status", "stdout", "stderr"), bare, recorded):
            if want != got:
                difference = f"{got}, bare {want}" if part == "status" else target.first_difference(want, got)
                self.problem(f"{what}: {part} differs: {difference}")

    def system_call(self, program, bare, call, error, and_later, nth):
        """False: there is no nth call."""
        name, number = call
        plan = f"{number}:{nth}{'+' if and_later else ''}:{getattr(errno, error)}:{self.marker}"
        what = f"{program.name} at interval {self.interval}: {name} {nth}{' and later' if and_later else ''} {error}"
        try:
            recorded, hit = self.recorded(program, {"CADASTRE_FAULT": plan})
        except AssertionError as hang:
            self.problem(f"{what}: {hang}")
            return True
        if hit or recorded[0] != bare[0]:  # a program that dies before its fault has not come through
            self.compare(what, bare, recorded)
        return hit

    def allocation(self, program, nth):
        plan = {"FAILING_MALLOC": f"{nth}:{self.marker}"}
        what = f"{program.name} at interval {self.interval}: allocation {nth}"

        def run_bare():
            if os.path.exists(self.marker):
                os.unlink(self.marker)
            return program.run(self.args.allocator, plan, self.scratch), os.path.exists(self.marker)

        try:
            bare, bare_hit = run_bare()
            recorded, hit = self.recorded(program, plan, behind=self.args.allocator)
            # Of several threads' allocations the nth is now this one's, now that one's: what the program may do bare it may do, and
            # what it does now and then it is given the time to do. A signal that the bare program does not end by is never well.
            may_do = [(bare, bare_hit)]
            for _ in range(10):
                if (recorded, hit) in may_do or recorded[0] < 0:
                    break
                may_do.append(run_bare())
                if (recorded, hit) not in may_do:
                    recorded, hit = self.recorded(program, plan, behind=self.args.allocator)
            if (recorded, hit) in may_do:
                bare, bare_hit = recorded, hit
        except AssertionError as hang:
            self.problem(f"{what}: {hang}")
            return True
        if hit != bare_hit:
            self.problem(f"{what}: failed {'only under the preload' if hit else 'only bare'}")
        self.compare(what, bare, recorded)
        return hit and bare_hit

    def program(self, program, interval, numbers, calls):
        """Of each kind of call those whose number is in `numbers`."""
        self.interval = interval
        bare = program.run(None, {}, self.scratch)
        for name, number, errors in calls:
            for error, and_later in errors:
                # A state that lasts differs little by where it begins: powers of two.
                for nth in [n for n in numbers if not and_later or n & (n - 1) == 0]:
                    if nth > program.limit or not self.system_call(program, bare, (name, number), error, and_later, nth):
                        break
        for nth in numbers:
            if nth > program.limit or not self.allocation(program, nth):
                break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, help="libcadastre_faults.so")
    parser.add_argument("--allocator", required=True, help="libfailing_malloc.so")
    parser.add_argument("--programs", required=True, help="folder of the trap programs")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", help="one program, by name")
    parser.add_argument("--after", default="", help="with --all: the programs behind this one, in order")
    parser.add_argument("--interval", help="one interval")
    parser.add_argument("--most", type=int, default=MOST_CALLS, help="of one kind of call")
    args = parser.parse_args()
    scratch = target.scratch_directory("faults")
    try:
        faults = Faults(args, scratch)
        everything = all_programs(args, scratch)
        for program in everything:
            program.run(None, {}, scratch)  # caches of the file system: the first run of a JVM is its slowest
        intervals = [args.interval] if args.interval else ["512k", "1"]
        if args.all:
            for program in everything[[program.name for program in everything].index(args.after) + 1 if args.after else 0:]:
                for interval in intervals:
                    before = faults.hits
                    faults.program(program, interval, range(1, min(program.limit, args.most) + 1), SYSTEM_CALLS)
                    print(f"{program.name} at interval {interval}: {faults.hits - before} faults, {len(faults.problems)} problems so far", flush=True)
        else:
            day = datetime.date.today().toordinal()
            print(f"the slice of day {day}")
            choice = random.Random(day)
            small = [program for program in everything if program.is_ours]
            picked = choice.sample(small, min(3, len(small))) + [program for program in everything if not program.is_ours]
            # One of each form of operator new, whatever the day: each asks the allocator as often as the bare one does.
            for program in small:
                if program.name == "h08_new_family":
                    faults.interval = "512k"
                    for nth in range(50, 800, 100):
                        faults.allocation(program, nth)
            for program in picked:
                first = choice.randrange(1, 6)
                calls = [choice.choice(SYSTEM_CALLS[:4]), choice.choice(SYSTEM_CALLS)] if not program.is_ours else SYSTEM_CALLS
                numbers = sorted({first, 2 ** choice.randrange(4), first + choice.randrange(1, 20)})
                before = faults.hits
                faults.program(program, choice.choice(intervals), numbers, calls)
                print(f"{program.name} at interval {faults.interval}: {faults.hits - before} faults", flush=True)
        print(f"{faults.runs} runs, {faults.hits} faults that came")
        if faults.hits == 0:
            faults.problems.append("no fault came")
    finally:
        target.remove(scratch)
    target.finish(faults.problems)


if __name__ == "__main__":
    main()
