#!/usr/bin/env python3
"""A profile on a disk is in memory with the pages that were made, not with what the kernel reads around them.

Exists because a file system reads ahead where a page of a mapped file is touched first, and reads the zeroes of a hole too: a program that
lives for a moment and makes 30 pages paid for a hundred thousand, half a millisecond each.
"""
import argparse
import ctypes
import mmap
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402


def pages_in_memory(path):
    """How many pages of the file are cached: mincore(2), asked through a mapping that is not touched."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        with mmap.mmap(file.fileno(), size) as mapping:
            answer = (ctypes.c_ubyte * ((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE))()
            start = ctypes.c_char.from_buffer(mapping)
            failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), answer)
            del start
            if failed:
                raise OSError(ctypes.get_errno(), "mincore")
    return sum(value & 1 for value in answer)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    args = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="cadastre-disk-", dir=os.getcwd())
    try:
        ran = target.run([args.program], target.preload_environment(args.library, scratch, "1"))
        profiles = target.profiles_of(scratch, ran.pid, os.path.basename(args.program))
        if ran.status != 0 or len(profiles) != 1:
            print(f"FAILED: status {ran.status}, {len(profiles)} profiles: {ran.stderr}")
            sys.exit(1)
        made = os.stat(profiles[0]).st_blocks * 512 // mmap.PAGESIZE
        cached = pages_in_memory(profiles[0])
        print(f"{made} pages made, {cached} in memory")
        sys.exit(0 if 0 < cached <= 2 * made else 1)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
