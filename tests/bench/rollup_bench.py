#!/usr/bin/env python3
"""How fast `cadastre rollup` reads collapsed stacks, and in how much memory: 1 GB, at no less than 200 MB/s, in no more than 256 MiB.

Exit 1 if it is slower or needs more; --smoke reads 8 MB and judges memory alone.
"""
import argparse
import os
import random
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

LEAST_MB_PER_S = 200
MOST_RESIDENT_MIB = 256
BLOCK_BYTES = 8_000_000


def block():
    """Stacks as a service has them: 20 to 60 frames, of some thousand methods; the owner ten frames from the leaf."""
    choose = random.Random(1)
    methods = [f"com.acme.{choose.choice(('billing', 'search', 'web'))}.part{i % 40}.Class{i}.method{i % 7}" for i in range(4000)]
    wrappers = [f"java.util.concurrent.Wrapper{i}.call" for i in range(400)]
    lines, size = [], 0
    while size < BLOCK_BYTES:
        frames = [choose.choice(methods) for _ in range(choose.randrange(10, 50))] + [choose.choice(wrappers) for _ in range(10)]
        lines.append(";".join(frames) + f" {choose.randrange(1, 1000)}\n")
        size += len(lines[-1])
    return "".join(lines).encode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()
    scratch = target.scratch_directory("rollup-bench")
    try:
        paths = [os.path.join(scratch, name) for name in ("owners.csv", "heap.csv", "stacks.txt")]
        with open(paths[0], "w", encoding="utf-8") as file:
            file.write("prefix,module,team\njava.,platform,\ncom.acme.billing.,billing,a\ncom.acme.search.,search,b\ncom.acme.web.,web,c\n")
        with open(paths[1], "w", encoding="utf-8") as file:
            file.write("class,retained_bytes\ncom.acme.billing.A,1\n")
        stacks, blocks = block(), 1 if arguments.smoke else 1_000_000_000 // BLOCK_BYTES
        with open(paths[2], "wb") as file:
            for _ in range(blocks):
                file.write(stacks)
        size = os.path.getsize(paths[2])
        start = time.monotonic()
        subprocess.run([arguments.cadastre, "rollup", *paths], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s, resident_mib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        print(f"{size / 1e6:.0f} MB of stacks in {seconds:.2f} s ({size / 1e6 / seconds:.0f} MB/s; of processor time {size / 1e6 / cpu_s:.0f} MB/s), "
              f"{resident_mib:.0f} MiB resident")
        slow = not arguments.smoke and size / 1e6 / cpu_s < LEAST_MB_PER_S
        sys.exit(1 if slow or resident_mib > MOST_RESIDENT_MIB else 0)
    finally:
        target.remove(scratch)


if __name__ == "__main__":
    main()
