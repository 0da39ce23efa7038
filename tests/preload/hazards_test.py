#!/usr/bin/env python3
"""Each kind of way in which preloaded tools have broken programs, that no trap program (tests/programs) stands for: bare and preloaded, at
512 KiB and at interval 1, the same output and status, and the profile says what the program says.

Exists because an interposer meets everything a process can do, and each of these has been somebody's outage; tests/README.md has the table.
"""
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "support"))
sys.path.insert(0, here)
import programs  # noqa: E402
import target  # noqa: E402

ARGUMENTS = None
NOBODY = 65534


def mapped_bytes(document, function):
    return sum(site["mapped_bytes"] for site in document["sites"] if any(target.names_function(f["function"], function) for f in site["frames"]))


class Hazard(unittest.TestCase):
    def setUp(self):
        self.scratch = target.scratch_directory("hazards")
        self.addCleanup(target.remove, self.scratch)
        os.chmod(self.scratch, 0o755)
        self.out = os.path.join(self.scratch, "out")
        self.work = os.path.join(self.scratch, "work")

    def file(self, name):
        path = os.path.join(ARGUMENTS.files, name)
        if not os.path.exists(path):
            self.skipTest(f"{name} was not built: {ARGUMENTS.missing}")
        return path

    def once(self, command, interval=None, environment=None, prepare=None, first=None, last=None, timeout=100):
        """One run in fresh directories. `prepare` makes what the program needs in self.work; FIRST and LAST are preloaded around ours."""
        for directory in (self.out, self.work):
            target.remove(directory)
            os.mkdir(directory)
        os.chmod(self.out, 0o1777)
        if prepare:
            prepare()
        variables = dict(environment or {})
        libraries = [first, ARGUMENTS.library if interval else None, last]
        if any(libraries):
            variables["LD_PRELOAD"] = ":".join(path for path in libraries if path)
        if interval:
            variables["CADASTRE_OPTIONS"] = f"interval={interval},out={self.out}"
        return target.run(command, variables, cwd=self.work, timeout=timeout)

    def same(self, command, **how):
        """Bare and preloaded at both intervals; returns the outcome at interval 1, whose profile is in self.out."""
        normalise = how.pop("normalise", lambda text: text)
        bare = self.once(command, **how)
        self.assertNotRegex(bare.stdout, "(?m)^FAIL", bare)
        for interval in ("512k", "1"):
            with self.subTest(interval=interval):
                recorded = self.once(command, interval, **how)
                for what in ("stdout", "stderr"):
                    want, got = normalise(getattr(bare, what)), normalise(getattr(recorded, what))
                    self.assertEqual(want, got, f"{what}: {target.first_difference(want, got)}")
                self.assertEqual(bare.status, recorded.status, recorded)
        self.bare = bare
        return recorded

    def profile(self, outcome, exe="*"):
        found = target.profiles_of(self.out, outcome.pid, exe)
        self.assertEqual(len(found), 1, os.listdir(self.out))
        return found[0]

    def told(self, outcome, exe="*"):
        """What the profile says is what the program says; returns the report."""
        profile = self.profile(outcome, exe)
        document = target.report(ARGUMENTS.cadastre, profile)
        self.assertEqual(document["losses"]["dropped_samples"], 0)
        expected = target.expectations(outcome.stdout)
        self.assertTrue(expected, outcome)
        for site, want in expected:
            got = target.sum_sites(document, site)
            for key, value in target.checks_of(want):
                self.assertEqual(got[key], value, f"{site} {key}")
        maps = re.findall(r"^MAPPED (\w+) (\d+)$", outcome.stdout, re.M)
        if maps:
            mapped = target.report(ARGUMENTS.cadastre, profile, "--metric", "mapped")
            for site, value in maps:
                self.assertEqual(mapped_bytes(mapped, site), int(value), site)
        return document

    def case(self, name, *arguments, program="hazards_target", status=0, **how):
        outcome = self.same([self.file(program), name, *arguments], **how)
        self.assertEqual(outcome.status, status, outcome)
        return outcome

    def sites_with(self, document, function):
        return [site for site in document["sites"] if any(f["function"] and function in f["function"] for f in site["frames"])]


