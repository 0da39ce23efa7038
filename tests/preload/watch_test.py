#!/usr/bin/env python3
"""`cadastre watch`, from another terminal: snapshots when they are due, and what dead processes left.

Exists because nobody can ask a process that was OOM-killed: what it held must have been copied before, by somebody who was no part of it.
The target is steered through a pipe, and each test waits for files, not for time.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402
from steered import Steered, profiles_in, read_text, snapshots_of, until  # noqa: E402

ARGUMENTS = None


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("watch")
        self.addCleanup(target.remove, self.scratch)
        self.live = os.path.join(self.scratch, "live")
        self.saved = os.path.join(self.scratch, "saved")
        os.mkdir(self.live)
        os.mkdir(self.saved)

    def recorded(self, grow=1, extra="", **more):
        environment = target.preload_environment(ARGUMENTS.library, self.live, "64k", extra=extra)
        steered = Steered([ARGUMENTS.program], environment, **more)
        self.addCleanup(steered.close)
        if grow:
            steered.do(f"grow {grow}")
        return steered

    def profile_of(self, steered):
        return until(lambda: target.profiles_of(self.live, steered.pid), "a profile")[-1]

    def watch(self, *arguments, **more):
        """A watch that is under way. Its stderr is a file, so that nothing blocks."""
        path = os.path.join(self.scratch, "err")
        with open(path, "w", encoding="utf-8") as err:
            process = subprocess.Popen([ARGUMENTS.cadastre, "watch", *map(str, arguments)], env=target.clean_environment(),
                                       stdout=subprocess.PIPE, stderr=err, text=True, cwd=self.scratch, **more)

        def stop():
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        self.addCleanup(stop)
        process.said = lambda: read_text(path)
        until(lambda: "watching " in process.said() or process.poll() is not None, "the watch")
        return process

    def end(self, watch):
        status = watch.wait(60)
        return status, watch.stdout.read().split("\n")[:-1]

    def report(self, profile):
        return target.report(ARGUMENTS.cadastre, profile)

    # -- one process

    def test_it_ends_with_the_process_and_tells_the_command(self):
        steered = self.recorded()
        told = os.path.join(self.scratch, "told")
        script = os.path.join(self.scratch, "tell")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\necho \"$1 $2\" > {told}\n")
        os.chmod(script, 0o755)
        watch = self.watch(steered.pid, "--on-end", f"{script} saved", "-o", self.saved)
        name = os.path.basename(self.profile_of(steered))
        self.assertEqual(steered.end("die"), -9)
        status, printed = self.end(watch)
        self.assertEqual(status, 0, watch.said())
        self.assertEqual(printed, [os.path.join(self.saved, name)])
        with open(told, encoding="ascii") as file:
            self.assertEqual(file.read(), f"saved {printed[0]}\n")
        self.assertEqual(profiles_in(self.live), [])
        document = self.report(printed[0])
        self.assertEqual(document["profile"]["end"], "lost")
        self.assertGreaterEqual(document["totals"]["live_bytes"], 1 << 20)
        self.assertLess(os.path.getsize(printed[0]), 4 << 20)

    def test_a_command_that_fails_is_told(self):
        steered = self.recorded()
        watch = self.watch(steered.pid, "--on-end", "false")
        steered.end()
        status, printed = self.end(watch)
        self.assertEqual(status, 1)
        self.assertEqual(len(printed), 1)
        self.assertIn("false ended with exit status 1", watch.said())

    def test_peak_is_kept_and_grows(self):
        steered = self.recorded(20)
        watch = self.watch(steered.pid)
        profile = self.profile_of(steered)
        until(lambda: "peak" in snapshots_of(profile), "@peak")
        first = self.report(profile + "@peak")["profile"]["rss_bytes"]
        self.assertGreater(first, 20 << 20)
        steered.do("grow 60")
        until(lambda: self.report(profile + "@peak")["profile"]["rss_bytes"] > 80 << 20, "a higher peak")
        steered.do("drop")
        steered.do("grow 1")
        steered.end()
        _, printed = self.end(watch)
        self.assertEqual(printed, [profile])
        peak = self.report(profile + "@peak")
        self.assertGreater(peak["totals"]["live_bytes"], 60 << 20)
        self.assertLess(self.report(profile)["totals"]["live_bytes"], 20 << 20)

    def test_thresholds_of_a_limit(self):
        steered = self.recorded(10)
        watch = self.watch(steered.pid, "--limit", "100m", "--at", "50,80,94")
        profile = self.profile_of(steered)
        until(lambda: "peak" in snapshots_of(profile), "a look")
        self.assertEqual(snapshots_of(profile, "at-"), [])
        steered.do("grow 45")
        until(lambda: snapshots_of(profile, "at-") == ["at-50"], "50 %")
        steered.do("grow 30")
        until(lambda: snapshots_of(profile, "at-") == ["at-50", "at-80"], "80 %")
        self.assertGreater(self.report(profile + "@at-80")["profile"]["rss_bytes"], 80 << 20)
        # Killed near the limit: that is what an OOM kill looks like when nobody tells.
        steered.do("grow 8")
        until(lambda: "at-94" in snapshots_of(profile, "at-"), "94 %")
        steered.end("die")
        self.end(watch)
        document = self.report(profile)["profile"]
        self.assertEqual((document["end"], document["oom"]), ("lost", "likely"))
        self.assertEqual(document["memory_limit_bytes"], 100 << 20)
        self.assertRegex(target.run([ARGUMENTS.cadastre, "report", profile]).stdout, r"ended: lost, OOM likely \(9\d\.\d\d of 100\.00 MiB\)")

    def test_periodic_snapshots_are_kept_by_number(self):
        steered = self.recorded()
        watch = self.watch(steered.pid, "--every", "1s", "--keep", "2")
        profile = self.profile_of(steered)
        seen = set()

        def five():
            seen.update(snapshots_of(profile, "every-"))
            return len(seen) >= 5
        until(five, "five snapshots")
        steered.end()
        self.end(watch)
        self.assertEqual(len(snapshots_of(profile, "every-")), 2)
        self.assertEqual(snapshots_of(profile, "every-"), sorted(seen | set(snapshots_of(profile, "every-")))[-2:])

    def test_a_process_that_becomes_another(self):
        steered = self.recorded()
        watch = self.watch(steered.pid, "-o", self.saved)
        first = self.profile_of(steered)
        steered.say(f"exec {ARGUMENTS.program}")
        steered.do("grow 2")
        until(lambda: watch.said().count("watching ") == 2, "the second profile")
        self.assertFalse(os.path.exists(first))
        steered.end()
        _, printed = self.end(watch)
        self.assertEqual(len(printed), 2)
        self.assertEqual([self.report(path)["profile"]["end"] for path in printed][1], "exit")

    def test_a_process_without_a_sample_yet(self):
        steered = self.recorded(0)
        watch = subprocess.Popen([ARGUMENTS.cadastre, "watch", str(steered.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=target.clean_environment())
        self.addCleanup(watch.communicate)
        self.assertIn("no sample was due yet", watch.stderr.readline())
        steered.do("grow 2")
        self.assertIn("watching ", watch.stderr.readline())
        steered.end()
        self.assertEqual(watch.wait(60), 0)

    # -- a directory

    def test_what_dead_processes_left_is_adopted(self):
        dead = [self.recorded() for _ in range(3)]
        for steered in dead:
            steered.end("die")
        alive = self.recorded()
        watch = self.watch(self.live, "-o", self.saved)
        until(lambda: len(profiles_in(self.saved)) == 3, "three profiles")
        self.assertEqual(profiles_in(self.live), [self.profile_of(alive)])
        name = os.path.basename(self.profile_of(alive))
        until(lambda: snapshots_of(os.path.join(self.saved, name)) == ["peak"], "the peak of the one that lives")
        alive.end()
        until(lambda: len(profiles_in(self.saved)) == 4, "the fourth")
        watch.terminate()
        status, printed = self.end(watch)
        self.assertEqual(status, 0, watch.said())
        self.assertEqual(sorted(printed), profiles_in(self.saved))
        self.assertEqual(profiles_in(self.live), [])
        for path in printed:
            self.assertGreaterEqual(self.report(path)["totals"]["live_bytes"], 1 << 20)
        # Saved once is saved.
        again = self.watch(self.saved, "-o", self.live)
        again.terminate()
        self.assertEqual(self.end(again), (0, []))

    def test_only_programs_that_are_meant(self):
        self.recorded().end("die")
        left = profiles_in(self.live)
        watch = self.watch(self.live, "--exe", "java*", "-o", self.saved)
        watch.terminate()
        self.assertEqual(self.end(watch), (0, []))
        self.assertEqual(profiles_in(self.live), left)

    def test_a_saved_name_that_is_taken_stays(self):
        steered = self.recorded()
        profile = self.profile_of(steered)
        taken = os.path.join(self.saved, os.path.basename(profile))
        with open(taken, "w", encoding="ascii") as file:
            file.write("mine\n")
        steered.end("die")
        watch = self.watch(self.live, "-o", self.saved)
        until(lambda: "is there already" in watch.said(), "a complaint")
        watch.terminate()
        self.assertEqual(self.end(watch), (0, []))
        self.assertTrue(os.path.exists(profile))
        with open(taken, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine\n")

    # -- what cannot be watched

    def refused(self, *arguments, command=None, **more):
        done = subprocess.run([command or ARGUMENTS.cadastre, "watch", *map(str, arguments)], env=target.clean_environment(), capture_output=True,
                              text=True, check=False, timeout=60, **more)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        return done.stderr

    def test_what_cannot_be_watched_is_one_line(self):
        self.assertIn("no process 999999999", self.refused(999999999))
        self.assertIn("no such directory", self.refused(os.path.join(self.scratch, "none")))
        self.assertIn("was not started with Cadastre", self.refused(os.getpid()))
        self.assertIn("--every", self.refused(self.live, "--every", "0"))
        self.assertIn("--at", self.refused(self.live, "--at", "120"))
        self.assertIn("--limit", self.refused(self.live, "--limit", "much"))
        self.assertIn("cannot write", self.refused(self.live, "-o", "/proc"))

    @unittest.skipIf(os.geteuid() != 0, "only root can be two users")
    def test_a_process_of_another_user(self):
        steered = self.recorded()
        profile = self.profile_of(steered)
        os.chmod(self.scratch, 0o755)
        os.chmod(self.live, 0o777)

        # Where another user reaches it: a build may lie in somebody's home.
        tools = tempfile.mkdtemp(prefix="cadastre-watch-")
        self.addCleanup(target.remove, tools)
        os.chmod(tools, 0o755)
        cadastre = shutil.copy(ARGUMENTS.cadastre, tools)

        def other():
            os.setgroups([])
            os.setresgid(65532, 65532, 65532)
            os.setresuid(65532, 65532, 65532)
        said = self.refused(steered.pid, command=cadastre, preexec_fn=other, cwd="/")
        self.assertIn("belongs to uid 0 and this is uid 65532", said)
        self.assertIn("CAP_SYS_PTRACE", said)
        watch = subprocess.Popen([cadastre, "watch", self.live], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env=target.clean_environment(), preexec_fn=other, cwd="/")
        self.addCleanup(watch.communicate)
        self.assertIn("watching directory", watch.stderr.readline())
        self.assertRegex(watch.stderr.readline(), rf"cannot read {re.escape(profile)}: it belongs to uid 0 and this is uid 65532; .*mode=640")
        watch.terminate()
        self.assertEqual(watch.wait(60), 0)


def main():
    global ARGUMENTS
    ARGUMENTS, argv = target.test_arguments("library", "cadastre", "program")
    unittest.main(argv=argv, verbosity=2)


if __name__ == "__main__":
    main()
