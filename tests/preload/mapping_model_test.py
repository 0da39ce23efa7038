#!/usr/bin/env python3
"""A million random mapping calls from four threads: what the profile says is mapped is what the kernel says.

Exists because an interval map is wrong silently: a fixed mapping over half of another, a failed mremap, an mprotect over a hole. The
program (mapping_model.c) writes both sides at each checkpoint. Inside its windows they must be equal, page by page and protection by
protection; outside, nothing may be in the profile that the kernel does not know.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

ARGUMENTS = None


def joined(pieces):
    """[(start, end, protection)] in order, neighbours of one protection joined."""
    result = []
    for start, end, protection in sorted(pieces):
        if result and result[-1][1] == start and result[-1][2] == protection:
            result[-1] = (result[-1][0], end, protection)
        else:
            result.append((start, end, protection))
    return result


def clipped(pieces, window):
    low, high = window
    return [(max(start, low), min(end, high), protection) for start, end, protection in pieces if start < high and end > low]


def kernel_side(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        found = (re.match(r"([0-9a-f]+)-([0-9a-f]+) (...)", line) for line in file)
        return [(int(match[1], 16), int(match[2], 16), match[3]) for match in found if match]


class MappingModelTest(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("mappings")
        self.addCleanup(target.remove, self.scratch)

    def profile_side(self, path):
        outcome = target.run([ARGUMENTS.cadastre, "print", path, "--live", "0"])
        self.assertEqual(outcome.status, 0, outcome.stderr)
        self.assertRegex(outcome.stdout, r"mappings_full 0 mapping_events_lost 0")
        found = re.findall(r"^mapping ([0-9a-f]+)-([0-9a-f]+) (\S+)(.*) site", outcome.stdout, re.M)
        return [(int(start, 16), int(end, 16), protection) for start, end, protection, _ in found]

    def test_the_profile_agrees_with_the_kernel(self):
        command = [ARGUMENTS.program, self.scratch, str(ARGUMENTS.calls)]
        environment = target.preload_environment(ARGUMENTS.library, self.scratch, "512k")
        outcome = target.run(command, environment, timeout=ARGUMENTS.timeout)
        self.assertEqual(outcome.status, 0, outcome.stderr)
        windows = [(int(low, 16), int(high, 16)) for low, high in re.findall(r"^window (\S+) (\S+)$", outcome.stdout, re.M)]
        self.assertEqual(len(windows), 4)
        checkpoints = int(re.search(r"^checkpoints (\d+)$", outcome.stdout, re.M)[1])
        pieces = 0
        for number in range(checkpoints):
            kernel = kernel_side(os.path.join(self.scratch, f"{number}.maps"))
            profile = self.profile_side(os.path.join(self.scratch, f"{number}.cad"))
            for window in windows:
                want, got = joined(clipped(kernel, window)), joined(clipped(profile, window))
                pieces += len(want)
                self.assertEqual(got, want, f"checkpoint {number}, window {window[0]:x}")
            known = joined((start, end, "") for start, end, _ in kernel)
            for start, end, _ in profile:
                inside = any(low <= start and end <= high for low, high, _ in known)
                self.assertTrue(inside, f"checkpoint {number}: {start:x}-{end:x} is not mapped")
        self.assertGreater(pieces, 100 * checkpoints)
        print(f"{ARGUMENTS.calls} calls, {checkpoints} checkpoints, {pieces} ranges compared")


def main():
    global ARGUMENTS

    def more(parser):
        parser.add_argument("--calls", type=int, default=1000000)
        parser.add_argument("--timeout", type=int, default=500)
    ARGUMENTS, argv = target.test_arguments("library", "cadastre", "program", more=more)
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
