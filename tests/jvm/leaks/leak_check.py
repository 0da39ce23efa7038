"""Runs one leak program under the preload and judges the report of it. Used by leaks_test.py and real_world_test.py.

A leak program is a class that implements org.shop.server.Service; org.shop.server.Launcher runs it beside the innocent parts of the
shop and prints `TRUTH module=M live_bytes=N` or `TRUTH module=M objects=N`. The module's name is the package's.

What is compared are the sites that show all of `through` (the wrapper's frames) and the method that a maintainer would `mend`. The
rest of the module's row is what the JVM keeps for its classes and threads: `bookkeeping` is its bound.
"""
import collections
import dataclasses
import os
import re
import sys
import tempfile
import zlib

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../support", "../../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
INTERVAL = "64k"
SYSTEM = "/usr/lib/x86_64-linux-gnu"  # where Debian's packages have their libraries
# A right estimate is further off than 4 standard errors once in 16,000 times, with 80 samples once in 2,000. There are hundreds of
# comparisons here, so one that fails is repeated with another seed, and only if that fails too it counts.
TRIES = 2
SIGMAS = 4
UNOWNED = (None, "unattributed")
# What the JVM may keep for the innocent: the launcher loads everybody's first classes, the pages a hundred; nobody's is next to nothing.
INNOCENT_BOUND = {"org.shop.server": 1 * MIB, "org.shop.cart": 64 * KIB, "org.shop.pages": 2 * MIB, "unattributed": 64 * KIB}
INNOCENT_TRUTH = {"org.shop.search": 128 * KIB}  # they print what they hold; the bound is on top


@dataclasses.dataclass(frozen=True)
class Leak:
    name: str  # the class
    mend: str  # its method that a maintainer would mend, or None where no Java frame has to be there
    through: tuple  # what else each leaking site shows: prefixes of a function, or lib:NAME
    each: tuple = None  # (least, most) bytes per object where only the library knows; None: the program counts to the byte
    module: str = None  # who has to be charged, if not the class's package
    # Of the JVM, for the module's classes and threads, and chunks of arenas where a method of it is deoptimised.
    bookkeeping: int = 512 * KIB
    jars: tuple = ()  # names under --jars
    package: str = None  # the Debian package that has them
    flags: tuple = ()  # of the JVM; {native} is the directory of the libraries
    since: int = 0  # the first JDK
    note: str = None  # what is not asserted yet, and why
    mapped: bool = False  # it leaks mappings, which are not sampled

    def frames(self):
        return self.through + ((f"{self.name}.{self.mend}",) if self.mend else ())

    def owner(self):
        return self.module or self.name.rpartition(".")[0]


