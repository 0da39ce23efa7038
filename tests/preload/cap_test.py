#!/usr/bin/env python3
"""What happens when memory= runs short, stage by stage, while a leak grows on: the interval doubles, then new stacks share one site, then
samples are dropped and totals are "at least". The total never sinks in any of them.

Exists because a profiler that runs full in the night shows a leak that has stopped growing at three o'clock.
"""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

ARGUMENTS = None


class CapTest(unittest.TestCase):
    def setUp(self):
        self.out = target.scratch_directory("cap")
        self.addCleanup(target.remove, self.out)

    def steps(self, how, count, blocks, options):
        """[(bytes held by the leak, report, text of the report)] after each step, read while the program waits."""
        environment = target.clean_environment()
        environment.update({"LD_PRELOAD": ARGUMENTS.library, "CADASTRE_OPTIONS": f"{options},out={self.out}"})
        found = []
        with subprocess.Popen([ARGUMENTS.program, how, str(count), str(blocks)], env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            for _ in range(count):
                held = int(process.stdout.readline())
                profile = target.profiles_of(self.out, process.pid)[0]
                text = target.run([ARGUMENTS.cadastre, "report", profile, "--min-samples", "0"]).stdout
                found.append((held, target.report(ARGUMENTS.cadastre, profile, "--min-samples", "0"), text))
                process.stdin.write(b".")
                process.stdin.flush()
            self.assertEqual(process.wait(60), 0)
        return found

    def test_the_interval_doubles_and_the_estimate_stays_right(self):
        found = self.steps("leak", 5, 60000, "interval=1k,memory=1m,seed=7")
        last = found[-1][1]
        self.assertTrue([w for w in last["warnings"] if "the interval was doubled" in w], last["warnings"])
        self.assertEqual(last["losses"]["dropped_samples"], 0)
        for held, document, _ in found:
            # 4.5 standard errors at 5 points: less than 1 in 10,000 seeds, and the seed is fixed.
            totals = document["totals"]
            self.assertLess(abs(totals["live_bytes"] - held), 4.5 * totals["live_bytes_stderr"] + 10000)
        for (_, before, _), (_, after, _) in zip(found, found[1:]):
            self.assertGreater(after["totals"]["live_bytes"], before["totals"]["live_bytes"])

    def test_new_stacks_share_a_site_and_their_bytes_are_there(self):
        found = self.steps("stacks", 4, 3000, "interval=1,memory=8m")
        last = found[-1][1]
        self.assertGreater(last["losses"]["sites_overflowed"], 0)
        self.assertEqual(last["losses"]["dropped_samples"], 0)
        for held, document, _ in found:
            self.assertGreaterEqual(document["totals"]["live_bytes"], held)  # every block, the program's own few included
            self.assertLess(document["totals"]["live_bytes"], held + 300000)
        full = [site for site in last["sites"] if any("stack table full" in (f["function"] or "") for f in site["frames"])]
        self.assertTrue(full and full[0]["live_bytes"] > 0, [s["frames"][:1] for s in last["sites"][:3]])
        self.assertTrue([w for w in last["warnings"] if "charged to [stack table full]" in w], last["warnings"])

    def test_samples_are_dropped_and_the_total_says_at_least(self):
        found = self.steps("leak", 4, 15000, "interval=1,memory=1m")
        last, text = found[-1][1], found[-1][2]
        self.assertGreater(last["losses"]["dropped_samples"], 0)
        self.assertIn("≥", text)
        for (_, before, _), (_, after, _) in zip(found, found[1:]):
            self.assertGreaterEqual(after["totals"]["live_bytes"], before["totals"]["live_bytes"])
        for held, document, _ in found:
            self.assertLessEqual(document["totals"]["live_bytes"], held + 300000)
        self.assertGreaterEqual(last["totals"]["allocated_bytes"], found[-1][0], "the volume is counted though its stacks are not kept")


def main():
    global ARGUMENTS
    ARGUMENTS, argv = target.test_arguments("library", "cadastre", "program")
    unittest.main(argv=argv, verbosity=2)


if __name__ == "__main__":
    main()
