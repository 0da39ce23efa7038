"""What the tests of the RSS ledger share: programs that wait at a known point, and a ledger that is checked as it is read."""
import argparse
import glob
import json
import os
import re
import selectors
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

ARGUMENTS = argparse.Namespace()  # library, cadastre, program, all: who runs the tests fills it
MIB = 1 << 20
PATIENCE = 120  # seconds; a busy machine is slow


class Process:
    """A program that is kept at a point where it waits, recorded unless `interval` is None."""

    def __init__(self, case, command, interval="1", behind=None, ready="ready", reads_stdin=False, environment=None, first=b""):
        env = target.clean_environment()
        if interval:
            env.update(target.preload_environment(ARGUMENTS.library, case.scratch, interval, behind))
        elif behind:
            env["LD_PRELOAD"] = behind
        env.update(environment or {})
        self.process = subprocess.Popen(command, env=env, cwd=case.scratch, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        case.addCleanup(self.end)
        self.pid = self.process.pid
        self.lines = []
        if first:
            self.process.stdin.write(first)
            self.process.stdin.flush()
        if reads_stdin:
            self.wait_until_it_reads(case)
        else:
            self.wait_for_line(case, ready)

    def wait_for_line(self, case, ready):
        deadline = time.monotonic() + PATIENCE
        selector = selectors.DefaultSelector()
        selector.register(self.process.stdout, selectors.EVENT_READ)
        text = b""
        while ready not in text.decode("utf-8", "replace"):
            if not selector.select(max(0, deadline - time.monotonic())):
                case.fail(f"not ready in time: {text!r}")
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                case.fail(f"ended: {text!r}")
            text += part
        self.lines = text.decode("utf-8", "replace").splitlines()

    def wait_until_it_reads(self, case):
        """Until its main thread waits in read(0, ...)."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with open(f"/proc/{self.pid}/syscall", encoding="ascii") as file:
                    words = file.read().split()
            except OSError as error:
                case.skipTest(f"/proc/PID/syscall: {error}")
            if words[:2] == ["0", "0x0"]:
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                case.fail(f"does not wait for input: {words}")
            time.sleep(0.02)  # no event says so

    def settle(self):
        """Waits until no thread runs, or two seconds: only one that sleeps has a stack pointer that others can read."""
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            states = []
            for path in glob.glob(f"/proc/{self.pid}/task/*/stat"):
                try:
                    with open(path, encoding="utf-8", errors="replace") as file:
                        states.append(file.read().rpartition(")")[2].split()[0])
                except OSError:
                    pass  # it has ended
            if "R" not in states:
                return
            time.sleep(0.02)

    def said(self, name):
        for line in self.lines:
            match = re.fullmatch(rf"{name} (\d+)", line)
            if match:
                return int(match[1])
        return None

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class LedgerCase(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("rss")
        self.addCleanup(target.remove, self.scratch)

    def rss(self, what, *arguments):
        outcome = target.run([ARGUMENTS.cadastre, "rss", str(what), *arguments], timeout=PATIENCE)
        self.assertEqual(outcome.status, 0, outcome.stderr)
        return outcome.stdout

    def ledger(self, what, smaps=True):
        """The ledger, checked: it adds up, and little is unexplained."""
        path = os.path.join(self.scratch, "smaps")
        document = json.loads(self.rss(what, "--format", "json", *(["--smaps", path] if smaps else [])))
        self.assertEqual(document["schema"], "cadastre.rss/1")
        rows = document["rows"]
        self.assertEqual(sum(row["resident_bytes"] for row in rows), document["rss_bytes"])
        if smaps:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            self.assertEqual(1024 * sum(int(kib) for kib in re.findall(r"^Rss: +(\d+) kB$", text, re.M)), document["rss_bytes"])
            # Address space has one row too, and nothing is committed that is not there.
            ranges = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) \S{4} ", text, re.M)
            self.assertEqual(sum(row["virtual_bytes"] for row in rows), sum(int(end, 16) - int(start, 16) for start, end in ranges))
        self.assertEqual(rows[-1]["name"], "unexplained")
        self.assertEqual([row["name"] for row in rows].count("unexplained"), 1)
        self.assertLessEqual(rows[-1]["resident_bytes"], max(document["rss_bytes"] // 100, MIB), self.rss(what))
        return document

    def check_threads(self, document, name, count, minimum, creator):
        """`count` threads of that name have a stack and, where that was recorded, a creator; none that has ended is there."""
        threads = document["threads"]
        self.assertFalse([thread for thread in threads if thread["name"] == "ended"])
        named = [thread for thread in threads if thread["name"].startswith(name)]
        self.assertEqual(len(named), count, threads)
        for thread in named:
            self.assertGreaterEqual(thread["resident_bytes"], minimum, thread)
            self.assertGreater(thread["virtual_bytes"], thread["resident_bytes"], thread)
            if document["recorded"]:
                self.assertTrue(creator in [frame["function"] for frame in thread["created_by"]], thread)
            else:
                self.assertIsNone(thread["created_by"])

    @staticmethod
    def committed(document, name):
        return sum(row["committed_bytes"] for row in document["rows"] if row["name"] == name)

    @staticmethod
    def resident(document, name, owner=None):
        return sum(row["resident_bytes"] for row in document["rows"]
                   if row["name"] == name and (owner is None or owner in (row["owner"] or "")))

    def both_ways(self, command, check=lambda process, document: None, **how):
        """Recorded and not: the ledger adds up, and check(process, ledger) has nothing to say."""
        for interval in ("1", None):
            with self.subTest(recorded=bool(interval)):
                process = Process(self, command, interval, **how)
                process.settle()
                document = self.ledger(process.pid)
                self.assertEqual(document["recorded"], bool(interval))
                check(process, document)
                process.end()