def jdks():
    """{home: version} of all JDKs found."""
    found = {}
    for wanted in ("any", "17", "21", "25"):
        try:
            home = os.path.realpath(programs.jdk(wanted))
            with open(os.path.join(home, "release"), encoding="utf-8") as file:
                found[home] = int(re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', file.read(), re.M).group(1))
        except programs.Missing:
            pass
    return found


def command(leak, home, version, native, classes, jars):
    flags = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:-UsePerfData", f"-Djava.library.path={native}:{SYSTEM}/jni:{SYSTEM}"]
    if version >= 22:
        flags.append("--enable-native-access=ALL-UNNAMED")
    if version >= 23:
        flags.append("--sun-misc-unsafe-memory-access=allow")
    flags += [flag.format(native=native) for flag in leak.flags]
    return [f"{home}/bin/java", *flags, "-cp", ":".join([*classes, *jars]), "org.shop.server.Launcher", leak.name]


def record(args, leak, command_line, interval, seed):
    """Runs it once: ({module: (kind, number)} as the programs say, the report)."""
    out = target.scratch_directory("leaks")
    try:
        environment = target.preload_environment(args.library, out, interval, extra=f"exe=java,seed={seed}")
        with tempfile.TemporaryDirectory(prefix="cadastre-leaks-") as files:  # not on /dev/shm, which may forbid to load libraries
            java, *arguments = command_line
            outcome = target.run([java, f"-Djava.io.tmpdir={files}", *arguments], environment, timeout=100)
        profiles = target.profiles_of(out, outcome.pid)
        if outcome.status != 0 or not profiles:
            raise AssertionError(f"ended with {outcome.status}, profiles {profiles}: {outcome.stdout}{outcome.stderr}")
        lines = re.findall(r"^TRUTH module=([\w.]+) (live_bytes|objects)=(\d+)$", outcome.stdout, re.M)
        truth = {module: (kind, int(number)) for module, kind, number in lines}
        document = target.report(args.cadastre, profiles[-1], "--rules", args.rules)
        document["mappings"] = target.report(args.cadastre, profiles[-1], "--rules", args.rules, "--metric", "mapped")["sites"]
        return truth, document
    finally:
        target.remove(out)


def shows(site, wanted):
    """Has the site a frame of this function prefix, or of this library?"""
    if wanted.startswith("lib:"):
        return any(os.path.basename(frame["library"] or "").startswith(wanted[4:]) for frame in site["frames"])
    return any(frame["function"].startswith(wanted) for frame in site["frames"])


def leaked(leak, document):
    """(bytes, standard error) of the sites that leak, whoever is charged, and {module: bytes} of who is."""
    owners, variance = collections.Counter(), 0
    kind, quantity = ("mmap", "mapped_bytes") if leak.mapped else ("malloc", "live_bytes")
    for site in document["mappings" if leak.mapped else "sites"]:
        # Whoever calls whatever, the JVM commits its own memory then and there.
        if leak.mapped and os.path.basename(site["frames"][0]["library"] or "") == "libjvm.so":
            continue
        if site["kind"] == kind and all(shows(site, wanted) for wanted in leak.frames()):
            owners[site["module"]] += site[quantity]
            variance += site["live_bytes_stderr"] ** 2
    return sum(owners.values()), variance ** 0.5, {owner: size for owner, size in owners.items() if size}


def innocent(leak, truth, document):
    """Nothing else grew."""
    problems = []
    rows = {row["module"]: (row["live_bytes"], row["live_bytes_stderr"]) for row in document["modules"] if row["module"] not in UNOWNED}
    unattributed = document["unattributed"]
    rows["unattributed"] = (unattributed["live_bytes"], unattributed["live_bytes_stderr"])
    for module, (size, error) in rows.items():
        if module in (leak.owner(), "platform"):
            continue
        held = truth[module][1] if module in INNOCENT_TRUTH else 0
        bound = INNOCENT_TRUTH.get(module, INNOCENT_BOUND.get(module, 0))
        if not held - SIGMAS * error <= size <= held + bound + SIGMAS * error:
            problems.append(f"{module} has {size} ±{error:.0f} bytes; it holds {held}, and {bound} at most are the JVM's for it")
    return problems


def judge(leak, truth, document, exact_bytes):
    """(problems, bytes leaked). `exact_bytes`: what the run at interval 1 found, None if this is that run."""
    problems = innocent(leak, truth, document)
    kind, number = truth.get(leak.owner()) or truth[leak.name.rpartition(".")[0]]
    size, error, owners = leaked(leak, document)
    if not size or set(owners) != {leak.owner()}:
        problems.append(f"through {' and '.join(leak.frames())} owners are {owners}, not {leak.owner()}")
    if exact_bytes is None:
        # The JVM makes its wrapper of a native method in the stack of the call that made the method hot: a few KB, once.
        if leak.each is None and not number <= size <= 1.001 * number:
            problems.append(f"{size} bytes were found and the program holds {number}")
        elif leak.each is not None and not leak.each[0] * number <= size <= leak.each[1] * number:
            problems.append(f"{size} bytes for {number} objects, {size / number:.1f} each and not {leak.each[0]} to {leak.each[1]}")
    else:
        # Two runs are not the same to the byte where the library, or the JVM, decides.
        want, slack = (number, 0.001) if leak.each is None else (exact_bytes, 0.01)
        if abs(size - want) > SIGMAS * error + slack * want:
            problems.append(f"{size} ±{error:.0f} bytes: {(size - want) / max(error, 1):+.1f} standard errors from {want}")
    row = next((row for row in document["modules"] if row["module"] == leak.owner()), {"live_bytes": 0, "live_bytes_stderr": 0})
    rest = row["live_bytes"] - (0 if leak.mapped else owners.get(leak.owner(), 0))
    if rest > leak.bookkeeping + SIGMAS * (row["live_bytes_stderr"] if exact_bytes is not None else 0):
        problems.append(f"the row of {leak.owner()} has {rest} bytes more than what leaks; {leak.bookkeeping} at most are the JVM's for it")
    return problems, size


def check(args, leak, home, version, classes, jars):
    """Runs it at interval 1 and sampled; returns the problems."""
    line = command(leak, home, version, args.native, classes, jars)
    # A seed of its own, or all main threads would draw the same numbers and err to the same side.
    seed = zlib.crc32(f"{leak.name} {leak.flags} {version}".encode())
    try:
        problems, exact_bytes = judge(leak, *record(args, leak, line, "1", seed), None)
        problems = [f"interval 1: {problem}" for problem in problems]
        for attempt in range(TRIES):
            found, size = judge(leak, *record(args, leak, line, INTERVAL, seed + attempt), exact_bytes)
            print(f"  JDK {version} {leak.name}: {exact_bytes / MIB:.2f} MiB, sampled {size / MIB:.2f} MiB", flush=True)
            if not found:
                break
            print(f"    seed {seed + attempt}: {'; '.join(found)}")
        else:
            problems += [f"interval {INTERVAL}: {problem}" for problem in found]
        return problems
    except AssertionError as error:
        return [str(error)]


def check_all(args, leaks, find_jars):
    """Checks each on one JDK, every day on another one. find_jars(leak) returns (jars, None) or (None, why not). The exit status."""
    problems, checked, homes = [], 0, jdks()
    for number, leak in enumerate(leaks):
        jars, missing = find_jars(leak)
        fitting = {home: version for home, version in homes.items() if version >= leak.since}
        if not missing and not fitting:
            missing = f"no JDK from {leak.since} on was found"
        if missing:
            print(f"SKIPPED {leak.name}: {missing}")
            continue
        if leak.note:
            print(f"NOTE {leak.name}: {leak.note}")
        classes = [path for path in args.classes if os.path.isdir(path)]
        for turn, (home, version) in enumerate(fitting.items()):
            if not target.is_todays(number + turn, len(fitting)):
                continue
            checked += 1
            problems += [f"JDK {version}, {leak.name}: {problem}" for problem in check(args, leak, home, version, classes, jars)]
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"{checked} runs of {len(leaks)} programs, {len(problems)} problems")
    return 1 if problems else 0 if checked else target.SKIP
