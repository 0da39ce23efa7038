#!/usr/bin/env python3
"""The command line as a user meets it: what each command prints where, and how it ends.

Exists because exit statuses, one-line errors, signals and terminals are seen only from outside the process.
"""
import glob
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import target  # noqa: E402

ARGUMENTS = None


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.out = target.scratch_directory("command")
        self.addCleanup(target.remove, self.out)

    def cadastre(self, *words, **more):
        return target.run([ARGUMENTS.cadastre, *words], cwd=self.out, **more)

    def run_sh(self, script, *flags):
        return self.cadastre("run", "--out", self.out, "--interval", "1", *flags, "--", "/bin/sh", "-c", script)

    def recorded(self, stderr):
        found = re.findall(r"^cadastre: recording to (.*)$", stderr, re.M)
        self.assertTrue(found, stderr)
        return found[-1]

    def start_holder(self):
        """A recorded process that says that it is ready and waits for its stdin to close."""
        process = subprocess.Popen([ARGUMENTS.cadastre, "run", "--quiet", "--out", self.out, "--interval", "1", "--", "/bin/sh", "-c",
                                    "x=1; y=2; echo $$; read line; exit 5"],
                                   env=target.clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.stdin.closed or process.stdin.close())
        return process, int(process.stdout.readline())

    def test_run_leaves_output_and_status_alone(self):
        ran = self.run_sh("echo out; echo err >&2; exit 3")
        self.assertEqual((ran.status, ran.stdout), (3, "out\n"))
        self.assertIn("\nerr\n", "\n" + ran.stderr)
        profile = self.recorded(ran.stderr)
        document = target.report(ARGUMENTS.cadastre, profile)
        self.assertEqual((document["profile"]["end"], document["profile"]["exit_status"]), ("exit", 3))
        self.assertGreater(document["profile"]["peak_rss_bytes"], 0)

    def test_run_says_128_plus_the_signal(self):
        ran = self.run_sh("x=1; kill -KILL $$")
        self.assertEqual(ran.status, 128 + signal.SIGKILL)
        self.assertEqual(target.report(ARGUMENTS.cadastre, self.recorded(ran.stderr))["profile"]["end"], "signal:9")

    def test_run_puts_the_profile_where_it_is_wanted(self):
        wanted = os.path.join(self.out, "wanted.cad")
        ran = self.run_sh("exit 0", "-o", wanted, "--quiet")
        self.assertTrue(os.path.exists(wanted), ran.stderr)
        self.assertFalse(os.path.exists(self.recorded(ran.stderr)))
        self.assertEqual(os.stat(wanted).st_mode & 0o777, 0o600)
        self.assertEqual(target.report(ARGUMENTS.cadastre, wanted)["profile"]["end"], "exit")

    def test_run_reports_at_the_end_on_stderr_and_quiet_does_not(self):
        self.assertIn("AT THE PEAK", self.run_sh("exit 0").stderr)
        self.assertNotIn("AT THE PEAK", self.run_sh("exit 0", "--quiet").stderr)

    def test_an_output_that_is_no_regular_file_is_refused_and_left_alone(self):
        fifo, link = os.path.join(self.out, "fifo"), os.path.join(self.out, "link")
        os.mkfifo(fifo)
        os.symlink("nowhere", link)
        for wanted in (fifo, link):
            ran = self.run_sh("exit 0", "-o", wanted)
            self.assertEqual(ran.status, 2, ran.stderr)
            self.assertIn("not a regular file", ran.stderr)
        self.assertTrue(stat.S_ISFIFO(os.lstat(fifo).st_mode) and os.path.islink(link))

    def test_rules_init_into_owners_csv_works(self):
        profile = self.recorded(self.run_sh("x=1; exit 0", "--quiet").stderr)
        ran = target.run(["/bin/sh", "-c", f"{ARGUMENTS.cadastre} rules init {profile} > owners.csv"], cwd=self.out)
        self.assertEqual(ran.status, 0, ran.stderr)
        self.assertEqual(self.cadastre("report", profile).status, 0)

    def test_a_file_size_limit_is_one_line_and_leaves_nothing(self):
        profile = self.recorded(self.run_sh("x=1; exit 0", "--quiet").stderr)
        before = sorted(os.listdir(self.out))
        out = os.path.join(self.out, "copy.cad")
        ran = target.run(["/bin/bash", "-c", f"ulimit -f 2; {ARGUMENTS.cadastre} symbolize {profile} -o {out}"])
        self.assertEqual((ran.status, ran.stderr.count("\n")), (2, 1), ran)
        self.assertEqual(sorted(os.listdir(self.out)), before)
        # What is started has the signal as it was.
        ran = self.cadastre("run", "--quiet", "--out", self.out, "--", "/bin/bash", "-c", "trap '' USR1; grep SigIgn /proc/self/status")
        self.assertEqual(int(ran.stdout.split()[1], 16) & (1 << (signal.SIGXFSZ - 1)), 0, ran.stdout)

    def test_profiles_of_what_a_script_started_are_mentioned(self):
        ran = self.cadastre("run", "--out", self.out, "--interval", "1m", "--", "/bin/sh", "-c",
                            "/usr/bin/python3 -c 'x = [bytes(1000000) for i in range(50)]'; :")
        self.assertIn("see `cadastre list`", ran.stderr)

    def test_keep_removes_the_oldest_reported_profiles_of_the_same_program(self):
        made = []
        for number in range(4):
            ran = self.cadastre("run", "--quiet", "--out", self.out, "--interval", "1", "--keep", "2", "--", "/bin/bash", "-c", "x=1")
            made.append(self.recorded(ran.stderr))
            self.assertEqual(self.cadastre("snapshot", made[-1], "--label", "noon").status, 0)
        left = sorted(name for name in os.listdir(self.out) if name.endswith(".cad"))
        self.assertEqual(left, sorted(os.path.basename(profile) for profile in made[2:]))
        # Snapshots go with their profile.
        self.assertEqual([os.path.exists(f"{profile}@noon") for profile in made], [False, False, True, True])

    def test_run_finds_the_last_program_after_an_exec(self):
        ran = self.run_sh("x=1; exec /bin/sh -c 'y=2; exit 4'")
        self.assertEqual(ran.status, 4)
        profile = self.recorded(ran.stderr)
        self.assertTrue(profile.endswith("-2.cad"), ran.stderr)
        self.assertEqual(target.report(ARGUMENTS.cadastre, profile)["profile"]["end"], "exit")
        self.assertEqual(target.report(ARGUMENTS.cadastre, profile[:-6] + ".cad")["profile"]["end"], "exec")

    def test_list_knows_an_exec_of_a_dead_process(self):
        killed = target.run(["/bin/sh", "-c", "x=1; exec /bin/bash -c 'y=2; kill -KILL $$'"],
                            target.preload_environment(ARGUMENTS.library, self.out, "1"))
        self.assertEqual(killed.status, 128 + signal.SIGKILL)
        listed = json.loads(self.cadastre("list", self.out, "--format", "json").stdout)["profiles"]
        shell = os.path.basename(os.path.realpath("/bin/sh"))
        self.assertEqual(sorted((p["program"], p["end"]) for p in listed), sorted([("bash", "lost"), (shell, "exec")]))

    def test_run_says_why_there_is_no_profile(self):
        ran = self.cadastre("run", "--out", self.out, "--interval", "1g", "--", "/bin/sh", "-c", "exit 0")
        self.assertEqual(ran.status, 0)
        self.assertIn("cadastre: no sample was due (the program allocated less than about 1 GiB)", ran.stderr)

    def test_run_says_what_really_happened_where_there_is_no_profile(self):
        for flags, program, words in (
                (["--exe", "java*"], ["/bin/sh", "-c", "x=1"], r"no profile of \w+: exe=java\* leaves it out"),
                (["--min-life", "1h"], ["/bin/true"], r"no profile: the program ended after [\d.]+ s, sooner than min-life=1h"),
                (["--quiet"], [ARGUMENTS.cadastre, "version"], None),
                ([], [ARGUMENTS.cadastre, "version"], "no profile of cadastre itself: it is never recorded")):
            ran = self.cadastre("run", "--out", self.out, "--interval", "1", *flags, "--", *program)
            self.assertEqual(ran.status, 0, ran)
            if words:
                self.assertRegex(ran.stderr, f"(?m)^cadastre: {words}")
            if "--min-life" not in flags:  # that file was there for a moment
                self.assertNotIn("recording to", ran.stderr)
            self.assertEqual(os.listdir(self.out), [])

    def test_run_refuses_values_that_the_program_would_not_understand(self):
        for name, value in (("interval", "0"), ("interval", "12x"), ("interval", "-1"), ("memory", "1"), ("mode", "999"), ("start", "later"),
                            ("seed", "abc"), ("min-life", "soon"), ("keep", "-1"), ("command", "all"), ("label", "nocolon"),
                            ("children", ""), ("exe", ""), ("out", ""), ("expect", "x" * 300), ("label", "k:" + "v" * 300)):
            ran = self.cadastre("run", f"--{name}", value, "--", "/bin/echo", "started")
            self.assertEqual((ran.status, ran.stdout, ran.stderr.count("\n")), (2, "", 1), ran)
            self.assertIn(f"--{name} ", ran.stderr)
            self.assertRegex(ran.stderr, ": write |255")
        many = [word for number in range(40) for word in ("--label", f"key{number}:value")]
        ran = self.cadastre("run", *many, "--", "/bin/echo", "started")
        self.assertEqual((ran.status, ran.stdout, ran.stderr.count("\n")), (2, "", 1), ran)

    def test_run_leaves_what_follows_the_program_to_it(self):
        ran = self.cadastre("run", "--quiet", "--out", self.out, "--label", "a:b", "/bin/echo", "--help", "--out", "x", "--", "-n")
        self.assertEqual((ran.status, ran.stdout), (0, "--help --out x -- -n\n"), ran)
        ran = self.cadastre("run", f"--out={self.out}", "-o", "x.cad", "--quiet", "--", "/bin/echo", "--", "--color")
        self.assertEqual((ran.status, ran.stdout), (0, "-- --color\n"), ran)
        for words in (["run"], ["run", "--quiet"], ["run", "--"], ["run", "--nosuch", "/bin/echo", "started"]):
            ran = self.cadastre(*words)
            self.assertEqual((ran.status, ran.stdout, ran.stderr.count("\n")), (2, "", 1), ran)

    def test_snapshots_move_along_with_the_profile(self):
        wanted = os.path.join(self.out, "wanted.cad")
        process = subprocess.Popen([ARGUMENTS.cadastre, "run", "--quiet", "--out", self.out, "-o", wanted, "--interval", "1", "--", "/bin/sh",
                                    "-c", "x=1; echo $$; read line; y=2"], env=target.clean_environment(), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pid = process.stdout.readline().strip()
        live = self.cadastre("snapshot", pid, "--label", "before").stdout.strip()
        self.cadastre("snapshot", pid, "--label", "after")
        process.communicate(timeout=30)
        # A run of more than a second has a peak too.
        self.assertEqual(sorted(set(os.listdir(self.out)) - {"wanted.cad@peak"}), ["wanted.cad", "wanted.cad@after", "wanted.cad@before"])
        self.assertFalse(os.path.exists(live))
        document = target.report(ARGUMENTS.cadastre, wanted + "@before")
        self.assertEqual(document["profile"]["snapshot"], "before")
        self.assertGreater(document["totals"]["live_bytes"], 0)

    def test_usage_errors_are_in_our_words(self):
        profile = self.recorded(self.run_sh("x=1", "--quiet").stderr)
        for words, said in ((["report", profile, "--by", "foo"], "--by: foo is not one of module, team, library, site, thread"),
                            (["report", profile, "--metric", "foo"], "--metric: foo is not one of live, allocated, count, peak"),
                            (["report", profile, "--format", "foo"], "--format: foo is not one of text, json, csv, markdown"),
                            (["report", profile, "--by"], "--by: its value is missing"),
                            (["report", profile, "--by", "team", "--by", "team"], "--by is given more than once"),
                            (["set", profile], "cadastre set PID interval=2m"),
                            (["report", profile, "--top", "-1"], "--top: -1 is not a whole number"),
                            (["report", profile, "--min-samples", "-1"], "--min-samples: -1 is not a whole number"),
                            (["check", profile, "--min-samples", "x"], "--min-samples: x is not a whole number"),
                            (["print", profile, "--live", "-1"], "--live: -1 is not a whole number"),
                            (["list", "--format", "csv"], "--format: csv is not one of text, json"),
                            (["doctor", "--pid", "0"], "--pid: 0 is less than 1"),
                            (["doctor", "--pid", "99999999999"], "--pid: 99999999999 is more than"),
                            (["nosuch", "--by", "x"], 'no command "nosuch"'), (["help", "nosuch"], 'no command "nosuch"'),
                            (["rules", "nosuch"], 'no command "rules nosuch"')):
            ran = self.cadastre(*words)
            self.assertEqual((ran.status, ran.stdout, ran.stderr.count("\n")), (2, "", 1), ran)
            self.assertIn(said, ran.stderr)

    def test_behind_two_dashes_stand_no_options(self):
        path = os.path.join(self.out, "-odd.cad")
        os.rename(self.recorded(self.run_sh(":", "--quiet").stderr), path)
        for words in (["report", "--min-samples", "0", "--"], ["print", "--"], ["rules", "init", "--"]):
            with self.subTest(words=words):
                ran = self.cadastre(*words, "-odd.cad")
                self.assertEqual((ran.status, ran.stderr), (0, ""))
                self.assertEqual(ran.stdout, self.cadastre(*words[:-1], path).stdout.replace(path, "-odd.cad"))
        self.assertEqual(self.cadastre("diff", "--", "-odd.cad", "-odd.cad").status, 0)
        self.assertEqual(self.cadastre("report", path, "--", "more").status, 2)

    def test_a_library_in_a_directory_with_a_space_leaves_nothing_behind(self):
        folder = os.path.join(self.out, "a b")
        os.mkdir(folder)
        shutil.copy(ARGUMENTS.library, folder)
        environment = {"CADASTRE_LIBRARY": os.path.join(folder, os.path.basename(ARGUMENTS.library))}
        links = []
        for _ in range(2):
            ran = self.cadastre("run", "--quiet", "--out", self.out, "--", "/bin/sh", "-c", 'echo "$LD_PRELOAD"; ls -ld "${LD_PRELOAD%/*/*}"',
                                environment=environment)
            link, listed = ran.stdout.splitlines()
            self.assertRegex(listed, "^drwx--x--x", ran)  # nobody else can put a link there
            self.assertFalse(os.path.lexists(os.path.dirname(link)), link)
            self.assertFalse(os.path.lexists(os.path.dirname(os.path.dirname(link))), link)
            links.append(link)
        self.assertNotEqual(*links)
        # A program that outlives `run` and starts others still finds the library.
        os.mkfifo(os.path.join(self.out, "release"))
        ran = self.cadastre("run", "--quiet", "--out", self.out, "--", "/bin/sh", "-c",
                            '(read line < release; /bin/echo "$LD_PRELOAD"; rm -rf "${LD_PRELOAD%/*/*}") > late 2>&1 & echo "$LD_PRELOAD"',
                            environment=environment)
        link = ran.stdout.strip()
        self.assertTrue(os.path.exists(link), ran)
        with open(os.path.join(self.out, "release"), "w", encoding="utf-8") as release:
            release.write("\n")
        self.wait_for(lambda: not os.path.lexists(os.path.dirname(os.path.dirname(link))))
        with open(os.path.join(self.out, "late"), encoding="utf-8") as late:
            self.assertEqual(late.read(), link + "\n")

    def wait_for(self, condition):
        for _ in range(3000):
            if condition():
                return
            time.sleep(0.01)
        self.fail("waited in vain")

    def test_list_keeps_names_whole_in_a_pipe(self):
        name = os.path.join(self.out, "n" * 150 + ".cad")
        self.run_sh("x=1", "--quiet", "-o", name)
        self.assertIn(os.path.basename(name), self.cadastre("list", self.out).stdout)
        self.assertIn("…", target.run(["script", "-qec", f"{ARGUMENTS.cadastre} list {self.out}", "/dev/null"]).stdout)

    def test_help_says_where_min_samples_does_not_matter(self):
        for command in ("report", "check"):
            shown = " ".join(self.cadastre(command, "--help").stdout.split())
            self.assertIn("no matter where every allocation was recorded (interval=1)", shown)

    def test_run_passes_signals_on(self):
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            process = subprocess.Popen([ARGUMENTS.cadastre, "run", "--quiet", "--out", self.out, "--", "/bin/sh", "-c",
                                        f"trap 'echo got; exit 6' {number.name[3:]}; echo ready; while :; do sleep 0.01; done"],
                                       env=target.clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       start_new_session=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(number)
            self.assertEqual(process.communicate(timeout=30)[0], "got\n", number)
            self.assertEqual(process.returncode, 6)

    def test_run_stops_and_continues_with_its_program(self):
        process, pid = self.start_holder()
        os.kill(pid, signal.SIGSTOP)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]))
        process.send_signal(signal.SIGCONT)
        process.stdin.close()
        self.assertEqual(process.wait(timeout=30), 5)

    def test_run_works_with_an_ignored_sigchld(self):
        def ignore():
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        done = subprocess.run([ARGUMENTS.cadastre, "run", "--quiet", "--out", self.out, "--", "/bin/sh", "-c", "exit 9"], preexec_fn=ignore,
                              env=target.clean_environment(), stderr=subprocess.DEVNULL, check=False, timeout=60)
        self.assertEqual(done.returncode, 9)

    def test_run_keeps_what_is_preloaded_already(self):
        ran = self.cadastre("run", "--quiet", "--out", self.out, "--", "/bin/sh", "-c", "echo $LD_PRELOAD; echo $CADASTRE_OPTIONS",
                            environment={"CADASTRE_OPTIONS": "interval=1,seed=5", "LD_PRELOAD": "libm.so.6"})
        preload, options = ran.stdout.splitlines()
        self.assertEqual(preload, f"{os.path.realpath(ARGUMENTS.library)}:libm.so.6")
        self.assertTrue(options.startswith("interval=1,seed=5,out="), options)

    def test_run_refuses_what_it_cannot_do_before_the_program_starts(self):
        for flags in (["--interval", "x"], ["--out", "/no/such"], ["--rules", "/no/such.csv"], ["--label", "a,b"], ["-o", "/no/such/x.cad"], ["--nosuch"]):
            ran = self.cadastre("run", *flags, "--", "/bin/sh", "-c", "echo started")
            self.assertEqual((ran.status, ran.stdout, ran.stderr.count("\n")), (2, "", 1), ran)
            self.assertTrue(ran.stderr.startswith("cadastre: "), ran)
        self.assertEqual(self.cadastre("run", "--", "/no/such").status, 127)
        self.assertEqual(self.cadastre("run", "--", self.out).status, 126)

    def test_snapshot_of_a_running_process(self):
        process, pid = self.start_holder()
        taken = self.cadastre("snapshot", str(pid), "--label", "before")
        self.assertEqual(taken.status, 0, taken)
        path = taken.stdout.rstrip("\n")
        self.assertEqual(taken.stdout, path + "\n")
        self.assertEqual(taken.stderr, "")
        document = target.report(ARGUMENTS.cadastre, f"{pid}@before")
        self.assertEqual(document["profile"]["path"], path)
        self.assertEqual(document["profile"]["snapshot"], "before")
        self.assertGreater(document["profile"]["rss_bytes"], 0)
        self.assertGreater(document["totals"]["live_bytes"], 0)
        for reserved in ("last", "peak", "2h"):
            self.assertEqual(self.cadastre("snapshot", str(pid), "--label", reserved).status, 2, reserved)
        again = self.cadastre("snapshot", str(pid), "--label", "before")
        self.assertEqual((again.status, again.stdout, again.stderr.count("\n")), (2, "", 1))
        self.assertEqual(self.cadastre("snapshot", str(pid), "--label", "before", "--force").status, 0)
        self.assertEqual(self.cadastre("snapshot", str(pid), "--label", "a/b").status, 2)
        running = target.report(ARGUMENTS.cadastre, str(pid))
        self.assertEqual(running["profile"]["end"], "running")
        self.assertGreater(running["profile"]["rss_bytes"], 0)
        listed = json.loads(self.cadastre("list", self.out, "--format", "json").stdout)
        self.assertEqual([p["snapshot"] for p in listed["profiles"] if p["snapshot"] != "peak"], [None, "before"])
        process.stdin.close()
        self.assertEqual(process.wait(timeout=30), 5)
        last = target.report(ARGUMENTS.cadastre, running["profile"]["path"] + "@last")
        self.assertEqual(last["profile"]["snapshot"], "before")

    def test_a_start_that_is_paused_says_so(self):
        process = subprocess.Popen([ARGUMENTS.cadastre, "run", "--quiet", "--out", self.out, "--interval", "1", "--start", "paused", "--", "/bin/sh",
                                    "-c", "x=1; echo $$; read line; y=2"], env=target.clean_environment(), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pid = process.stdout.readline().strip()
        paused = self.cadastre("report", pid)
        self.assertRegex(paused.stdout.splitlines()[0], r"^unusable: 0 samples in [\d.]+ s; paused since \d\d:\d\d:\d\d UTC$")
        self.assertIn("paused since", self.cadastre("check", pid, "--max-unattributed", "100").stderr)
        self.assertIn("state paused", self.cadastre("print", pid).stdout)
        self.assertEqual(self.cadastre("resume", pid).status, 0)
        process.communicate(timeout=30)
        profile = target.profiles_of(self.out, pid)[0]
        self.assertRegex(self.cadastre("report", profile).stdout.replace("\n  ", " "),
                         r"warning: recording was paused from \S+ UTC to \S+ UTC \([\d.]+ s\): what was allocated then has no owner")

    def test_set_shows_in_the_report(self):
        process = subprocess.Popen([ARGUMENTS.cadastre, "run", "--quiet", "--out", self.out, "--interval", "4k", "--", "/bin/bash", "-c",
                                    "x=$(printf '%065536d' 1); echo $$; read line"], env=target.clean_environment(), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pid = process.stdout.readline().strip()
        self.assertEqual(self.cadastre("set", pid, "--interval", "64k").status, 0)
        self.assertIn("64 KiB (4 KiB at first)", self.cadastre("report", pid).stdout)
        self.assertEqual(target.report(ARGUMENTS.cadastre, pid)["profile"]["current_interval_bytes"], 65536)
        process.communicate(timeout=30)

    def test_control_of_a_running_process(self):
        process, pid = self.start_holder()
        profile = target.report(ARGUMENTS.cadastre, str(pid))["profile"]["path"]
        for words, paused in ((["pause", str(pid)], True), (["resume", profile], False)):
            done = self.cadastre(*words)
            self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
            document = target.report(ARGUMENTS.cadastre, str(pid))
            self.assertEqual(document["profile"]["paused"], paused)
            self.assertEqual(document["profile"]["pauses"], 1)
            self.assertIn("paused", " ".join(document["warnings"]))
        for interval in ("0", "12x", "2000t"):
            refused = self.cadastre("set", str(pid), "--interval", interval)
            self.assertEqual((refused.status, refused.stderr.count("\n")), (2, 1))
            self.assertIn(f"--interval {interval}: ", refused.stderr)
        checked = self.cadastre("check", str(pid), "--max-unattributed", "100")
        self.assertIn("  warning: recording was paused from", checked.stdout)
        process.stdin.close()
        process.wait(timeout=30)
        ended = self.cadastre("pause", profile)
        self.assertEqual((ended.status, ended.stderr.count("\n")), (2, 1))

    def test_check(self):
        profile = self.recorded(self.run_sh("x=1; exit 0").stderr)
        rules = os.path.join(self.out, "all.csv")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("prefix,module,team\nlib:dash,shell,core\nlib:sh,shell,core\nlib:bash,shell,core\n")
        for limit, status in (("100", 0), ("5%", 0)):
            checked = self.cadastre("check", profile, "--rules", rules, "--max-unattributed", limit)
            self.assertEqual((checked.status, checked.stdout[:5], checked.stderr), (status, "pass ", ""), checked)
        nobody = os.path.join(self.out, "nobody.csv")
        with open(nobody, "w", encoding="utf-8") as file:
            file.write("prefix,module,team\n")
        failed = self.cadastre("check", profile, "--rules", nobody, "--max-unattributed", "5")
        self.assertEqual((failed.status, failed.stdout[:5]), (1, "FAIL "), failed)
        few = self.cadastre("run", "--quiet", "--out", self.out, "--interval", "1k", "--", "/bin/sh", "-c", "exit 0")
        unusable = self.cadastre("check", self.recorded(few.stderr), "--max-unattributed", "100")
        self.assertEqual((unusable.status, unusable.stdout, unusable.stderr.count("\n")), (2, "", 1), unusable)
        self.assertIn("unusable: ", unusable.stderr)

    def test_rules(self):
        rules = os.path.join(self.out, "owners.csv")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("prefix,module,team\nbilling::,billing,payments\nbilling::,other,payments\nx::,billing,search\n")
        linted = self.cadastre("rules", "lint", rules)
        self.assertEqual((linted.status, linted.stdout.count("\n")), (1, 3), linted)
        self.assertIn("owners.csv:3: prefix billing:: is never reached", linted.stdout)
        explained = self.cadastre("rules", "explain", "billing::Add()", "lib:/usr/lib/libz.so.1", "nothing", environment={"CADASTRE_RULES": rules})
        self.assertEqual(explained.status, 0)
        self.assertIn("billing::Add(): billing (payments) by ", explained.stdout)
        self.assertIn("built-in rule lib:libz.so", explained.stdout)
        self.assertIn("nothing: no rule matches", explained.stdout)
        profile = self.recorded(self.run_sh("x=1; exit 0").stderr)
        os.remove(rules)
        starter = self.cadastre("rules", "init", profile)
        self.assertEqual(starter.status, 0, starter)
        with open(rules, "w", encoding="utf-8") as file:
            file.write(starter.stdout)
        self.assertEqual(self.cadastre("rules", "lint").status, 0)
        self.assertEqual(self.cadastre("check", profile, "--max-unattributed", "1").status, 0)
        with open(os.path.join(self.out, "default.csv"), "w", encoding="utf-8") as file:
            file.write(self.cadastre("rules", "default").stdout)
        self.assertIn("no fault", self.cadastre("rules", "lint", "default.csv").stdout)

    def test_print_and_symbolize(self):
        profile = self.recorded(self.run_sh("x=1; exit 0").stderr)
        printed = self.cadastre("print", profile)
        self.assertEqual(printed.status, 0)
        for word in ("profile ", "pid ", "interval 1 ", "library ", "thread ", "site ", "live 0x", "samples "):
            self.assertRegex(printed.stdout, f"(?m)^{word}")
        named = os.path.join(self.out, "named.cad")
        self.assertEqual(self.cadastre("symbolize", profile, "-o", named).status, 0)
        self.assertEqual(target.report(ARGUMENTS.cadastre, named)["totals"], target.report(ARGUMENTS.cadastre, profile)["totals"])

    def test_doctor(self):
        healthy = self.cadastre("doctor", "--", "/bin/sh")
        self.assertEqual(healthy.status, 0, healthy)
        self.assertIn("preloading: works", healthy.stdout)
        self.assertEqual(self.cadastre("doctor", "--", "/no/such").status, 1)
        nowhere = self.cadastre("doctor", environment={"CADASTRE_LIBRARY": "/no/such.so"})
        self.assertEqual(nowhere.status, 1)
        self.assertIn("FAULT   libcadastre.so", nowhere.stdout)
        self.assertEqual(self.cadastre("doctor", "--pid", str(os.getpid())).status, 1)

    def test_doctor_finds_allocators_that_are_not_seen(self):
        allocator = next(iter(glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4")), None)
        if not allocator or not shutil.which("cc"):
            self.skipTest("libtcmalloc-minimal4 and a compiler are needed")
        source, program = os.path.join(self.out, "inside.c"), os.path.join(self.out, "inside")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\nvoid *_rjem_malloc(size_t n) { return (void *)n; }\n"
                       "int main(int c, char **v) { void *volatile p = malloc(10); dlopen(v[1], RTLD_NOW); puts(\"ready\"); fflush(stdout);"
                       " return p == NULL || getchar() == 0; }\n")
        subprocess.run(["cc", "-o", program, source, "-ldl"], check=True)
        self.assertIn("has an allocator of its own inside (_rjem_malloc)", self.cadastre("doctor", "--", program).stdout)
        for behind, expected in ((None, True), (allocator, False)):
            environment = {**target.clean_environment(), **target.preload_environment(ARGUMENTS.library, self.out, "1", behind)}
            with subprocess.Popen([program, allocator], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                self.assertEqual(process.stdout.readline(), b"ready\n")
                said = self.cadastre("doctor", "--pid", str(process.pid)).stdout
                process.stdin.close()
                process.wait(10)
            self.assertEqual("is loaded, but malloc is served by libc.so.6" in said, expected, said)

    def test_doctor_finds_what_is_loaded_past_cadastre(self):
        if not shutil.which("cc"):
            self.skipTest("a compiler is needed")
        def build(name, text, *flags):
            source, made = os.path.join(self.out, name + ".c"), os.path.join(self.out, name)
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            return made if subprocess.run(["cc", "-w", "-o", made, source, *flags], check=False, capture_output=True).returncode == 0 else None
        library = build("libown.so", "#include <stddef.h>\nvoid *malloc(size_t n) { return NULL; }\n", "-shared", "-fPIC", "-Wl,-Bsymbolic")
        program = build("loads", "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v) {"
                        " void *volatile p = malloc(10); dlopen(v[1], RTLD_NOW | RTLD_LOCAL); dlmopen(LM_ID_NEWLM, \"libm.so.6\", RTLD_NOW);"
                        " puts(\"ready\"); fflush(stdout); return p == NULL || getchar() == 0; }\n", "-ldl")
        environment = {**target.clean_environment(), **target.preload_environment(ARGUMENTS.library, self.out, "1")}
        with subprocess.Popen([program, library], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            said = self.cadastre("doctor", "--pid", str(process.pid)).stdout
            process.stdin.close()
            process.wait(10)
        self.assertRegex(said, r"libc\.so\.6: +is loaded more than once \(dlmopen\)")
        self.assertRegex(said, r"libown\.so: +has an allocator of its own \(malloc\)")
        instrumented = build("instrumented", "int main(void) { return 0; }\n", "-fsanitize=address")
        if instrumented:
            said = self.cadastre("doctor", "--", instrumented)
            self.assertEqual(said.status, 1)
            self.assertIn("is built with AddressSanitizer", said.stdout)

    def test_every_command_has_help_with_an_example(self):
        text = self.cadastre("--help").stdout
        commands = re.findall(r"^  ([a-z]+) {2,}", text, re.M)
        self.assertGreater(len(commands), 10)
        for command in commands:
            if command in ("help", "version"):
                continue
            shown = self.cadastre(command, "--help")
            self.assertEqual(shown.status, 0)
            self.assertTrue("Example: cadastre" in shown.stdout or command == "rules", command)
        for later in ("heap", "export", "redact", "top", "serve"):
            self.assertNotIn(later, commands)
        self.assertRegex(self.cadastre("version").stdout, r"^cadastre \d+\.\d+\.\d+\n$")
        self.assertEqual(self.cadastre().status, 2)
        self.assertEqual(self.cadastre("nosuch").status, 2)

    def test_a_closed_pipe_ends_quietly(self):
        profile = self.recorded(self.run_sh("x=1; exit 0").stderr)
        process = subprocess.Popen([ARGUMENTS.cadastre, "print", profile], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), 0)

    def test_a_full_output_is_an_error(self):
        profile = self.recorded(self.run_sh("x=1; exit 0").stderr)
        for words in (["report", profile], ["--help"], ["rss", "--help"], ["--version"], ["version"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([ARGUMENTS.cadastre, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), (words, done))


def main():
    global ARGUMENTS
    ARGUMENTS, argv = target.test_arguments("library", "cadastre")
    ARGUMENTS.cadastre = os.path.abspath(ARGUMENTS.cadastre)
    unittest.main(argv=argv, verbosity=2)


if __name__ == "__main__":
    main()
