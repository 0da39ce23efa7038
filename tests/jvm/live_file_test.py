#!/usr/bin/env python3
"""A JVM whose live file is cut while every allocation is recorded goes on, and its own handler for SIGBUS still does what it is for.

Every JDK that is found, some cuts each.
"""
import os
import subprocess
import sys
import tempfile
import time
import unittest

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import target  # noqa: E402

ARGUMENTS = None
CUTS = 4


class LiveFile(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("live-file")
        self.addCleanup(target.remove, self.scratch)

    def cut(self, java, classes, options):
        out = tempfile.mkdtemp(dir=self.scratch)
        environment = {**target.clean_environment(), "LD_PRELOAD": ARGUMENTS.library, "CADASTRE_OPTIONS": f"{options},out={out}"}
        with subprocess.Popen([java, "-Xmx128m", "-XX:-UsePerfData", "-cp", classes, "Busy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=environment, text=True, cwd=out) as process:
            self.assertEqual(process.stdout.readline(), "busy\n")
            time.sleep(0.2)
            (profile,) = target.profiles_of(out, process.pid)
            with open(profile, "w", encoding="utf-8"):
                pass
            time.sleep(0.1)
            said, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, said), (0, "the JVM's own\n"))

    def test_cut_where_every_allocation_is_recorded(self):
        homes = programs.jdk_homes()
        if not homes:
            self.skipTest("no JDK")
        for home in homes:
            classes = os.path.join(self.scratch, str(programs.java_feature(home)))
            subprocess.run([f"{home}/bin/javac", "-d", classes, os.path.join(here, "live_file", "Busy.java")], check=True, env=target.clean_environment())
            for turn in range(CUTS):
                with self.subTest(home=home, turn=turn):
                    self.cut(f"{home}/bin/java", classes, "interval=1")


if __name__ == "__main__":
    ARGUMENTS, REST = target.test_arguments("library")
    unittest.main(argv=REST, verbosity=2)
