"""A recorded watch_target that a test steers through its standard input, and waiting for a condition instead of sleeping."""
import contextlib
import glob
import os
import select
import signal
import subprocess
import time

import target


def until(condition, what, timeout=60):
    """Waits for a true value and returns it; an error after `timeout` seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s for {what}")
        time.sleep(0.02)


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Steered:
    """COMMAND, which is or becomes a watch_target, recorded by the bare preload unless `environment` says otherwise. What it says on stderr goes
    into the file `stderr_path`, if that is given, so that nothing blocks."""

    def __init__(self, command, environment, stderr_path=None, **more):
        self.stderr_path = stderr_path
        with open(stderr_path, "w", encoding="utf-8") if stderr_path else contextlib.nullcontext() as err:
            if err:
                more["stderr"] = err
            self.process = subprocess.Popen(command, env={**target.clean_environment(), **environment}, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True, start_new_session=True, **more)

    def said(self):
        """On stderr, so far."""
        return read_text(self.stderr_path)

    def do(self, line):
        """Says a line and waits for the answer."""
        self.say(line)
        if not select.select([self.process.stdout], [], [], 120)[0]:
            raise AssertionError(f"{line}: no answer")
        answer = self.process.stdout.readline()
        if answer != "ok\n":
            raise AssertionError(f"{line}: answered {answer!r}")

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    @property
    def pid(self):
        return self.process.pid

    def end(self, line="end 0"):
        self.say(line)
        return self.wait()

    def wait(self, timeout=60):
        status = self.process.wait(timeout)
        self.close()
        return status

    def close(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass


def profiles_in(directory):
    return sorted(glob.glob(f"{glob.escape(directory)}/*.cad"))


def snapshots_of(profile, prefix=""):
    """Labels."""
    found = glob.glob(f"{glob.escape(profile)}@{glob.escape(prefix)}*")
    return sorted(path.rsplit("@", 1)[1] for path in found)
