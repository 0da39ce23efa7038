#!/usr/bin/env python3
"""The RSS ledger of real programs adds up to the Rss of the same smaps, and knows what all but one percent of it is.

Exists because a sum that is off by one mapping is no ledger. `cadastre rss --smaps FILE` writes the smaps that it has read; this test adds
it up by itself. Programs: what is installed of python3, node, gcc, redis-server and nginx; JVMs by collector and level of native memory
tracking; a program of ours for each trick with mappings, whose resident bytes are known; allocators that say themselves what is resident.
"""
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import programs  # noqa: E402
import target  # noqa: E402
from rss_cases import ARGUMENTS, MIB, PATIENCE, LedgerCase, Process  # noqa: E402


class ProgramsTest(LedgerCase):
    def installed(self, name):
        path = shutil.which(name)
        if not path:
            self.skipTest(f"{name} is not installed")
        return path

    def test_python3(self):
        code = "import sys; x = [bytes(1000 + i % 7) for i in range(20000)]; print('ready', flush=True); sys.stdin.read()"

        def check(_, document):
            live = "malloc live" if document["recorded"] else "allocator (not recorded)"
            self.assertGreater(self.resident(document, live), 18 * MIB)

        self.both_ways([self.installed("python3"), "-c", code], check)

    def test_node(self):
        code = "const x = Buffer.alloc(8 << 20, 1); console.log('ready'); process.stdin.resume()"
        self.both_ways([self.installed("node"), "-e", code])

    def test_gcc(self):
        compiler = subprocess.run([self.installed("gcc"), "-print-prog-name=cc1"], capture_output=True, text=True, check=True)
        self.both_ways([compiler.stdout.strip(), "-quiet", "-", "-o", "/dev/null"], reads_stdin=True, first=b"int x;\n")

    def test_redis(self):
        command = [self.installed("redis-server"), "--port", "0", "--save", "", "--unixsocket", "redis.sock"]
        self.both_ways(command, ready="eady to accept connections")

    def test_nginx(self):
        path = os.path.join(self.scratch, "nginx.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"daemon off; master_process off; pid {self.scratch}/pid; error_log stderr notice;\n"
                       f"events {{}}\nhttp {{ access_log off; server {{ listen unix:{self.scratch}/nginx.sock; }} }}\n")

        def remove_socket(*_):  # it is killed, and would not start over its own socket
            os.unlink(os.path.join(self.scratch, "nginx.sock"))

        # A single process starts no worker; this is the last that it says.
        self.both_ways([self.installed("nginx"), "-p", self.scratch, "-c", path], remove_socket, ready="getrlimit(RLIMIT_NOFILE)")


