#!/usr/bin/env python3
"""Children, execs and endings: who is recorded, who is named as not recorded, which files are left and which go.

Exists because a profiler that is inherited through the environment meets shells, probes and a thousand short-lived helpers, and must leave
exactly the files that somebody wants, whatever way a program ends.
"""
import json
import os
import re
import signal
import stat
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402
from steered import Steered, profiles_in, snapshots_of, until  # noqa: E402

ARGUMENTS = None


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("tree")
        self.addCleanup(target.remove, self.scratch)
        self.live = os.path.join(self.scratch, "live")
        os.mkdir(self.live)

    def run_shell(self, script, *options, stdin=b"", environment=None):
        return target.run([ARGUMENTS.cadastre, "run", "--interval", "64k", "--out", self.live, *options, "--", "/bin/sh", "-c", script],
                          stdin=stdin, environment=environment)

    def alone(self, script, options="", stdin=b""):
        """Under the bare preload: a shell that runs the target. The shell itself is left out: it may have a sample, or not."""
        if "exe=" not in options:
            options = "exe=watch_*" + ("," + options if options else "")
        return target.run(["/bin/sh", "-c", script], target.preload_environment(ARGUMENTS.library, self.live, "64k", extra=options), stdin=stdin)

    def names(self, directory=None):
        return [os.path.basename(path) for path in profiles_in(directory or self.live)]

    def report(self, profile):
        return target.report(ARGUMENTS.cadastre, profile)

    # -- who is recorded

    def test_a_script_that_execs_the_program(self):
        done = self.run_shell(f"sleep 1.5; exec {ARGUMENTS.program}", "--exe", "watch_*", stdin=b"grow 5\nend 7\n")
        self.assertEqual(done.status, 7)
        self.assertEqual(len(self.names()), 1, done.stderr)
        document = self.report(profiles_in(self.live)[0])
        self.assertEqual(document["profile"]["exit_status"], 7)
        self.assertRegex(document["profile"]["exe"], "watch_target$")
        self.assertRegex(done.stderr, r"(?m)^cadastre: 2 processes not recorded: (\S+, sleep|sleep, \S+)$")

    def test_children_that_are_recorded_are_not_named(self):
        done = self.run_shell(f"{ARGUMENTS.program}; sleep 1.5; :", "--exe", "watch_*", stdin=b"grow 3\nend 0\n")
        self.assertEqual(done.status, 0)
        self.assertEqual(len(self.names()), 1)
        self.assertIn("watch_target", self.names()[0])
        last = [line for line in done.stderr.splitlines() if "not recorded" in line]
        self.assertEqual(len(last), 1, done.stderr)
        self.assertNotIn("watch_target", last[0])
        # Put away: marked, and no longer than what is in it.
        self.assertLess(os.path.getsize(profiles_in(self.live)[0]), 4 << 20)

    def test_exe_leaves_nothing_of_others(self):
        # What a probe in a container does, with the variables that it inherits.
        self.alone("echo hello | grep hello; ls / > /dev/null; sleep 0.01", "exe=java")
        self.alone(f"exec {ARGUMENTS.program}", "exe=java", b"grow 5\nend 0\n")
        self.assertEqual(os.listdir(self.live), [])
        done = self.alone(f"cat /proc/self/maps > /dev/null; exec {ARGUMENTS.program}", "exe=watch_*", b"grow 5\nend 0\n")
        self.assertEqual((done.status, len(os.listdir(self.live))), (0, 1))

    def test_children_no_and_by_pattern(self):
        script = f"{ARGUMENTS.program}; :"
        self.run_shell(script, "--children", "no", stdin=b"grow 5\nend 0\n")
        self.assertEqual([name for name in self.names() if "watch_target" in name], [])
        self.run_shell(script, "--children", "watch_*", stdin=b"grow 5\nend 0\n")
        self.assertEqual(len([name for name in self.names() if "watch_target" in name]), 1)

    # -- names

    def test_out_is_a_pattern_of_directories_and_names(self):
        done = self.alone(f"exec {ARGUMENTS.program}", f"out={self.live}/%h/%e/p%p-%t.cad", b"grow 5\nend 0\n")
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.live) for name in names]
        self.assertEqual(len(found), 1)
        host = os.uname().nodename
        self.assertRegex(found[0], rf"^{re.escape(self.live)}/{re.escape(host)}/watch_target/p{done.pid}-\d+\.cad$")
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(found[0])).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(found[0]).st_mode), 0o600)

    def test_run_knows_the_pattern(self):
        done = target.run([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "64k", "--out", f"{self.live}/%e/%p/x.cad", "--",
                           ARGUMENTS.program], stdin=b"grow 5\nend 3\n")
        self.assertEqual(done.status, 3)
        said = re.search(r"recording to (\S+)", done.stderr).group(1)
        self.assertRegex(said, rf"^{re.escape(self.live)}/watch_target/\d+/x\.cad$")
        self.assertEqual(self.report(said)["profile"]["exit_status"], 3)
        self.assertEqual(os.listdir(self.live), ["watch_target"])
        # Its children have names of their own.
        done = target.run([ARGUMENTS.cadastre, "run", "--interval", "64k", "--exe", "watch_*", "--out", f"{self.live}/kid-%e-%p.cad", "--",
                           "/bin/sh", "-c", f"{ARGUMENTS.program}; :"], stdin=b"grow 5\nend 0\n")
        self.assertEqual([name for name in self.names() if name.startswith("kid-watch_target-")], self.names(), done.stderr)
        self.assertEqual(len(self.names()), 1)

    def chain(self, length):
        """A script that execs itself `length` times and then the program."""
        path = os.path.join(self.scratch, "chain.sh")
        with open(path, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nif [ $1 -gt 1 ]; then exec "$0" $(($1 - 1)); fi\nexec {ARGUMENTS.program}\n')
        os.chmod(path, 0o700)
        return [path, str(length)]

    def test_a_chain_of_execs_under_run_ends_with_the_program(self):
        for out in (self.live, f"{self.live}/pay.cad", f"{self.live}/%e/pay.cad"):
            done = target.run([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "1", "--memory", "1m", "--out", out, "--", *self.chain(20)],
                              stdin=b"grow 5\nend 9\n")
            self.assertEqual(done.status, 9, done.stderr)
            said = re.findall(r"recording to (\S+)", done.stderr)
            last = self.report(said[-1])["profile"]
            self.assertRegex(last["exe"], "watch_target$")
            self.assertEqual((last["end"], last["exit_status"]), ("exit", 9))
            found = [os.path.join(folder, name) for folder, _, names in os.walk(self.live) for name in names]
            self.assertEqual(len(found), 21, found)  # dash at each of 20 turns, and the program
            self.assertEqual([name for name in found if not name.endswith(".cad")], [])
            self.assertEqual([self.report(path)["profile"]["end"] for path in found].count("exec"), 20)
            if out == self.live:
                self.assertIn("-watch_target-", os.path.basename(said[-1]))  # not after the script
            else:
                self.assertEqual(os.path.dirname(said[-1]), os.path.dirname(out.replace("%e", "watch_target")))
            for path in found:
                os.unlink(path)

    def test_one_name_for_many_programs(self):
        out = f"{self.live}/pay.cad"
        self.alone(f"i=0; while [ $i -lt 70 ]; do {ARGUMENTS.program} < /dev/null; i=$((i + 1)); done", f"out={out},interval=1,memory=1m")
        want = {"pay.cad"} | {f"pay-{number}.cad" for number in range(2, 71)}
        self.assertEqual(set(self.names()), want)
        # A gap is filled, and each run finds its own among them.
        os.unlink(f"{self.live}/pay-7.cad")
        for status, name in ((3, "pay-7.cad"), (4, "pay-71.cad"), (5, "pay-72.cad")):
            done = target.run([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "1", "--memory", "1m", "--out", out, "--",
                               ARGUMENTS.program], stdin=f"end {status}\n".encode())
            self.assertIn(f"recording to {self.live}/{name}\n", done.stderr)
            self.assertEqual(self.report(f"{self.live}/{name}")["profile"]["exit_status"], status)
        self.assertEqual(len(self.names()), 72)

    def test_names_that_begin_at_the_same_time(self):
        self.alone(f"i=0; while [ $i -lt 40 ]; do {ARGUMENTS.program} < /dev/null & i=$((i + 1)); done; wait",
                   f"out={self.live}/pay.cad,interval=1,memory=1m")
        self.assertEqual(len(self.names()), 40)

    def test_output_replaces_a_profile_and_nothing_else(self):
        precious, command = os.path.join(self.scratch, "precious.txt"), [ARGUMENTS.program]
        with open(precious, "w", encoding="utf-8") as file:
            file.write("not a profile")
        run = [ARGUMENTS.cadastre, "run", "--quiet", "--interval", "1", "--memory", "1m", "--out", self.live]
        done = target.run([*run, "-o", precious, "--", *command], stdin=b"end 0\n")
        self.assertEqual((done.status, done.stdout, done.stderr.count("\n")), (2, "", 1))
        with open(precious, encoding="utf-8") as file:
            self.assertEqual(file.read(), "not a profile")
        final = os.path.join(self.scratch, "final.cad")
        for status in (1, 2):
            done = target.run([*run, "-o", final, "--", *command], stdin=f"end {status}\n".encode())
            self.assertEqual(self.report(final)["profile"]["exit_status"], status, done.stderr)

    # -- where little can be had

    def test_no_place_to_record_to_is_said_and_the_program_runs(self):
        closed = os.path.join(self.scratch, "closed")
        target_environment = {**target.clean_environment(), "CADASTRE_OPTIONS": f"out={closed}/none"}
        done = target.run([ARGUMENTS.cadastre, "run", "--", ARGUMENTS.program], environment=target_environment, stdin=b"end 6\n")
        self.assertEqual((done.status, done.stderr.count("\n")), (6, 1), done.stderr)
        self.assertRegex(done.stderr, f"cannot record to {closed}/none: not a directory; the program runs without being recorded")
        # A flag is a mistake of whoever sits there.
        done = target.run([ARGUMENTS.cadastre, "run", "--out", f"{closed}/none", "--", ARGUMENTS.program], stdin=b"end 6\n")
        self.assertEqual((done.status, done.stdout, done.stderr.count("\n")), (2, "", 1))

    def test_few_descriptors(self):
        # A shell's builtin, so that the limit is in force when the command starts.
        for limit in (4, 5, 6, 8, 16):
            done = target.run(["/bin/bash", "-c", f"ulimit -n {limit}; exec {ARGUMENTS.cadastre} run --quiet --interval 64k --out {self.live} -- "
                               f"{ARGUMENTS.program}"], stdin=b"grow 5\nend 6\n")
            self.assertEqual(done.status, 6, f"{limit}: {done.stderr}")
            self.assertIn("recording to ", done.stderr, limit)
        self.assertEqual(len(self.names()), 5)
        self.assertEqual({self.report(path)["profile"]["pid"] > 0 for path in profiles_in(self.live)}, {True})

    def test_signals_without_a_descriptor_for_them(self):
        for limit in (4, 64):
            run = Steered(["/bin/bash", "-c", f"ulimit -n {limit}; exec {ARGUMENTS.cadastre} run --quiet --interval 64k --out {self.live} -- "
                           f"{ARGUMENTS.program}"], {}, stderr_path=os.path.join(self.scratch, f"{limit}.err"))
            self.addCleanup(run.close)
            run.do("grow 1")
            run.process.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(), 128 + signal.SIGTERM)

    def test_every_signal_reaches_the_program(self):
        python = "/usr/bin/python3"
        if not os.path.exists(python):
            self.skipTest("python3 is not installed")
        program = """
import os, signal, sys
got = []
ours = {signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS,
        signal.SIGABRT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTTIN, signal.SIGTTOU}
for number in signal.valid_signals() - ours:
    signal.signal(number, lambda number, _: os.write(1, b"%d\\n" % number))
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""
        run = Steered([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "64k", "--out", self.live, "--", python, "-I", "-c", program], {},
                      stderr_path=os.path.join(self.scratch, "err"))
        self.addCleanup(run.close)
        self.assertEqual(run.process.stdout.readline(), "ready\n")
        sent = [signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT, signal.SIGXCPU, signal.SIGVTALRM, signal.SIGPROF, signal.SIGWINCH, signal.SIGIO,
                signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMIN + 3, signal.SIGRTMAX, signal.SIGTERM]
        for number in sent:
            run.process.send_signal(number)
            self.assertEqual(run.process.stdout.readline(), f"{int(number)}\n")
        self.assertIsNone(run.process.poll())

    # -- names of programs

    def test_a_program_has_the_name_of_its_file_and_that_it_was_started_by(self):
        link = os.path.join(self.scratch, "pay")
        os.symlink(ARGUMENTS.program, link)
        for pattern, count in (("pay", 1), ("watch_target", 1), ("java", 0)):
            self.alone(f"exec {link}", f"exe={pattern}", b"grow 5\nend 0\n")
            self.assertEqual(len(self.names()), count, pattern)
            for path in profiles_in(self.live):
                os.unlink(path)

    def test_no_link_is_followed_where_a_directory_is_to_be_made(self):
        elsewhere = os.path.join(self.scratch, "elsewhere")
        os.mkdir(elsewhere)
        os.symlink(elsewhere, os.path.join(self.live, "watch_target"))
        done = self.alone(f"exec {ARGUMENTS.program}", f"out={self.live}/%e/x.cad", b"grow 5\nend 0\n")
        self.assertEqual((done.status, done.stderr, os.listdir(elsewhere)), (0, "", []))

    def test_a_bare_preload_says_what_it_cannot_do(self):
        done = self.alone(f"exec {ARGUMENTS.program}", "children=no", b"end 4\n")
        self.assertEqual((done.status, done.stderr.count("\n")), (4, 1), done.stderr)
        self.assertIn("only `cadastre run`", done.stderr)

    def test_list_passes_over_files_under_way(self):
        self.alone(f"exec {ARGUMENTS.program}", "", b"grow 5\nend 0\n")
        with open(os.path.join(self.live, f".cadastre-{self.names()[0]}@75pct.77.tmp"), "w", encoding="utf-8") as half:
            half.write("half")
        done = target.run([ARGUMENTS.cadastre, "list", self.live])
        self.assertEqual((done.status, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count(".cad"), 1)

    def test_a_bad_pattern_is_refused(self):
        done = target.run([ARGUMENTS.cadastre, "run", "--out", f"{self.live}/%x", "--", "true"])
        self.assertEqual((done.status, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertIn("%x", done.stderr)

    def test_nothing_is_overwritten_and_no_link_is_followed(self):
        fixed = os.path.join(self.live, "fixed.cad")
        victim = os.path.join(self.scratch, "victim")
        with open(victim, "w", encoding="ascii") as file:
            file.write("mine")
        os.symlink(victim, fixed)
        for _ in range(2):
            self.alone(f"exec {ARGUMENTS.program}", f"out={fixed}", b"grow 5\nend 0\n")
        with open(victim, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")
        self.assertTrue(os.path.islink(fixed))
        self.assertEqual(self.names(), ["fixed-2.cad", "fixed-3.cad", "fixed.cad"])

    # -- endings

    def test_min_life_whatever_the_end(self):
        for end in ("end 0", "_exit 0", "_Exit 0", "quick 0"):
            with self.subTest(end=end):
                done = self.alone(f"exec {ARGUMENTS.program}", "min-life=1h", f"grow 5\n{end}\n".encode())
                self.assertEqual((done.status, os.listdir(self.live)), (0, []))
        # Not an end of this process: a vfork child's, with our memory.
        done = self.alone(f"exec {ARGUMENTS.program}", "min-life=1h", b"grow 5\nvfork\ndie\n")
        self.assertEqual((done.status, len(self.names())), (128 + signal.SIGKILL, 1))

    def test_an_end_without_destructors_is_an_exit(self):
        for end in ("_exit 5", "_Exit 5", "quick 5", "end 5"):
            with self.subTest(end=end):
                done = self.alone(f"exec {ARGUMENTS.program}", "", f"grow 5\n{end}\n".encode())
                self.assertEqual(done.status, 5)
                found = target.profiles_of(self.live, done.pid)
                self.assertEqual(self.report(found[0])["profile"]["end"], "exit")

    # -- how many are left

    def test_keep_leaves_that_many_of_short_lived_programs(self):
        script = "i=0; while [ $i -lt 12 ]; do printf 'grow 2\\nend 0\\n' | " + ARGUMENTS.program + "; i=$((i+1)); done"
        self.alone(script, "keep=3,exe=watch_target")
        self.assertEqual(len(self.names()), 3)
        # The newest: started last.
        self.alone(f"exec {ARGUMENTS.program}", "keep=0", b"grow 2\nend 0\n")
        self.assertEqual(len(self.names()), 0)

    def test_keep_never_takes_what_was_lost(self):
        for _ in range(3):
            self.alone(f"exec {ARGUMENTS.program}", "keep=1", b"grow 2\ndie\n")
        self.assertEqual(len(self.names()), 3)
        for _ in range(3):
            self.alone(f"exec {ARGUMENTS.program}", "keep=1", b"grow 2\nend 0\n")
        self.assertEqual(len(self.names()), 4)

    def test_keep_under_run(self):
        script = "i=0; while [ $i -lt 8 ]; do printf 'grow 2\\nend 0\\n' | " + ARGUMENTS.program + "; i=$((i+1)); done"
        done = self.run_shell(script, "--keep", "2", "--exe", "watch_target")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(len(self.names()), 2, done.stderr)
        for _ in range(4):
            target.run([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "64k", "--out", self.live, "--keep", "2", "--", ARGUMENTS.program],
                       stdin=b"grow 2\nend 0\n")
            self.assertEqual(len(self.names()), 2)

    def test_the_peak_is_the_programs_own(self):
        large = f"{sys.executable} -Ssc 'import time; x = bytearray(b\"1\") * (200 << 20); time.sleep(1.5)'"
        done = target.run([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "1", "--out", self.live, "-o", f"{self.live}/shell.cad", "--",
                           "/bin/sh", "-c", f"{large}; x=1"])
        report = target.run([ARGUMENTS.cadastre, "report", f"{self.live}/shell.cad", "--format", "json"])
        peak = json.loads(report.stdout)["profile"]["peak_rss_bytes"]
        self.assertTrue(1 << 19 < peak < 40 << 20, (peak, done.stderr))

    def test_children_that_end_just_before_the_program_are_put_away(self):
        # To give back what it has takes it longer than it takes the shell to end.
        large = f"{sys.executable} -Ssc 'import time; x = bytearray(b\"1\") * (200 << 20); time.sleep(60)'"
        done = target.run([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "4k", "--out", self.live, "--", "/bin/sh", "-c",
                           f"{large} & sleep 2; kill $!"])
        names = self.names()
        self.assertTrue([name for name in names if "python" in name], done.stderr)
        sizes = [os.stat(os.path.join(self.live, name)).st_size for name in names]
        self.assertLess(max(sizes), 1 << 20, names)  # packed: a live file is as long as its cap

    def test_keep_in_a_program_knows_what_run_has_packed(self):
        for _ in range(3):
            target.run([ARGUMENTS.cadastre, "run", "--quiet", "--interval", "64k", "--out", self.live, "--", ARGUMENTS.program],
                       stdin=b"grow 2\nend 0\n")
        self.assertEqual(len(self.names()), 3)
        self.alone(f"exec {ARGUMENTS.program}", "keep=1", b"grow 2\nend 0\n")
        self.assertEqual(len(self.names()), 1)

    # -- run as a watcher

    def running(self, *options):
        steered = Steered([ARGUMENTS.cadastre, "run", "--interval", "64k", "--out", self.live, *options, "--", ARGUMENTS.program], {},
                          stderr_path=os.path.join(self.scratch, "err"))
        self.addCleanup(steered.close)
        return steered

    def test_run_takes_snapshots(self):
        final = os.path.join(self.scratch, "pay.cad")
        steered = self.running("-o", final, "--every", "1s", "--keep", "2", "--limit", "100m", "--at", "50")
        steered.do("grow 60")
        until(lambda: snapshots_of(final, "at-") == ["at-50"], "50 %")
        until(lambda: "peak" in snapshots_of(final), "@peak")
        # Found before there is a final profile.
        self.assertGreater(self.report(final + "@peak")["totals"]["live_bytes"], 50 << 20)
        until(lambda: len(snapshots_of(final, "every-")) == 2, "periodic ones")
        steered.do("drop")
        self.assertEqual(steered.end("end 4"), 4)
        self.assertEqual(self.names(), [])
        self.assertEqual(len(snapshots_of(final, "every-")), 2)
        self.assertLess(self.report(final)["totals"]["live_bytes"], 20 << 20)
        self.assertGreater(self.report(final + "@peak")["totals"]["live_bytes"], 50 << 20)

    def test_a_run_that_was_killed_is_adopted_by_the_next(self):
        steered = self.running("--limit", "64m")
        steered.do("grow 60")
        profile = until(lambda: profiles_in(self.live), "a profile")[0]

        def noted():
            return self.report(profile)["profile"]["memory_used_bytes"] or 0
        until(lambda: noted() > 60 << 20, "a note of its memory")
        # As an OOM kill of the whole container: nobody is left to tell.
        os.killpg(steered.pid, signal.SIGKILL)
        steered.wait()
        until(lambda: self.report(profile)["profile"]["end"] == "lost", "the end")
        second = self.running()
        second.do("grow 1")
        self.assertIn("profile of an earlier run at " + profile, second.said())
        self.assertRegex(second.said(), r"\(ended: lost, OOM likely \(6\d\.\d\d of 64\.00 MiB\)\)")
        self.assertLess(os.path.getsize(profile), 4 << 20)
        # A run that goes on is nobody's to adopt.
        third = self.running("-o", os.path.join(self.scratch, "third.cad"))
        third.do("grow 1")
        self.assertNotIn("earlier run", third.said())
        third.end()
        second.end()

    def test_adopted_profiles_go_where_the_output_goes(self):
        steered = self.running()
        steered.do("grow 2")
        until(lambda: profiles_in(self.live), "a profile")
        os.killpg(steered.pid, signal.SIGKILL)
        steered.wait()
        name = self.names()[0]
        profile = profiles_in(self.live)[0]
        until(lambda: self.report(profile)["profile"]["end"] == "lost", "the end")
        saved = os.path.join(self.scratch, "saved")
        os.mkdir(saved)
        second = self.running("-o", os.path.join(saved, "pay.cad"))
        second.do("grow 1")
        second.end()
        self.assertEqual(self.names(saved), sorted([name, "pay.cad"]))
        self.assertEqual(self.names(), [])


def main():
    global ARGUMENTS
    ARGUMENTS, argv = target.test_arguments("library", "cadastre", "program")
    unittest.main(argv=argv, verbosity=2)


if __name__ == "__main__":
    main()