class Threads(Hazard):
    def test_destructors_of_keys_and_thread_locals_allocate_after_ours(self):
        self.told(self.case("thread_destructors"))
        self.told(self.case("thread_locals", program="hazards_target_cxx"))

    def test_fibers_on_junk_stacks_that_change_threads(self):
        self.told(self.case("fibers"))

    def test_recursion_100000_deep_is_cut_and_marked_and_keeps_its_leaf(self):
        document = self.told(self.case("deep_recursion"))
        self.assertGreaterEqual(document["losses"]["truncated_stacks"], 1)
        for site in self.sites_with(document, "site_deep"):
            self.assertLess(len(site["frames"]), 1000)
            self.assertEqual(site["frames"][0]["function"].split("(")[0], "site_deep")

    def test_a_profiling_timer_that_maps_memory(self):
        self.told(self.case("profiling_timer"))

    def test_a_handler_that_interrupts_the_vdso(self):
        self.told(self.case("vdso_interrupted"))

    def test_unwind_tables_registered_while_running(self):
        self.told(self.case("registered_frames"))

    def test_names_that_the_kernel_refuses(self):
        self.told(self.case("thread_names"))

    def test_exit_while_others_allocate(self):
        outcome = self.case("exit_from_a_thread", status=7)
        self.assertEqual(target.report(ARGUMENTS.cadastre, self.profile(outcome))["profile"]["end"], "exit")

    def test_new_handlers_that_jump_or_throw(self):
        self.told(self.case("leave_new", program="hazards_target_cxx"))

    def test_exceptions_in_a_storm_of_dlopen(self):
        self.told(self.case("loader_storm", self.file("libhazards_first.so"), program="hazards_target_cxx"))


