"""Ways to run a program: bare, under Cadastre, under each profiler that is installed; and medians of alternating runs.

A way that is not there (a package that is not installed) is said and left out.
"""
import datetime
import glob
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "support"))
import target  # noqa: E402

ALLOCATORS = {"glibc": None, "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2.0"}


class Way:
    """How a command is started. `base`: the way that it is compared with. Another profiler may fail on a program: its cell stays empty."""

    def __init__(self, name, base, environment=None, prefix=(), is_peer=True):
        self.name, self.base, self.environment, self.prefix, self.is_peer = name, base, environment or {}, list(prefix), is_peer

    def command(self, command):
        return [*self.prefix, *command]


class Scratch:
    """A directory for profiles in memory, emptied between runs."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="cadastre-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def empty(self):
        """Returns the bytes on disk of what was in it."""
        used = 0
        for path in glob.glob(f"{self.path}/*"):
            used += os.stat(path).st_blocks * 512
            os.unlink(path)
        return used


def preload(*libraries):
    return {"LD_PRELOAD": " ".join(library for library in libraries if library)}


def ways(scratch, library, allocators=("glibc",), intervals=("512k",), forwarding=None, peers=(), more=()):
    """For each allocator the bare way and Cadastre at each interval; then the other profilers, by name; then libraries by path."""
    found = []
    for allocator in allocators:
        path = ALLOCATORS[allocator] and target.installed_library(ALLOCATORS[allocator])
        if ALLOCATORS[allocator] and not path:
            print(f"left out: {allocator} is not installed")
            continue
        found.append(Way(allocator, None, preload(path) if path else {}, is_peer=False))
        for interval in intervals:
            found.append(Way(f"{allocator} + cadastre {interval}", allocator,
                             {**preload(library, path), "CADASTRE_OPTIONS": f"interval={interval},out={scratch.path}"}, is_peer=False))
    if forwarding:
        found.append(Way("forwarding alone", "glibc", preload(forwarding)))
    for peer in peers:
        way = PEERS[peer](scratch)
        if way is None:
            print(f"left out: {peer} is not installed")
        else:
            found.append(way)
    for path in more:
        found.append(Way(os.path.basename(path), "glibc", preload(path)))
    names = {way.name for way in found}
    return [way for way in found if way.base is None or way.base in names]


def heaptrack(scratch):
    if not shutil.which("heaptrack"):
        return None
    return Way("heaptrack", "glibc", prefix=["heaptrack", "-o", f"{scratch.path}/heaptrack"])


def jemalloc_prof(scratch):
    path = target.installed_library(ALLOCATORS["jemalloc"])
    options = f"prof:true,prof_active:true,lg_prof_sample:19,prof_final:true,prof_prefix:{scratch.path}/jeprof"
    return path and Way("jemalloc prof", "jemalloc", {**preload(path), "MALLOC_CONF": options})


def gperftools(_):
    path = target.installed_library("libtcmalloc.so.4")
    return path and Way("gperftools sampling", "tcmalloc", {**preload(path), "TCMALLOC_SAMPLE_PARAMETER": str(512 * 1024)})


PEERS = {"heaptrack": heaptrack, "jemalloc prof": jemalloc_prof, "gperftools": gperftools}


def alternate(rounds, all_ways, measure):
    """measure(way) -> {load: figure}. Each round runs every way once, so that drift of the machine hits all; medians of the rounds."""
    figures = {}
    for _ in range(rounds):
        for way in all_ways:
            for load, figure in measure(way).items():
                figures.setdefault(load, {}).setdefault(way.name, []).append(figure)
    return {load: {name: statistics.median(values) for name, values in by_way.items()} for load, by_way in figures.items()}


def processor_seconds(run):
    """run() and what it returns; user and system time of the processes it has waited for: a busy machine blurs the clock on the wall."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as text:
        for line in text:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"


def facts():
    return {"date": datetime.date.today().isoformat(), "processor": processor(), "cpus": os.cpu_count()}


def print_table(figures, all_ways, unit):
    """A Markdown table: loads down, ways across, each with its ratio to the way it is compared with."""
    print(f"| load | {' | '.join(way.name for way in all_ways)} |")
    print("|---|" + "---|" * len(all_ways))
    for load, by_way in figures.items():
        cells = []
        for way in all_ways:
            value, base = by_way.get(way.name), by_way.get(way.base)
            if value is None:
                cells.append("")
            else:
                cells.append(f"{value:.4g} {unit}" if base is None else f"{value / base:.3f}× ({value - base:+.3g} {unit})")
        print(f"| {load} | {' | '.join(cells)} |", flush=True)


def write_json(path, name, unit, figures, all_ways, more=None):
    document = {"benchmark": name, **facts(), "unit": unit, "ways": [{"name": way.name, "base": way.base} for way in all_ways],
                "figures": figures, **(more or {})}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
