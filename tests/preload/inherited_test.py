#!/usr/bin/env python3
"""What a program inherits is the same bare, under the bare preload and under `cadastre run`.

Exists because a profiler that ignores SIGPIPE for itself, opens a pipe early or fills a closed stdin changes how its target behaves, and
nothing in the target's output may say so. Each set-up is made in the child before the exec, once for each of the three ways.
"""
import os
import re
import resource
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

ARGUMENTS = None


def close(*descriptors):
    def set_up():
        for descriptor in descriptors:
            os.close(descriptor)
    return set_up


def ignore(*numbers):
    def set_up():
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
    return set_up


def block(*numbers):
    return lambda: signal.pthread_sigmask(signal.SIG_SETMASK, numbers)


class InheritedTest(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("inherited")
        self.addCleanup(target.remove, self.scratch)

    def once(self, way, set_up):
        seen = os.path.join(self.scratch, "seen")
        command = [ARGUMENTS.program, seen]
        environment = target.clean_environment()
        if way == "preload":
            environment.update(target.preload_environment(ARGUMENTS.library, self.scratch, "1"))
        if way == "run":
            command = [ARGUMENTS.cadastre, "run", "--quiet", "--interval", "1", "--out", self.scratch, "--", *command]

        def prepare():
            # Whatever started the test, and what Python ignores for itself.
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            set_up()

        def name(profile):
            return profile.endswith(".cad")

        before = set(filter(name, os.listdir(self.scratch)))
        with open(os.devnull, "r+b") as null, open(os.path.join(self.scratch, "err"), "w+b") as err:
            done = subprocess.run(command, env=environment, stdin=null, stdout=null, stderr=err, cwd=self.scratch, preexec_fn=prepare,
                                  close_fds=True, check=False, timeout=60)
            err.seek(0)
            said = err.read().decode()
        self.assertEqual(done.returncode, 0, said)
        made = set(filter(name, os.listdir(self.scratch))) - before
        self.assertEqual(len(made), 0 if way == "bare" else 1, said)
        with open(seen, encoding="utf-8") as file:
            text = file.read()
        os.remove(seen)
        return text, [os.path.join(self.scratch, profile) for profile in made]

    def same(self, set_up=lambda: None):
        bare, _ = self.once("bare", set_up)
        for way in ("preload", "run"):
            text, profiles = self.once(way, set_up)
            self.assertEqual(bare, text, way)
            for profile in profiles:  # whole, whatever its descriptor's number was
                self.assertGreater(target.report(ARGUMENTS.cadastre, profile)["profile"]["samples"], 999)
        return bare

    def test_descriptors(self):
        self.assertEqual(len(re.findall("^fd ", self.same(), re.M)), 3)

    def test_an_inherited_descriptor_stays(self):
        def set_up():
            os.dup2(0, 7, inheritable=True)
        self.assertIn("fd 7 ", self.same(set_up))

    def test_closed_standard_descriptors_stay_closed(self):
        for closed in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):
            with self.subTest(closed=closed):
                self.assertEqual(len(re.findall("^fd ", self.same(close(*closed)), re.M)), 3 - len(closed))

    def test_ignored_signals_stay_ignored(self):
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTSTP, signal.SIGUSR1, signal.SIGXFSZ):
            with self.subTest(number=number):
                ignored = int(re.search(r"^SigIgn:\s*(\w+)", self.same(ignore(number)), re.M).group(1), 16)
                self.assertTrue(ignored >> (number - 1) & 1)

    def test_default_signals_stay_default(self):
        self.assertRegex(self.same(), r"(?m)^SigIgn:\s*0+$")

    def test_blocked_signals_stay_blocked(self):
        self.assertRegex(self.same(block(signal.SIGTERM, signal.SIGPIPE, signal.SIGRTMIN + 3)), r"(?m)^SigBlk:\s*0*[1-9a-f]")

    def test_everything_else(self):
        def set_up():
            os.umask(0o137)
            os.nice(3)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_NOFILE, (77, 99))
            os.setsid()
        self.assertIn("Umask:\t0137", self.same(set_up))


def main():
    global ARGUMENTS
    ARGUMENTS, argv = target.test_arguments("library", "cadastre", "program")
    unittest.main(argv=argv, verbosity=2)


if __name__ == "__main__":
    main()