class Children(Hazard):
    def test_every_way_to_make_one(self):
        outcome = self.case("children")
        document = self.told(outcome)
        self.assertFalse(self.sites_with(document, "site_volume"), "a child's blocks are in the parent's profile")

    def test_a_daemon_without_descriptors(self):
        outcome = self.case("daemonise", os.path.join(self.work, "file"))
        self.told(outcome)
        with open(os.path.join(self.work, "file"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "the daemon was here\n")

    def test_the_environment_of_a_child(self):
        self.told(self.case("environment_kept"))


class Limits(Hazard):
    def test_chroot_and_other_users(self):
        self.told(self.case("drop_privileges", self.work, prepare=lambda: os.chmod(self.work, 0o755)))

    def test_an_address_space_that_is_full(self):
        self.told(self.case("address_space"))

    def test_no_descriptor_left(self):
        self.told(self.case("no_descriptors"))

    def jail(self, kind):
        jail = [self.file("hazards_jail"), kind]
        if target.run([*jail, "/bin/true"]).status == 77:
            self.skipTest("no filter can be installed here")
        return jail

    def test_a_filter_inherited_that_kills(self):
        for kind in ("kill", "allow"):
            with self.subTest(kind=kind):
                self.told(self.same([*self.jail(kind), self.file("hazards_target"), "nothing"]), "hazards_target")

    def test_a_filter_inherited_that_kills_who_is_not_recorded(self):
        outcome = target.run([*self.jail("allow"), "/bin/true"],
                             environment=target.preload_environment(ARGUMENTS.library, self.out, "512k", extra="exe=nothing-like-this"))
        self.assertEqual(outcome.status, 0, outcome)

    def test_a_filter_of_ones_own(self):
        """A program that lets itself have little more than what malloc needs: not what makes room in a file."""
        for how in ("by-name", "by-number"):
            with self.subTest(how=how):
                outcome = self.same([self.file("hazards_own_filter"), how])
                if outcome.status == 77:
                    self.skipTest("no filter can be installed here")
                self.assertEqual(outcome.status, 5, outcome)
                self.told(outcome, "hazards_own_filter")

    def test_who_only_asks_for_filters_is_recorded_on(self):
        self.told(self.same([self.file("hazards_own_filter"), "ask"]), "hazards_own_filter")

    def test_a_title_over_the_arguments(self):
        for how in ("short", "long"):
            with self.subTest(how=how):
                outcome = self.once([self.file("hazards_title"), how, "argument", ""], "512k", {"FIRST": "in the environment"})
                said = target.report(ARGUMENTS.cadastre, self.profile(outcome))["profile"]["command"]
                self.assertEqual([part for part in said if part], outcome.stdout.split())

    def test_the_counter_behind_the_clocks_is_taken_away(self):
        for how in ("strict", "strict-by-number", "counter", "counter-by-number"):
            with self.subTest(how=how):
                outcome = self.same([self.file("hazards_no_clock"), how])
                if outcome.status == 77:
                    self.skipTest(f"{how} is not to be had here")
                self.assertEqual(outcome.status, 5)
                if how.startswith("counter"):  # in strict mode the file cannot grow any more: what does not fit is counted
                    self.told(outcome, "hazards_no_clock")
                else:
                    self.assertGreater(target.report(ARGUMENTS.cadastre, self.profile(outcome))["totals"]["live_bytes"], 500300)

    def test_a_filter_inherited_that_kills_a_jvm(self):
        jails = [self.jail("kill"), self.jail("allow")]
        homes = [home for home in programs.jdk_homes() if programs.java_feature(home) >= 21]
        if not homes:
            self.skipTest("no JDK 21 or later")
        classes = os.path.join(self.scratch, "classes")
        os.mkdir(classes)
        subprocess.run([f"{homes[-1]}/bin/javac", "-d", classes, os.path.join(here, "Waiting.java")], check=True,
                       env=target.clean_environment())
        command = [f"{homes[-1]}/bin/java", *programs.SMALL_HEAP, "-cp", classes, "Waiting"]
        for jail in jails:
            with self.subTest(jail=jail[-1]):
                self.whole_names_and_stacks(self.same([*jail, *command]))

    def whole_names_and_stacks(self, outcome):
        self.assertEqual(outcome.status, 0, outcome)
        # By the other way to read: whole names of threads, and stacks that lie on the Java heap.
        profile = self.profile(outcome, "java")
        names = [name for _, _, name in target.printed_threads(target.run([ARGUMENTS.cadastre, "print", profile]).stdout)]
        self.assertIn("a thread with a name of more than fifteen characters", names)
        found = self.sites_with(target.report(ARGUMENTS.cadastre, profile), "Waiting.afterAWait")
        self.assertTrue([site for site in found if any("Waiting.whole" in (f["function"] or "") for f in site["frames"])], found)

    def test_callers_that_keep_to_no_convention(self):
        for case in ("misaligned", "floating_point"):
            self.case(case, program="hazards_abi")

    def test_mapping_calls_that_are_left_in_their_middle(self):
        for case in ("cancelled", "left"):
            self.case(case, program="hazards_abi")

    def test_a_handler_that_jumps_out_of_a_hook(self):
        outcome = self.same([self.file("hazards_jump")])
        report = target.report(ARGUMENTS.cadastre, self.profile(outcome, "hazards_jump"))
        live = sum(site["live_bytes"] for site in self.sites_with(report, "site_after"))
        self.assertGreater(live, 95 << 20)  # the last 100 MiB; none or few but for those after which the recorder is left behind
        mapped = target.report(ARGUMENTS.cadastre, self.profile(outcome, "hazards_jump"), "--metric", "mapped")
        self.assertEqual((mapped_bytes(mapped, "site_mapped"), mapped_bytes(mapped, "site_unmapped")), (32 << 20, 0))

    def test_setuid_programs_are_told_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        program = os.path.join(self.scratch, "setuid")
        shutil.copy(self.file("hazards_target"), program)
        os.chown(program, 1, 1)
        os.chmod(program, 0o6755)
        environment = target.clean_environment()
        outcomes = []
        for variables in ({}, target.preload_environment(ARGUMENTS.library, self.scratch, "1")):
            ran = subprocess.run([program, "nothing"], env={**environment, **variables}, capture_output=True, text=True, check=False,
                                 preexec_fn=lambda: (os.setgid(NOBODY), os.setuid(NOBODY)), timeout=60)
            # The loader itself says that it ignores a preload with a slash.
            said = [line for line in ran.stderr.splitlines() if "cannot be preloaded" not in line]
            outcomes.append((ran.returncode, ran.stdout, said))
        self.assertEqual(*outcomes)
        self.assertFalse([name for name in os.listdir(self.scratch) if name.endswith(".cad")])

    def test_static_programs_run_and_leave_nothing(self):
        self.same([self.file("hazards_static"), "nothing"])
        self.assertEqual(os.listdir(self.out), [])


class LiveFile(Hazard):
    def harmed(self, how):
        outcome = self.case("file_harmed", how, self.out)
        self.assertEqual(outcome.stdout, "")
        return outcome

    def test_cut_at_any_length(self):
        for how in ("emptied", "cut", "shortened", "refilled"):
            with self.subTest(how=how):
                profile = self.profile(self.harmed(how))
                report = target.run([ARGUMENTS.cadastre, "report", profile])
                self.assertIn(report.status, (0, 2))
                if report.status == 2:
                    self.assertEqual(report.stderr.count("\n"), 1, report)

    def test_cut_while_the_kernel_is_busy_for_the_program(self):
        for _ in range(3):
            self.case("file_cut_in_a_slow_call", self.out)

    def test_a_hole_in_it(self):
        self.harmed("holed")

    def test_overwritten(self):
        for _ in range(3):
            self.harmed("overwritten")

    def test_cut_where_every_allocation_is_recorded(self):
        """`> FILE` under two threads that are always about to touch it: without somebody who takes the SIGBUS most of them die."""
        for turn in range(20):
            target.remove(self.out)
            os.mkdir(self.out)
            environment = {**target.clean_environment(), "LD_PRELOAD": ARGUMENTS.library, "CADASTRE_OPTIONS": f"interval=1,out={self.out}"}
            with subprocess.Popen([self.file("hazards_bus"), "busy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as process:
                self.assertEqual(process.stdout.readline(), "busy\n")
                (profile,) = target.profiles_of(self.out, process.pid)
                time.sleep(0.001 * turn)
                with open(profile, "w", encoding="utf-8"):
                    pass
                time.sleep(0.01)
                said, _ = process.communicate(timeout=60)
            self.assertEqual((process.returncode, said), (0, "at the end: default flags 0 mask\n"), f"turn {turn}")

    def test_sigbus_is_taken_only_at_many_touches_a_second(self):
        for interval, case, caught in (("1", "idle", 0), ("1", "caught", 1 << 6), ("512k", "caught", 0)):
            with self.subTest(interval=interval, case=case):
                said = self.once([self.file("hazards_bus"), case], interval)
                self.assertEqual((said.status, int(said.stdout.split()[1], 16)), (0, caught), said)

    def test_the_programs_own_action_for_sigbus(self):
        self.case("asks", program="hazards_bus")
        self.case("meets", program="hazards_bus", status=135)
        self.case("children", program="hazards_bus")

    def test_deleted(self):
        self.harmed("deleted")
        self.assertEqual(os.listdir(self.out), [])

    def test_tmpfs_cannot_be_frozen(self):
        """Where profiles live by default nobody can make a touch of the file wait: the kernel refuses to freeze a tmpfs."""
        import fcntl  # pylint: disable=import-outside-toplevel
        if os.geteuid() != 0 or not os.path.ismount("/dev/shm"):
            self.skipTest("not root, or no tmpfs at /dev/shm")
        with open("/proc/mounts", encoding="utf-8") as file:
            if not re.search(r"^\S+ /dev/shm tmpfs ", file.read(), re.M):
                self.skipTest("/dev/shm is no tmpfs")
        directory = os.open("/dev/shm", os.O_RDONLY)
        try:
            with self.assertRaises(OSError) as refused:
                fcntl.ioctl(directory, 0xC0045877, 0)  # FIFREEZE
                fcntl.ioctl(directory, 0xC0045878, 0)  # FITHAW
        finally:
            os.close(directory)
        self.assertIn(refused.exception.errno, (95, 22, 25, 1))


class Mappings(Hazard):
    def test_calls_that_fail_take_nothing_away(self):
        self.told(self.case("failing_unmap"))

    def test_an_unmap_that_nobody_saw(self):
        self.told(self.case("raw_unmap"))


class Libraries(Hazard):
    def copies(self, *names):
        def prepare():
            for name, source in zip(names, ("libhazards_first.so", "libhazards_second.so")):
                path = os.path.join(self.work, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.copy(self.file(source), path)
        return [os.path.join(self.work, name) for name in names], prepare

    def test_replaced_on_the_disk(self):
        paths, prepare = self.copies("lib.so", "other.so")
        document = self.told(self.case("library_replaced", *paths, prepare=prepare))
        self.assertFalse(self.sites_with(document, "site_second"), "named by the library that came later")
        frames = [f for site in document["sites"] for f in site["frames"] if f["library"] == paths[0]]
        self.assertTrue(frames, "the library that was there is not named")

    def test_unloaded(self):
        paths, prepare = self.copies("lib.so", "other.so")
        document = self.told(self.case("library_unloaded", *paths, prepare=prepare))
        for function in ("site_first", "site_second"):
            self.assertEqual(target.sum_sites(document, function)["live_count"], 100, function)

    def test_opened_and_closed_by_many_threads_at_once(self):
        paths, prepare = self.copies("lib.so", "other.so")
        for _ in range(8):
            self.case("library_storm", *paths, prepare=prepare)

    def test_odd_paths_and_no_path(self):
        paths, prepare = self.copies("a b\nc;d/lib.so", "other.so")
        document = self.told(self.case("odd_paths", *paths, prepare=prepare))
        self.assertEqual(target.sum_sites(document, "site_first")["live_count"], 100)

    def test_generated_code_has_its_name(self):
        outcome = self.case("generated_code")
        self.addCleanup(lambda: [os.unlink(f"/tmp/perf-{pid}.map") for pid in {outcome.pid} if os.path.exists(f"/tmp/perf-{pid}.map")])
        document = self.told(outcome)
        self.assertTrue(self.sites_with(document, "Generated.code"))


class Loader(Hazard):
    def test_an_ifunc_resolver_that_allocates(self):
        for binding in ("now", "lazy"):
            self.assertEqual(self.same([self.file(f"hazards_ifunc_{binding}")]).status, 0)
            self.assertGreater(target.report(ARGUMENTS.cadastre, self.profile(self.last()))["profile"]["samples"], 99)

    def last(self):
        """The process whose profile is in self.out."""
        names = os.listdir(self.out)
        self.assertEqual(len(names), 1)
        return target.Outcome(0, "", "", int(names[0].split("-")[-2]))

    def test_a_program_with_half_of_a_malloc_family(self):
        self.same([self.file("hazards_own_malloc")])
        warnings = target.report(ARGUMENTS.cadastre, self.profile(self.last()))["warnings"]
        self.assertTrue([w for w in warnings if "serves malloc before Cadastre" in w], warnings)

    def test_wrappers_of_a_part_of_the_family(self):
        wrappers = [self.file("libhazards_wraps_malloc.so"), self.file("libhazards_wraps_malloc_free.so"),
                    target.installed_library("libmemusage.so")]
        commands = [["/usr/bin/perl", "-e", "my @a = map { 'x' x 1000 } 1..300; print scalar(@a)"],
                    [os.path.join(ARGUMENTS.programs, "h07_aligned_family.bin")], [os.path.join(ARGUMENTS.programs, "h08_new_family.bin")]]
        for wrapper in wrappers:
            for command in commands:
                if wrapper and os.path.exists(command[0]):
                    with self.subTest(wrapper=wrapper, command=command[0]):
                        # memusage prints its own statistics, in which our hooks' calls are callers.
                        bare = self.once(command, last=wrapper)
                        recorded = self.once(command, "1", last=wrapper)
                        self.assertEqual((recorded.status, recorded.stdout), (bare.status, bare.stdout), recorded.stderr[-500:])
                        self.assertTrue(os.listdir(self.out))

    def test_allocators_that_check_who_gives_back_what(self):
        for name in ("libtcmalloc_minimal_debug.so.4", "libtcmalloc_debug.so.4"):
            library = target.installed_library(name)
            if not library:
                self.skipTest(f"{name} is not installed")
            for program in ("h07_aligned_family.bin", "h08_new_family.bin"):
                with self.subTest(library=name, program=program):
                    self.same([os.path.join(ARGUMENTS.programs, program)], last=library,
                              normalise=lambda text: re.sub(r"0x[0-9a-f]+", "ADDRESS", text))

    def test_libraries_that_allocate_in_what_a_profiler_calls(self):
        meddler = self.file("libhazards_meddler.so")
        for place in ("first", "last"):
            with self.subTest(place=place):
                for name in ("nothing", "thread_destructors", "children"):
                    self.told(self.case(name, **{place: meddler}))

    def test_an_auditor(self):
        self.told(self.case("nothing", environment={"LD_AUDIT": self.file("libhazards_audit.so")}))

    def test_address_sanitizer(self):
        program = self.file("hazards_asan")
        self.same([program, "nothing"])
        # The program's own error is found as it is bare.
        def places(text):
            return re.sub(r"0x[0-9a-f]+|==\d+==|\(\S+\+|/\S+|T\d+|=+", "", "\n".join(text.splitlines()[:3]))
        self.same([program, "no such case", "at all"], normalise=places)

    def test_sanitizers_in_libraries_of_their_own(self):
        """They serve malloc behind us, are not ready when we are called first, and check who frees what: nothing is recorded."""
        options = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        for program in ("hazards_shared_asan", "hazards_shared_tsan"):
            for case in ("nothing", "thread_destructors"):
                with self.subTest(program=program, case=case):
                    outcome = self.case(case, program=program, environment=options)
                    self.assertEqual(target.profiles_of(self.out, outcome.pid), [])
        # Without that option AddressSanitizer ends a program that has a preload: `run` starts it without.
        program = self.file("hazards_shared_asan")
        ran = target.run([ARGUMENTS.cadastre, "run", "--out", self.out, "--", program, "nothing"])
        self.assertEqual((ran.status, ran.stdout), (0, target.run([program, "nothing"]).stdout), ran)
        self.assertIn("the program runs without being recorded", ran.stderr)

    def test_the_loaders_own_tools(self):
        def places(text):
            lines = [line for line in text.splitlines() if "libcadastre" not in line]
            return re.sub(r"0x[0-9a-f]+", "ADDRESS", "\n".join(lines))
        loader = "/lib64/ld-linux-x86-64.so.2"
        libc = "/lib/x86_64-linux-gnu/libc.so.6"
        commands = [[loader, "--list", self.file("hazards_target")], [loader, "--verify", self.file("hazards_target")]]
        if os.access(libc, os.X_OK):
            commands.append([libc])
        for command in commands:
            with self.subTest(command=command):
                self.same(command, normalise=places)
        self.same([self.file("hazards_target"), "nothing"], environment={"LD_TRACE_LOADED_OBJECTS": "1"}, normalise=places)


def main():
    global ARGUMENTS

    def more(parser):
        parser.add_argument("--files", required=True, help="folder of the programs and libraries of this test")
        parser.add_argument("--programs", required=True, help="folder of the trap programs")
        parser.add_argument("--missing", default="the compiler cannot", help="why one of these was not built")
    ARGUMENTS, argv = target.test_arguments("library", "cadastre", more=more)
    unittest.main(argv=argv, verbosity=2)


if __name__ == "__main__":
    main()
