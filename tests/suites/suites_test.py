#!/usr/bin/env python3
"""Other projects' own tests, bare and under the preload: the same tests pass, the same files come out, the same requests are answered.

Exists because these suites try what no test of ours would think of. Perl is not among them: Debian ships none of its core tests.

Without --suite a part of one suite, by the date, in less than a minute; with it all of that suite, at 512 KiB and at interval 1.
"""
import argparse
import datetime
import glob
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../preload"):
    sys.path.insert(0, os.path.join(here, folder))
import programs  # noqa: E402
import same_output  # noqa: E402
import target  # noqa: E402

PYTHON = "/usr/bin/python3"
SOURCE = None  # the project's own folder


def python_tests(*modules, match=()):
    """CPython's tests. Compared is the verdict of each test; one that differs by itself from run to run would have to be named here."""
    def suite(job):
        installed = os.path.exists(PYTHON) and target.run([PYTHON, "-c", f"import test.support, test.{modules[0]}"])
        if not installed or installed.status != 0:
            raise programs.Missing("CPython's own tests (libpython3.11-testsuite) are not installed")
        patterns = [option for pattern in match for option in ("-m", pattern)]
        outcome = target.run([PYTHON, "-m", "test", "-v", "--timeout", "600", *patterns, *modules], {"HOME": job.work, **job.environment},
                             cwd=job.work, timeout=1500)
        text = outcome.stdout + outcome.stderr
        # "test_x (test.test_y.Z.test_x) ... ok"; what the test itself prints may stand between the dots and the verdict.
        verdicts = re.findall(r"^(test\w+) \(([\w.]+)\)(?:\n[^\n]*)?? \.\.\. (?:.*?)\b(ok|FAIL|ERROR|skipped|expected failure)\b", text, re.M | re.S)
        ran = sum(int(n) for n in re.findall(r"^Ran (\d+) tests? in", text, re.M))
        if ran < 10:
            raise AssertionError(f"{modules}: only {ran} tests ran:\n{text[-3000:]}")
        job.stdout += "".join(sorted(f"{name} {where} {verdict}\n" for name, where, verdict in verdicts))
        job.stdout += f"{ran} tests\n"
        job.stdout += "".join(sorted(set(re.findall(r"^(?:FAIL|ERROR): .*$", text, re.M))))
        job.stdout += "".join(re.findall(r"^Result: .*$|^Tests result: .*$", text, re.M)) + f"\n[status {outcome.status}]\n"
        job.status = outcome.status
    return suite


def git_clone(job):
    git = programs.need("git")
    if target.run([git, "-C", SOURCE, "rev-parse", "--git-dir"]).status != 0:
        raise programs.Missing("the source is no git repository")
    shallow = target.run([git, "-C", SOURCE, "rev-parse", "--is-shallow-repository"]).stdout.strip() == "true"
    trusted = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    job.run(git, "clone", "-q", f"file://{SOURCE}", "clone", extra=trusted)
    for arguments in (["rev-parse", "HEAD"], ["ls-files", "-s"], ["fsck", "--strict"], ["status", "--porcelain"],
                      ["log", "--stat", "-n", "20"], ["count-objects", "-v"]):
        job.run(git, "-C", "clone", *arguments, extra=trusted)
    if shallow:
        print("the repository is a shallow one")


def gcc(job):
    """One of our own sources with a large command-line library in it: seconds of templates, 200 MB of the compiler's memory."""
    compiler = programs.need("g++")
    source = os.path.join(SOURCE, "report", "cli", "check.cc")
    job.run(compiler, "-std=gnu++20", "-O1", "-g1", f"-I{SOURCE}", '-DCADASTRE_VERSION="0"', "-c", source, "-o", "check.o", timeout=600)
    job.digest("check.o")


def gcc_small(job):
    compiler = programs.need("g++")
    source = os.path.join(SOURCE, "symbolizer", "demangle_rust.cc")
    job.run(compiler, "-std=gnu++20", "-O2", "-g1", f"-I{SOURCE}", "-c", source, "-o", "out.o", timeout=300)
    job.digest("out.o")