class MappingsTest(LedgerCase):
    def test_mapping_tricks(self):
        command = [ARGUMENTS.program, "tricks", os.path.join(self.scratch, "file")]

        def check(process, document):
            self.check_threads(document, "stack user", 4, MIB, "main")
            if not document["recorded"]:
                self.assertGreaterEqual(self.resident(document, "thread stacks"), process.said("stacks"))
                # 512 KiB of it are the program's own; what lies above is not.
                self.assertLess(self.resident(document, "library data", "rss_target"), MIB)
                return
            # 64 MiB of MAP_NORESERVE that nobody touched are not among them.
            self.assertLess(self.committed(document, "anonymous mappings"), process.said("anonymous") + 60 * MIB)
            owner = "rss_target"
            self.assertEqual(self.resident(document, "anonymous mappings", owner), process.said("anonymous"))
            # The file lies in /dev/shm or not, as the machine has it.
            mapped = [self.resident(document, name, owner) for name in ("shared memory", "mapped files")]
            self.assertEqual(sum(mapped), process.said("file") + process.said("shared"))
            self.assertIn(mapped[0], (process.said("shared"), sum(mapped)))
            stacks = self.resident(document, "thread stacks", owner)
            self.assertGreaterEqual(stacks, process.said("stacks"))
            self.assertLess(stacks, process.said("stacks") + MIB)

        self.both_ways(command, check)

    def test_pages_that_were_only_read_are_not_resident(self):
        process = Process(self, [ARGUMENTS.program, "tricks", os.path.join(self.scratch, "file")])
        path = os.path.join(self.scratch, "owners.csv")
        with open(path, "w", encoding="ascii") as file:
            file.write("prefix,module,team\nread_all,reader,\nwrite_all,writer,\ngrow_down,growth,\n")
        rows = json.loads(self.rss(process.pid, "--rules", path, "--format", "json"))["rows"]
        resident = {row["owner"]: row["resident_bytes"] for row in rows if row["name"] == "anonymous mappings"}
        self.assertEqual([resident.get(owner) for owner in ("reader", "writer", "growth")], [0, 4 * MIB, 3 * MIB])

    def test_rules_own_libraries_without_records(self):
        process = Process(self, [ARGUMENTS.program, "blocks"], interval=None)
        path = os.path.join(self.scratch, "owners.csv")
        with open(path, "w", encoding="ascii") as file:
            file.write("prefix,module,team\nlib:libc.so,base,systems\n")
        owners = {row["owner"] for row in json.loads(self.rss(process.pid, "--rules", path, "--format", "json"))["rows"]}
        self.assertIn("base", owners)
        self.assertNotIn("libc.so.6", owners)

    def test_a_snapshot_keeps_the_ledger(self):
        process = Process(self, [ARGUMENTS.program, "tricks", os.path.join(self.scratch, "file")])
        now = self.ledger(process.pid)
        outcome = target.run([ARGUMENTS.cadastre, "snapshot", str(process.pid), "--label", "here"])
        self.assertEqual(outcome.status, 0, outcome.stderr)
        profile = outcome.stdout.strip()
        process.end()
        then = self.ledger(profile, smaps=False)
        for name in ("anonymous mappings", "shared memory", "thread stacks", "mapped files"):
            self.assertEqual(self.resident(then, name), self.resident(now, name), name)
        report = target.run([ARGUMENTS.cadastre, "report", profile, "--format", "json"])
        self.check_threads({"recorded": True, **json.loads(report.stdout)["rss"]}, "stack user", 4, MIB, "main")
        report = target.run([ARGUMENTS.cadastre, "report", profile])
        self.assertEqual(report.status, 0, report.stderr)
        self.assertRegex(report.stdout, r"RSS \S+ MiB at \d\d:\d\d UTC: native live .* · stacks \S+ · other")
        # Of 64 MiB of MAP_NORESERVE that nobody touched nothing is committed, here as there.
        mapped = target.run([ARGUMENTS.cadastre, "report", profile, "--metric", "mapped", "--format", "json"])
        committed = sum(self.committed(then, name) for name in ("anonymous mappings", "shared memory", "mapped files"))
        self.assertLess(json.loads(mapped.stdout)["totals"]["mapped_bytes"], committed + 60 * MIB)
        # What is gone is said in one line.
        bare = profile.split("@")[0]
        outcome = target.run([ARGUMENTS.cadastre, "rss", bare])
        self.assertEqual((outcome.status, outcome.stdout, outcome.stderr.count("\n")), (2, "", 1))
        self.assertIn(f"the process has ended, and what was resident went with it; see its snapshots: {profile}\n", outcome.stderr)

    def test_a_fork_and_a_profile_that_is_cut_or_deleted_are_named(self):
        code = ("import os, sys; x = [bytes(1000) for i in range(5000)]; child = os.fork()\n"
                "if child: print('child', child, flush=True); print('ready', flush=True)\n"
                "sys.stdin.read()\n")
        process = Process(self, [sys.executable, "-c", code])
        child = process.said("child")
        said = f"process {child} was forked and goes on with its parent's program: such a process is not recorded"
        self.assertIn(f"warning: {said}\n", self.rss(child))
        outcome = target.run([ARGUMENTS.cadastre, "report", str(child)])
        self.assertEqual((outcome.status, outcome.stderr), (2, f"cadastre: {said}\n"))
        profile, = target.profiles_of(self.scratch, process.pid)
        os.truncate(profile, 4096)
        self.assertRegex(self.rss(process.pid), r"warning: the file is cut at 4096 of \d+ bytes: owners are missing, and what is live\n")
        os.unlink(profile)
        outcome = target.run([ARGUMENTS.cadastre, "snapshot", str(process.pid), "--label", "gone"])
        self.assertEqual((outcome.status, outcome.stdout), (2, ""))
        self.assertIn(f"the profile of {process.pid} was deleted: -o FILE says where its snapshot goes", outcome.stderr)

    def test_more_mappings_than_the_profile_has_room_for(self):
        code = ("import ctypes, mmap, sys; libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p\n"
                "start = libc.mmap(None, ctypes.c_size_t(64 << 20), 3, 0x22, -1, ctypes.c_long(0)); ctypes.memset(start, 1, 64 << 20)\n"
                "for i in range(4000): libc.mprotect(ctypes.c_void_p(start + i * 16384), ctypes.c_size_t(8192), 1)\n"
                "print('ready', flush=True); sys.stdin.read()\n")
        process = Process(self, [sys.executable, "-c", code], environment={"CADASTRE_OPTIONS": f"out={self.scratch},memory=1m"})
        document = self.ledger(process.pid)  # which is strict about what is unexplained
        self.assertGreater(self.resident(document, "anonymous mappings"), 60 * MIB)
        self.assertIn("the profile has no room for so many mappings", " ".join(self.rss(process.pid).split()))

    def test_a_profile_of_another_name_is_ours_in_snapshots_too(self):
        path = os.path.join(self.scratch, "pay.cad")
        process = Process(self, [ARGUMENTS.program, "blocks"], environment={"CADASTRE_OPTIONS": f"out={path},interval=1"})
        self.assertEqual(target.run([ARGUMENTS.cadastre, "snapshot", str(process.pid), "--label", "a"]).status, 0)
        for what in (str(process.pid), f"{path}@a"):
            areas = csv.DictReader(io.StringIO(self.rss(what, "--areas")))
            self.assertEqual({area["row"] for area in areas if area["file"] == path}, {"Cadastre"}, what)

    def test_a_main_thread_that_has_left(self):
        code = ("import ctypes, threading, time\n"
                "def work():\n"
                "    x = bytearray(b'1') * (20 << 20)\n"
                "    time.sleep(0.3); print('ready', flush=True); time.sleep(600)\n"
                "threading.Thread(target=work).start(); ctypes.CDLL(None).pthread_exit(None)\n")
        for interval in ("1", None):
            process = Process(self, [sys.executable, "-c", code], interval=interval)
            document = self.ledger(process.pid)
            self.assertGreater(document["rss_bytes"], 20 * MIB)
            self.assertEqual(document["recorded"], interval is not None)
            process.end()

    def allocator_agrees(self, library):
        process = Process(self, [ARGUMENTS.program, "blocks"], behind=target.find_library(library) if library else None)
        document = self.ledger(process.pid)
        live = sum(row["virtual_bytes"] for row in document["rows"] if row["name"] == "malloc live")
        self.assertAlmostEqual(live, process.said("live"), delta=0.02 * process.said("live"))
        held = self.resident(document, "malloc live") + self.resident(document, "allocator retention")
        if process.said("metadata"):
            # jemalloc takes all of its own tables for resident: 2 MiB more for each GiB of addresses that its memory
            # lies in, as it happens, of which it has touched some pages. What the blocks have lies below that.
            self.assertLessEqual(held, 1.02 * process.said("resident"))
            self.assertGreaterEqual(held, 0.98 * (process.said("resident") - process.said("metadata")))
        elif library:
            self.assertAlmostEqual(held, process.said("resident"), delta=0.05 * process.said("resident"))
        if process.said("arenas") and not library:
            # Read from outside while the process waits: to the byte what mallinfo2() said.
            state = document["allocator"]
            self.assertEqual((state["name"], state["arenas"], state["whole"]), ("glibc", 5, True))
            self.assertEqual((state["system_bytes"], state["free_bytes"] + state["top_bytes"]), (process.said("arenas"), process.said("free")))
            self.assertRegex(self.rss(process.pid), r"allocator: glibc itself, read from outside at \d\d:\d\d:\d\d UTC: 5 arenas have")
        else:
            self.assertLess((document["allocator"] or {}).get("system_bytes", 0), 16 * MIB)  # what libc's own start took
        # Half of the blocks were freed in runs of 64 blocks: most allocators keep them, none gives back what is live.
        self.assertGreaterEqual(held, live)

    def test_glibc(self):
        self.allocator_agrees(None)

    def test_jemalloc(self):
        self.allocator_agrees("libjemalloc.so.2")

    def test_tcmalloc(self):
        self.allocator_agrees("libtcmalloc_minimal.so.4")


