#!/usr/bin/env python3
"""The bundle in containers: no shell, read-only root, uid 65532, /dev/shm of 64 MiB, a sidecar, `run` as PID 1, an OOM kill.

Exists because each of these has a way of its own to leave a profiler without its file, its command or its view. The recipes are those of
README.md. What the machine does not allow (namespaces, a memory cgroup) is skipped and said.
"""
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import container  # noqa: E402
import target  # noqa: E402
from steered import Steered, profiles_in, snapshots_of, until  # noqa: E402

ARGUMENTS = None
UID = 65532


def children_of(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except OSError:
            pass
    return found


def program_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


class BundleTest(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("bundle")
        self.addCleanup(target.remove, self.scratch)
        os.chmod(self.scratch, 0o755)
        self.shm = os.path.join(self.scratch, "shm")
        os.mkdir(self.shm)
        # Not on /dev/shm, where programs may not be run.
        place = tempfile.mkdtemp(prefix="cadastre-root-")
        self.addCleanup(target.remove, place)
        os.chmod(place, 0o755)
        self.root = container.Root(place)
        done = target.run([ARGUMENTS.static, "install", os.path.join(self.root.path, "cadastre")])
        self.assertEqual((done.status, done.stderr), (0, ""))
        self.root.add(ARGUMENTS.program, "/bin/watch_target")
        try:
            self.root.check()
        except container.Unavailable as reason:
            self.skipTest(str(reason))
        # One that outlives a container, as a pod's does.
        if os.geteuid() == 0:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs", self.shm], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", self.shm], check=False)
        else:
            os.chmod(self.shm, 0o1777)

    def contained(self, command, environment=None, name="err", **more):
        steered = Steered(self.root.command(command), {"CONTAINER_SHM": self.shm, **(environment or {})},
                          stderr_path=os.path.join(self.scratch, name), **more)
        self.addCleanup(steered.close)
        return steered

    def preloaded(self, extra=""):
        return self.contained(["/bin/watch_target"], {"LD_PRELOAD": "/cadastre/libcadastre.so",
                                                      "CADASTRE_OPTIONS": "interval=64k,exe=watch_*" + extra})

    def report(self, profile):
        return target.report(ARGUMENTS.cadastre, str(profile))

    def target_pid(self, steered):
        """As we see it."""
        def find():
            todo = children_of(steered.pid)
            while todo:
                pid = todo.pop()
                if program_of(pid) == "watch_target":
                    return pid
                todo += children_of(pid)
            return None
        return until(find, "the target in the container")

    def test_the_bundle_needs_nothing(self):
        folder = os.path.join(self.root.path, "cadastre")
        self.assertEqual(sorted(os.listdir(folder)), ["cadastre", "libcadastre-unwind.so", "libcadastre.so"])
        for name in os.listdir(folder):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o755)
        needed = subprocess.run(["readelf", "-d", "-l", os.path.join(folder, "cadastre")], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("NEEDED", needed)
        self.assertNotIn("INTERP", needed)
        # Nothing else in the root: no shell, no libc.
        for name in ("bin", "lib", "lib64", "usr"):
            shutil.rmtree(os.path.join(self.root.path, name), ignore_errors=True)
        done = target.run(self.root.command(["/cadastre/cadastre", "install", "/dev/shm/again"]), {"CONTAINER_SHM": self.shm})
        self.assertEqual((done.status, done.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(os.path.join(self.shm, "again"))), sorted(os.listdir(folder)))
        told = target.run(self.root.command(["/cadastre/cadastre", "doctor"]), {"CONTAINER_SHM": self.shm})
        self.assertIn("not tried: there is no /bin/sh here", told.stdout)
        self.assertNotIn("FAULT", told.stdout)

    def test_run_as_pid_1(self):
        steered = self.contained(["/cadastre/cadastre", "run", "--interval", "64k", "--", "/bin/watch_target"])
        steered.do("grow 5")
        profile = until(lambda: profiles_in(self.shm), "a profile")[0]
        self.assertEqual(os.stat(profile).st_uid, UID if os.geteuid() == 0 else os.geteuid())
        self.assertEqual(steered.end("end 7"), 7)
        self.assertIn("recording to /dev/shm/", steered.said())
        document = self.report(profile)
        self.assertEqual((document["profile"]["exit_status"], document["profile"]["pid"]), (7, 2))
        self.assertGreater(document["totals"]["live_bytes"], 4 << 20)

    def test_a_signal_for_pid_1_is_the_programs(self):
        steered = self.contained(["/cadastre/cadastre", "run", "--interval", "64k", "--", "/bin/watch_target"])
        steered.do("grow 5")
        profile = until(lambda: profiles_in(self.shm), "a profile")[0]
        steered.process.send_signal(signal.SIGTERM)
        self.assertEqual(steered.wait(), 128 + signal.SIGTERM)
        self.assertEqual(self.report(profile)["profile"]["end"], "signal:15")

    def test_from_outside_by_pid(self):
        steered = self.preloaded()
        steered.do("grow 30")
        pid = self.target_pid(steered)
        # Another mount namespace, another pid namespace: the process calls itself 1.
        self.assertEqual(self.report(pid)["profile"]["pid"], 1)
        saved = os.path.join(self.scratch, "saved")
        os.mkdir(saved)
        with open(os.path.join(self.scratch, "watch"), "w", encoding="utf-8") as err:
            watch = subprocess.Popen([ARGUMENTS.cadastre, "watch", str(pid), "-o", saved, "--limit", "100m", "--at", "50"],
                                     stdout=subprocess.PIPE, stderr=err, text=True, env=target.clean_environment())
        self.addCleanup(watch.communicate)
        live = until(lambda: profiles_in(self.shm), "a profile")[0]
        name = os.path.join(saved, os.path.basename(live))
        until(lambda: "peak" in snapshots_of(name), "@peak")
        steered.do("grow 30")
        until(lambda: "at-50" in snapshots_of(name), "50 %")
        steered.end("end 0")
        self.assertEqual(watch.wait(60), 0)
        self.assertEqual(watch.stdout.read(), name + "\n")
        self.assertEqual(profiles_in(self.shm), [])
        self.assertGreater(self.report(name)["totals"]["live_bytes"], 50 << 20)
        self.assertGreater(self.report(name + "@peak")["profile"]["rss_bytes"], 30 << 20)

    def test_a_sidecar_that_sees_no_other_process(self):
        steered = self.preloaded()
        steered.do("grow 5")
        live = until(lambda: profiles_in(self.shm), "a profile")[0]
        sidecar = self.contained(["/cadastre/cadastre", "watch", "/dev/shm", "--every", "1s", "--keep", "2", "--exe", "watch_*"],
                                 name="sidecar")
        until(lambda: len(snapshots_of(live, "every-")) == 2, "periodic snapshots")
        self.assertFalse(self.report(live)["profile"]["end"] == "lost")
        self.assertEqual(sidecar.process.poll(), None)
        os.kill(self.target_pid(steered), signal.SIGKILL)  # from outside: PID 1 cannot kill itself
        steered.wait()
        self.assertEqual(sidecar.process.stdout.readline(), "/dev/shm/" + os.path.basename(live) + "\n")
        self.assertEqual(self.report(live)["profile"]["end"], "lost")
        self.assertLess(os.path.getsize(live), 4 << 20)
        sidecar.process.send_signal(signal.SIGTERM)
        self.assertEqual(sidecar.wait(), 0)

    def cgroup(self, limit):
        try:
            group = container.Cgroup(f"cadastre-test-{os.getpid()}", limit)
        except container.Unavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(group.remove)
        return group

    def test_an_oom_kill_that_run_sees(self):
        group = self.cgroup(96 << 20)
        steered = self.contained(["/cadastre/cadastre", "run", "--interval", "64k", "--at", "40", "--", "/bin/watch_target"],
                                 {"CONTAINER_CGROUP": group.path}, preexec_fn=group.enter)
        steered.do("grow 40")
        live = until(lambda: profiles_in(self.shm), "a profile")[0]
        until(lambda: snapshots_of(live, "at-") == ["at-40"], "40 % of the cgroup's limit, as seen from inside")
        steered.say("grow 200")
        self.assertEqual(steered.wait(), 128 + signal.SIGKILL)
        document = self.report(live)
        self.assertEqual((document["profile"]["end"], document["profile"]["oom"]), ("signal:9", "counted"))
        self.assertEqual(document["profile"]["memory_limit_bytes"], 96 << 20)
        self.assertGreater(document["totals"]["live_bytes"], 40 << 20)
        self.assertRegex(steered.said(), r"ended: signal 9 \(SIGKILL\), OOM kill \(\d+\.\d\d of 96\.00 MiB\)")

    def test_a_watch_from_outside_tells_of_the_oom_kill(self):
        group = self.cgroup(96 << 20)
        steered = self.contained(["/bin/watch_target"], {"LD_PRELOAD": "/cadastre/libcadastre.so",
                                                         "CADASTRE_OPTIONS": "interval=64k,exe=watch_*"}, preexec_fn=group.enter)
        steered.do("grow 5")
        live = until(lambda: profiles_in(self.shm), "a profile")[0]
        saved = os.path.join(self.scratch, "saved")
        os.mkdir(saved)
        watch = subprocess.Popen([ARGUMENTS.cadastre, "watch", str(self.target_pid(steered)), "-o", saved, "--at", "40,60"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=target.clean_environment())
        self.addCleanup(watch.communicate)
        name = os.path.join(saved, os.path.basename(live))
        until(lambda: "peak" in snapshots_of(name), "a look")
        steered.do("grow 60")
        until(lambda: "at-60" in snapshots_of(name), "60 % of the cgroup's limit")
        steered.say("grow 200")
        self.assertEqual(steered.wait(), 128 + signal.SIGKILL)
        self.assertEqual(watch.wait(60), 0)
        document = self.report(name)
        self.assertEqual((document["profile"]["end"], document["profile"]["oom"]), ("lost", "counted"))
        self.assertEqual(document["profile"]["memory_limit_bytes"], 96 << 20)
        text = target.run([ARGUMENTS.cadastre, "report", name]).stdout
        self.assertRegex(text, r"ended: lost, OOM kill \(\d+\.\d\d of 96\.00 MiB\)")

    def test_a_second_life_is_not_starved(self):
        command = ["/cadastre/cadastre", "run", "--interval", "1", "--memory", "40m", "--limit", "64m", "--", "/bin/watch_target"]
        first = self.contained(command)
        first.do("grow 60")
        live = until(lambda: profiles_in(self.shm), "a profile")[0]
        until(lambda: (self.report(live)["profile"]["memory_used_bytes"] or 0) > 60 << 20, "a note of its memory")
        # As an OOM kill of the whole container: PID 1 first, and with it everybody.
        os.kill(children_of(first.pid)[0], signal.SIGKILL)
        first.wait()
        self.assertEqual(profiles_in(self.shm), [live])
        second = self.contained(command, name="second")
        second.do("grow 5")
        said = second.said()
        self.assertRegex(said, rf"profile of an earlier run at /dev/shm/{re.escape(os.path.basename(live))} "
                               r"\(ended: lost, OOM likely \(6\d\.\d\d of 64\.00 MiB\)\)")
        later = [path for path in until(lambda: len(profiles_in(self.shm)) == 2 and profiles_in(self.shm), "a second profile") if path != live]
        self.assertEqual(second.end("end 0"), 0)
        document = self.report(later[0])
        self.assertEqual(document["losses"]["dropped_samples"], 0)
        self.assertGreater(document["totals"]["live_bytes"], 4 << 20)
        self.assertGreater(self.report(live)["totals"]["live_bytes"], 59 << 20)


def main():
    global ARGUMENTS
    ARGUMENTS, argv = target.test_arguments("static", "cadastre", "program")
    if not os.path.exists(ARGUMENTS.static):
        print("skipped: no static archives of elfutils and its compression libraries are installed, so there is no bundle")
        sys.exit(target.SKIP)
    unittest.main(argv=argv, verbosity=2)


if __name__ == "__main__":
    main()