def tomcat(requests):
    def suite(job):
        ab = programs.need("ab")
        jar = ":".join(sorted(glob.glob("/usr/share/java/tomcat10-[a-z]*.jar")))
        if "tomcat10-catalina.jar" not in jar:
            raise programs.Missing("Tomcat (libtomcat10-java) is not installed")
        home = programs.jdk("any")
        subprocess.run([f"{home}/bin/javac", "-cp", jar, "-d", job.work, os.path.join(here, "Serve.java")], check=True,
                       stderr=subprocess.DEVNULL, env=target.clean_environment())
        port_file = os.path.join(job.work, "port")
        with subprocess.Popen([f"{home}/bin/java", *programs.SMALL_HEAP, "-cp", f"{job.work}:{jar}", "Serve", port_file],
                              env={**target.clean_environment(), **job.environment}, cwd=job.work, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
            try:
                programs.wait_until(lambda: server.poll() is not None or os.path.exists(port_file), "Tomcat does not start")
                if server.poll() is not None:
                    raise AssertionError(f"Tomcat does not start: {server.communicate()}")
                with open(port_file, encoding="utf-8") as file:
                    port = file.read()
                # Keep-alive and not: connections come and go, threads stay.
                for options in (["-k", "-c", "16"], ["-c", "8"]):
                    asked = target.run([ab, "-q", *options, "-n", str(requests // 2), f"http://127.0.0.1:{port}/page"], timeout=600)
                    job.stdout += "\n".join(re.findall(r"^(?:Complete requests|Failed requests|Non-2xx responses|HTML transferred):.*$",
                                                       asked.stdout, re.M)) + f"\n[status {asked.status}]\n"
                stdout, stderr = server.communicate(timeout=120)
            finally:
                if server.poll() is None:
                    server.kill()
        job.stdout += stdout.decode() + f"server ended with {server.returncode}\n"
        job.stderr += stderr.decode()
        if f"answered {requests}\n" not in job.stdout:
            raise AssertionError(f"Tomcat did not answer {requests} requests: {job.stdout}{job.stderr}")
    return suite


SUITES = {
    "python_threading": python_tests("test_threading"),
    "python_subprocess": python_tests("test_subprocess"),
    "python_multiprocessing": python_tests("test_multiprocessing_fork"),
    "python_ctypes": python_tests("test_ctypes"),
    "python_mmap": python_tests("test_mmap"),
    "redis_benchmark": lambda job: programs.redis(job, 60000),
    "git_clone": git_clone,
    "gcc": gcc,
    "tomcat": tomcat(10000),
}
# Each some ten seconds on an idle machine.
SLICES = [("python_mmap", python_tests("test_mmap")), ("tomcat", tomcat(2000)), ("python_ctypes", python_tests("test_ctypes")), ("git_clone", git_clone),
          ("gcc", gcc_small), ("python_threading", python_tests("test_threading", match=("*ThreadTests*", "*LockTests*")))]


def main():
    global SOURCE
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--source", required=True, help="the project's folder")
    parser.add_argument("--suite", choices=sorted(SUITES))
    parser.add_argument("--day", type=int, default=datetime.date.today().toordinal(), help="the slice of another day")
    parser.add_argument("--interval", help="one of the two")
    args = parser.parse_args()
    SOURCE = os.path.realpath(args.source)
    chosen = [(args.suite, SUITES[args.suite])] if args.suite else [SLICES[args.day % len(SLICES)]]
    intervals = [args.interval] if args.interval else ["512k", "1"] if args.suite else [["512k", "1"][args.day // len(SLICES) % 2]]
    problems = []
    for name, suite in chosen:
        for interval in intervals:
            try:
                problems += same_output.compare(name, suite, args.library, interval)
            except programs.Missing as missing:
                print(f"skipped: {name}: {missing}")
                sys.exit(target.SKIP)
    target.finish(problems)


if __name__ == "__main__":
    main()