# What System.map's notes are in the ledger.
ROWS_OF_TAGS = {"JAVAHEAP": "Java heap", "CLASS": "class space", "META": "metaspace", "CODE": "code cache", "GC": "GC structures",
                "CARDTBL": "GC structures", "CDS": "CDS archive"}


class JavaTest(LedgerCase):
    def start(self, home, *flags, interval="1", program="RssTarget"):
        classes = os.path.join(self.scratch, "classes")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{program}.java")
        outcome = target.run([f"{home}/bin/javac", "-d", classes, source], timeout=PATIENCE)
        self.assertEqual(outcome.status, 0, outcome.stderr)
        command = [f"{home}/bin/java", "-Xmx64m", *flags, "-cp", classes, program, os.path.join(self.scratch, "mapped")]
        return Process(self, command, interval)

    def check_java(self, document, recorded):
        self.assertGreater(self.resident(document, "Java heap"), 12 * MIB)
        self.assertGreater(self.resident(document, "code cache"), 0)
        self.assertLessEqual(self.committed(document, "Java heap"), 64 * MIB)
        for row in document["rows"]:
            if row["name"] in ("Java heap", "metaspace", "code cache", "GC structures", "CDS archive", "other HotSpot"):
                self.assertEqual(row["owner"], "platform/jvm")
        self.check_threads(document, "waiting-", 4, 4096, "RssTarget.main")
        self.assertGreater(self.resident(document, "metaspace"), MIB // 4)
        self.assertGreater(self.resident(document, "class space"), 0)
        if recorded:
            mapped = self.resident(document, "mapped files", "RssTarget") + self.resident(document, "shared memory", "RssTarget")
            self.assertAlmostEqual(mapped, 8 * MIB, delta=MIB // 16)  # the kernel may take pages of a file back
            self.assertGreaterEqual(self.resident(document, "malloc live", "RssTarget"), 5 * MIB)
            self.assertGreater(self.resident(document, "GC structures"), 0)
            self.assertGreater(self.resident(document, "thread stacks", "RssTarget"), 0)

    def check_nmt(self, document):
        check, = [check for check in document["checks"] if check["name"] == "NMT malloc"]
        ours = check["ledger_bytes"] + check["explained_bytes"]
        self.assertAlmostEqual(ours, check["other_bytes"], delta=0.01 * check["other_bytes"], msg=check["text"])
        self.assertIn("are older than NMT and in neither", check["text"])
        self.assertRegex(check["text"], r"; read \d+ ms after NMT")

    def check_system_map(self, home, process):
        """Each VMA that HotSpot names has that row here. What is resident may change meanwhile, what it is for does not."""
        outcome = target.run([f"{home}/bin/jcmd", str(process.pid), "System.map"], timeout=PATIENCE)
        if outcome.status != 0 or "0x" not in outcome.stdout:
            return 0
        areas = list(csv.DictReader(io.StringIO(self.rss(process.pid, "--areas"))))
        self.assertFalse([area for area in areas if int(area["start"], 16) % 4096 or int(area["end"], 16) % 4096])
        compared = 0
        for line in outcome.stdout.splitlines():
            match = re.match(r"0x(\w+)-0x(\w+) +\d+ \S+ +(\d+) +\d+ \S+ +\S+ +(\S+)", line)
            if not match:
                continue
            start, end = int(match[1], 16), int(match[2], 16)
            tags = {tag.split("-")[0] for tag in match[4].split(",")}
            want = {ROWS_OF_TAGS[tag] for tag in tags if tag in ROWS_OF_TAGS} | ({"thread stacks"} if "STACK" in tags else set())
            if not want:
                continue
            got = {area["row"] for area in areas if int(area["start"], 16) < end and int(area["end"], 16) > start}
            compared += 1
            # Neighbours may have grown together: then there is more in the area than HotSpot's, and what is resident of it may be the
            # neighbours' alone (the mark stack of G1 is untouched until it marks, and malloc's mapped blocks lie beside it).
            self.assertTrue(want & got, f"{line}\n{got}")
        return compared

    def runs(self):
        levels, collectors = ("off", "summary", "detail"), ("Serial", "G1", "Z")
        for number, home in enumerate(programs.jdk_homes()):
            for i, collector in enumerate(collectors):
                if not ARGUMENTS.all and not target.is_todays(number + i, len(collectors)):
                    continue
                for level in levels if ARGUMENTS.all else (levels[i],):
                    yield home, collector, level

    def test_collectors_and_nmt(self):
        seen = 0
        for home, collector, level in self.runs():
            with self.subTest(jdk=programs.java_feature(home), collector=collector, nmt=level):
                process = self.start(home, f"-XX:+Use{collector}GC", f"-XX:NativeMemoryTracking={level}")
                document = self.ledger(process.pid)
                self.check_java(document, recorded=True)
                if level != "off":
                    self.check_nmt(document)
                if level != "off" and int(programs.java_feature(home)) >= 22:
                    self.assertGreater(self.check_system_map(home, process), 20)
                if level == "detail":
                    view = self.rss(process.pid, "--nmt", "detail")
                    self.assertRegex(view, r"- *External \(via interposition\) \(reserved=\d+, committed=\d+\)")
                    self.assertRegex(view, r"RssTarget: malloc=\d+ #\d+")
                    self.assertIn("[java] RssTarget.main", view)
                process.end()
                seen += 1
        if not seen:
            self.skipTest("no JDK found")

    def test_blocks_that_wait_for_the_collector(self):
        for home in programs.jdk_homes():
            with self.subTest(jdk=programs.java_feature(home)):
                process = self.start(home, program="CollectedTarget")
                deadline = time.monotonic() + PATIENCE

                def advice():
                    lines = self.ledger(process.pid)["advice"]
                    return [re.fullmatch(r"[\d.]+ MiB of (\S+) wait for the garbage collector: .*", line)[1] for line in lines if "collector" in line]
                # What the collector has found its threads may be about to free; no event says that they have.
                wanted = ["CollectedTarget$Archive", "CollectedTarget$Index"]
                while advice() != wanted and time.monotonic() < deadline:
                    time.sleep(0.1)
                self.assertEqual(advice(), wanted)
                process.end()

    def test_a_snapshot_asks_a_jvm_whose_level_no_command_line_tells(self):
        """The launcher reads @FILE itself; what /proc shows is its name."""
        path = os.path.join(self.scratch, "options")
        with open(path, "w", encoding="ascii") as file:
            file.write("-XX:NativeMemoryTracking=summary\n")
        for home in programs.jdk_homes():
            with self.subTest(jdk=programs.java_feature(home)):
                process = self.start(home, f"@{path}")
                for label, flags, wanted in (("plain", [], []), ("asked", ["--nmt", "summary"], ["NMT committed", "NMT malloc"])):
                    outcome = target.run([ARGUMENTS.cadastre, "snapshot", str(process.pid), "--label", label, *flags], timeout=PATIENCE)
                    self.assertEqual((outcome.status, outcome.stderr), (0, ""))
                    checks = {check["name"]: check["text"] for check in self.ledger(outcome.stdout.strip(), smaps=False)["checks"]}
                    self.assertEqual([name for name in checks if name.startswith("NMT")], wanted)
                    if flags:
                        self.assertRegex(checks["NMT malloc"], r"; read \d+ ms after NMT")
                process.end()
                process = self.start(home)
                outcome = target.run([ARGUMENTS.cadastre, "snapshot", str(process.pid), "--label", "off", "--nmt", "detail"], timeout=PATIENCE)
                self.assertEqual((outcome.status, outcome.stderr.count("\n")), (0, 1), outcome.stderr)
                self.assertIn("no report of native memory tracking in it: ", outcome.stderr)
                process.end()

    def test_not_recorded(self):
        for home in programs.jdk_homes():
            with self.subTest(jdk=programs.java_feature(home)):
                process = self.start(home, interval=None)
                document = self.ledger(process.pid)
                self.check_java(document, recorded=False)
                self.assertGreater(self.resident(document, "GC structures"), 0)  # the card table
                outcome = target.run([f"{home}/bin/jcmd", str(process.pid), "VM.metaspace", "scale=B"], timeout=PATIENCE)
                said = int(re.search(r"^Virtual space:\n +Non-class space: +\d+ bytes reserved, +(\d+) bytes", outcome.stdout, re.M)[1])
                # To answer, the JVM may have committed one granule more.
                self.assertIn(said - self.committed(document, "metaspace"), (0, 64 << 10), outcome.stdout)
                self.assertGreater(self.resident(document, "thread stacks"), 0)
                process.end()

    def test_a_stopped_jvm_is_not_waited_for(self):
        for home in programs.jdk_homes():
            with self.subTest(jdk=programs.java_feature(home)):
                process = self.start(home, "-XX:NativeMemoryTracking=summary", interval=None)
                os.kill(process.pid, signal.SIGSTOP)
                self.assertIn(f"process {process.pid} is stopped", self.ledger(process.pid)["warnings"][0])
                begun = time.monotonic()
                outcome = target.run([ARGUMENTS.cadastre, "rss", str(process.pid), "--nmt", "summary"], timeout=PATIENCE)
                self.assertEqual((outcome.status, outcome.stdout, outcome.stderr.count("\n")), (2, "", 1), outcome)
                self.assertIn("is stopped", outcome.stderr)
                self.assertLess(time.monotonic() - begun, 14)  # jcmd would be given 15 s
                os.kill(process.pid, signal.SIGCONT)
                process.end()


class BadInputTest(LedgerCase):
    def test_one_line(self):
        for words, text in (("4194304",), "no process"), (("nosuch.cad",), "No such file"), (("1", "--format", "xml"), "--format"):
            outcome = target.run([ARGUMENTS.cadastre, "rss", *words])
            self.assertEqual((outcome.status, outcome.stdout, outcome.stderr.count("\n")), (2, "", 1), outcome)
            self.assertIn(text, outcome.stderr)

    def test_rules_of_a_recorded_process(self):
        process = Process(self, [ARGUMENTS.program, "blocks"])
        outcome = target.run([ARGUMENTS.cadastre, "rss", str(process.pid), "--rules", "/no/such/owners.csv"])
        self.assertEqual((outcome.status, outcome.stdout, outcome.stderr.count("\n")), (2, "", 1), outcome)
        self.assertIn("/no/such/owners.csv", outcome.stderr)

    def test_nmt_of_no_jvm(self):
        process = Process(self, [ARGUMENTS.program, "blocks"], interval=None)
        outcome = target.run([ARGUMENTS.cadastre, "rss", str(process.pid), "--nmt", "summary"])
        self.assertEqual((outcome.status, outcome.stdout, outcome.stderr.count("\n")), (2, "", 1), outcome)
        self.assertIn("is no JVM", outcome.stderr)


def main():
    def more(parser):
        parser.add_argument("--all", action="store_true", help="each collector with each level of native memory tracking")
    given, argv = target.test_arguments("library", "cadastre", "program", more=more)
    ARGUMENTS.all = given.all
    for name in ("library", "cadastre", "program"):
        setattr(ARGUMENTS, name, os.path.abspath(getattr(given, name)))
    unittest.main(argv=argv)


if __name__ == "__main__":
    main()
