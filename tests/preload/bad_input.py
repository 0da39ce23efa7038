#!/usr/bin/env python3
"""What bad input gets: one clear line, exit 2, nothing half-written; and a target that never notices.

Exists because each of these is met in practice: a rules file saved by a spreadsheet, a profile cut by a copy that ran out of disk, an
`out=` that does not exist in this container. Every case is a function below; all run, all failures are printed.
"""
import argparse
import os
import resource
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

MIB = 1 << 20
ADDRESS_SPACE = 1024 * MIB  # a reader that takes in a 1 GB line whole cannot live in this

arguments = None
problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)
    return condition


def cadastre(*command, limit=ADDRESS_SPACE):
    """Runs the command with little memory; returns (status, stdout, stderr, seconds)."""
    start = time.monotonic()
    process = subprocess.run([arguments.cadastre, *command], env=target.clean_environment(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return status, process.stdout.decode(errors="replace"), process.stderr.decode(errors="replace"), time.monotonic() - start


def expect_refused(what, names, outcome):
    """Exit 2, nothing on stdout, one line on stderr that names the file."""
    status, stdout, stderr, seconds = outcome
    expect(status == 2, f"{what}: exit {status}, not 2: {stderr[:300]}")
    expect(stdout == "", f"{what}: printed {stdout[:200]!r}")
    expect(stderr.count("\n") == 1 and len(stderr) < 600, f"{what}: not one line: {stderr[:600]!r}")
    for name in names:
        expect(name in stderr, f"{what}: does not say {name!r}: {stderr[:300]!r}")
    expect(seconds < 10, f"{what}: took {seconds:.1f} s")
    print(f"{what}: {stderr.strip()[:200]}")


def record(out, *options, command=None, preexec=None):
    """Runs the target (or COMMAND) recorded; returns (status, stdout, stderr, profile or None)."""
    env = target.clean_environment()
    env.update({"LD_PRELOAD": arguments.library, "CADASTRE_OPTIONS": ",".join(("interval=4096", f"out={out}") + options)})
    process = subprocess.Popen(command or [arguments.program, "2000:100", "100:10000"], env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=preexec)
    stdout, stderr = process.communicate(timeout=60)
    profiles = target.profiles_of(out, process.pid)
    return process.returncode, stdout.decode(), stderr.decode(), profiles[-1] if profiles else None


def bad_rules(scratch, profile):
    good_header = b"prefix,module,team\n"
    cases = {
        "missing column": (b"prefix,module\nbilling::,billing\n", ":1:"),
        "a row too short": (good_header + b"billing::,billing\n", ":2:"),
        "duplicate column in the header": (b"prefix,module,team,module\nbilling::,billing,payments,x\n", ":1:"),
        "unterminated quote": (good_header + b"a::,a,t\nbilling::,\"billing,payments\n", ":3:"),
        "NUL byte": (good_header + b"bill\0ing::,billing,payments\n", ":2:"),
        "not UTF-8": (good_header + b"caf\xe9::,billing,payments\n", ":2:"),
        "overlong UTF-8": (good_header + b"\xc0\xaf::,billing,payments\n", ":2:"),
        "UTF-16": ("prefix,module,team\n".encode("utf-16"), ":1:"),
        "empty": (b"", "empty"),
        "a module called unattributed": (good_header + b"a::,a,t\nb::,unattributed,t\n", ":3:"),
    }
    for what, (content, place) in cases.items():
        path = os.path.join(scratch, "bad-" + what.replace(" ", "-").lower() + ".csv")
        with open(path, "wb") as file:
            file.write(content)
        names = [path] + ([path + place] if place.startswith(":") else [])
        expect_refused(f"rules: {what}", names, cadastre("report", profile, "--rules", path))
    missing = os.path.join(scratch, "no-such.csv")
    expect_refused("rules: missing file", [missing], cadastre("report", profile, "--rules", missing))
    expect_refused("rules: a directory", [scratch], cadastre("report", profile, "--rules", scratch))


def rules_with_a_line_of_1_gb(scratch, profile):
    # A sparse file: the line is NUL bytes, all of them holes.
    sparse = os.path.join(scratch, "sparse.csv")
    with open(sparse, "wb") as file:
        file.write(b"prefix,module,team\nbilling::")
        file.truncate(1 << 30)
    expect_refused("rules: 1 GB of NUL bytes", [sparse + ":2:"], cadastre("report", profile, "--rules", sparse))

    # Letters, as they come: through a pipe, which also shows that the reader gives up early.
    pipe = os.path.join(scratch, "pipe.csv")
    os.mkfifo(pipe)
    written = []

    def feed():
        block, total = b"a" * MIB, 0
        try:
            with open(pipe, "wb", buffering=0) as file:
                file.write(b"prefix,module,team\n")
                while total < (1 << 30):
                    total += file.write(block)
        except BrokenPipeError:
            pass
        written.append(total)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    expect_refused("rules: a line of 1 GB", [pipe + ":2:"], cadastre("report", profile, "--rules", pipe))
    feeder.join(30)
    expect(written and written[0] < 64 * MIB, f"rules: a line of 1 GB: the reader took {written} bytes of it")


def bad_profiles(scratch, profile):
    missing = os.path.join(scratch, "no-such.cad")
    with open(profile, "rb") as file:
        head = file.read(3000)
    cases = {"empty": b"", "text": b"this is not a profile\n" * 1000, "half a header": head,
             "another version": head[:8] + b"\xff\xff\0\0" + head[12:] + bytes(100000)}
    pipe = os.path.join(scratch, "pipe.cad")
    os.mkfifo(pipe)
    paths = {"missing": missing, "a directory": scratch, "a pipe": pipe}
    for what, content in cases.items():
        paths[what] = os.path.join(scratch, "bad-" + what.replace(" ", "-") + ".cad")
        with open(paths[what], "wb") as file:
            file.write(content)
    for what, path in paths.items():
        out = os.path.join(scratch, "out.cad")
        for command in (["report", path], ["report", path, "--format", "json"], ["check", path, "--max-unattributed", "5%"],
                        ["print", path], ["symbolize", path, "-o", out], ["diff", path, path], ["rss", path], ["pause", path]):
            expect_refused(f"{command[0]}: profile {what}", [path], cadastre(*command))
        expect(not os.path.exists(out), f"symbolize: profile {what}: left {out} behind")


def cut_profiles(scratch, profile):
    """A profile cut anywhere gives what is whole in it, or is refused; the command does not crash. (Every 512th byte: damaged_profile_test.)"""
    with open(profile, "rb") as file:
        content = file.read()
    path = os.path.join(scratch, "cut.cad")
    cuts = [len(content) * i // 24 for i in range(24)] + [4095, 4096, 4097, len(content) - 1]
    for cut in cuts:
        with open(path, "wb") as file:
            file.write(content[:cut])
        status, stdout, stderr, _ = cadastre("report", path)
        if expect(status in (0, 2), f"cut at {cut}: exit {status}: {stderr[:200]}"):
            expect(status == 2 or cut >= 4096, f"cut at {cut}: reported without a whole header")
            expect(status == 0 or stderr.count("\n") == 1, f"cut at {cut}: {stderr[:300]!r}")
            expect(status == 2 or "is cut at" in stdout.splitlines()[0], f"cut at {cut} of {len(content)}: does not say first that it is cut")
        expect_refused(f"check: cut at {cut}", [path], cadastre("check", path, "--max-unattributed", "100"))


def unwritable_directories(scratch, profile):
    bare = target.run(["/bin/sh", "-c", "echo out; echo err >&2; exit 9"])
    file = os.path.join(scratch, "file")
    with open(file, "wb"):
        pass
    for out in (os.path.join(scratch, "no/such/dir"), file, "/proc", "relative/no/such"):
        for interval in ("interval=1", "interval=512k"):
            status, stdout, stderr, _ = record(out, interval, command=["/bin/sh", "-c", "echo out; echo err >&2; exit 9"])
            what = f"out={out} {interval}"
            expect((status, stdout, stderr) == (bare.status, bare.stdout, bare.stderr), f"{what}: target changed: {status} {stdout!r} {stderr!r}")
        told = target.run([arguments.cadastre, "doctor"], {"CADASTRE_OPTIONS": f"out={out}"})
        expect(told.status == 1 and "FAULT" in told.stdout and out in told.stdout, f"doctor: out={out}: {told.status} {told.stdout!r}")
    # `cadastre run` is asked for a profile, so it says no before the program starts.
    for out in (os.path.join(scratch, "no/such/dir"), file, "/proc"):
        expect_refused(f"run: --out {out}", [out], cadastre("run", "--out", out, "--", "/bin/echo", "started"))
    out = os.path.join(scratch, "no/such/dir/out.cad")
    expect_refused("symbolize: unwritable directory", [out], cadastre("symbolize", profile, "-o", out))


def full_disk(scratch, profile):
    mount = os.path.join(scratch, "full")
    os.mkdir(mount)
    for kib in (4, 64, 512):
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", mount], capture_output=True, check=False)
        if made.returncode != 0:
            print(f"skipped: a full disk: {made.stderr.decode().strip() or 'cannot mount a tmpfs'}")
            return
        try:
            status, stdout, stderr, left = record(mount, "interval=1")
            expect((status, stdout) == (0, ""), f"tmpfs of {kib} KiB: target ended with {status}: {stderr!r}")
            expect(stderr == "", f"tmpfs of {kib} KiB: stderr {stderr!r}")
            ran = target.run([arguments.cadastre, "run", "--out", mount, "--interval", "1", "--", arguments.program, "2000:100"])
            expect(ran.status == 0 and ("cadastre: no profile: no space " in ran.stderr or "AT THE PEAK" in ran.stderr or "unusable" in ran.stderr),
                   f"tmpfs of {kib} KiB: run says nothing of the profile: {ran.stderr!r}")
            if left:
                code, report, error, _ = cadastre("report", left)
                expect(code in (0, 2), f"tmpfs of {kib} KiB: report ended with {code}: {error}")
                print(f"tmpfs of {kib} KiB: {(report or error).splitlines()[0][:150]}")
            full = os.path.join(mount, "filler")
            with open(full, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
            out = os.path.join(mount, "symbolized.cad")
            before = sorted(os.listdir(mount))
            expect_refused(f"symbolize: onto a full tmpfs of {kib} KiB", [out], cadastre("symbolize", profile, "-o", out))
            expect(sorted(os.listdir(mount)) == before, f"symbolize: left {os.listdir(mount)} on a full disk")
        finally:
            subprocess.run(["umount", "-l", mount], check=False)


# A recorded shell whose children allocate: each of them, and the shell itself, would have its own reason to complain.
FAMILY = ["/bin/sh", "-c", "for i in 1 2 3; do /bin/echo $i; /bin/ls /no/such/$i; done; exit 4"]


def limits_that_leave_no_room(scratch, _):
    """The target and its children say what they say without us; `run` and `doctor` say what was in the way."""
    bare = target.run(FAMILY)
    cases = [("ulimit -f", resource.RLIMIT_FSIZE, n) for n in (0, 1024, 4096, 65536)]
    cases += [("ulimit -v", resource.RLIMIT_AS, n) for n in (12 * MIB, 15 * MIB)]
    cases += [("ulimit -d", resource.RLIMIT_DATA, n) for n in (6 * MIB, 15 * MIB)]
    flags = {resource.RLIMIT_FSIZE: ("-f", 512), resource.RLIMIT_AS: ("-v", 1024), resource.RLIMIT_DATA: ("-d", 1024)}
    for name, which, limit in cases:
        out = os.path.join(scratch, f"{name[-1]}{limit}")
        os.mkdir(out)
        what = f"{name} {limit}"

        def preexec(w=which, n=limit):
            resource.setrlimit(w, (n, n))

        status, stdout, stderr, _ = record(out, "interval=1", command=FAMILY, preexec=preexec)
        expect((status, stdout, stderr) == (bare.status, bare.stdout, bare.stderr), f"{what}: target changed: {status} {stdout!r} {stderr!r}")
        expect(not os.listdir(out), f"{what}: left {os.listdir(out)}")
        # The limit is set inside, so that the command itself has room.
        letter, unit = flags[which]
        flag = f"{letter} {limit // unit}"
        ran = target.run([arguments.cadastre, "run", "--out", out, "--interval", "1", "--", "/bin/bash", "-c",
                          f"ulimit {flag}; exec /bin/sh -c '{FAMILY[2]}'"])
        lines = [line for line in ran.stderr.splitlines() if line.startswith("cadastre: ")]
        expect(ran.status == bare.status and ran.stdout == bare.stdout, f"{what}: run: {ran.status} {ran.stdout!r}")
        expect(sum(name in line and "no room for the profile" in line for line in lines) == 1, f"{what}: run says {lines}")
        expect(not [n for n in os.listdir(out) if n.endswith(".why")], f"{what}: run left {os.listdir(out)}")
        if which == resource.RLIMIT_FSIZE:
            told = subprocess.run([arguments.cadastre, "doctor"], stdout=subprocess.PIPE, preexec_fn=preexec, check=False, text=True,
                                  env={**target.clean_environment(), "CADASTRE_OPTIONS": f"out={out}"}, timeout=60)
            expect(told.returncode == 1 and f"FAULT   file size limit ({name})" in told.stdout, f"{what}: doctor: {told.stdout!r}")
    # A small address space gets a small profile, and so does little data: most of it is still the program's.
    for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        out = os.path.join(scratch, f"small{which}")
        os.mkdir(out)
        status, stdout, stderr, profile = record(out, "interval=1", preexec=lambda w=which: resource.setrlimit(w, (100 * MIB, 100 * MIB)))
        expect((status, stdout, stderr) == (0, "", "") and profile, f"{flags[which][0]} of 100 MiB: {status} {stderr!r} {profile}")
    for interval in ("interval=512k", "interval=1"):
        status, stdout, stderr, profile = record(out, interval, command=[arguments.program, "1:40000000"], preexec=lambda: resource.setrlimit(resource.RLIMIT_DATA, (100 * MIB, 100 * MIB)))
        expect((status, stdout, stderr) == (0, "", "") and profile, f"ulimit -d of 100 MiB, {interval}: {status} {stderr!r} {profile}")


def bad_options(scratch, _):
    for option in ("nosuch=1", "interval=abc", "memory=-5", "=", "interval=", "seed=x", "mode=999", "expect"):
        out = os.path.join(scratch, "options")
        os.makedirs(out, exist_ok=True)
        status, stdout, stderr, _ = record(out, option)
        expect((status, stdout) == (0, ""), f"option {option}: target ended with {status}")
        expect(stderr.count("\n") == 1 and stderr.startswith("cadastre: "), f"option {option}: not one warning: {stderr!r}")
    # Once, not once in each process; and not by a program that is not meant.
    bare = target.run(FAMILY)
    for option, times in (("nosuch=1", 1), ("nosuch=1,exe=java", 0), ("nosuch=1,exe=ls", 3)):
        status, stdout, stderr, _ = record(out, option, command=FAMILY)
        ours = [line for line in stderr.splitlines() if line.startswith("cadastre: ")]
        others = "".join(line + "\n" for line in stderr.splitlines() if not line.startswith("cadastre: "))
        expect((status, stdout, others) == (bare.status, bare.stdout, bare.stderr), f"option {option}: target changed: {status} {stderr!r}")
        expect(len(ours) == times, f"option {option}: said {ours}")


def bad_usage(scratch, profile):
    for command in (["nosuchcommand"], ["report"], ["report", profile, "--nosuch"], ["check", profile, "--max-unattributed", "x"],
                    ["run"], ["report", profile, "--format", "nosuch"], ["report", profile, "--metric", "nosuch"], ["symbolize", profile]):
        status, stdout, stderr, _ = cadastre(*command)
        expect(status == 2, f"cadastre {' '.join(command)}: exit {status}, not 2")
        expect(stdout == "" and stderr.strip(), f"cadastre {' '.join(command)}: stdout {stdout[:100]!r}, stderr {stderr[:100]!r}")
    for status, command in ((127, ["/no/such/program"]), (126, [scratch])):
        got, _, stderr, _ = cadastre("run", "--", *command)
        expect(got == status, f"cadastre run -- {command[0]}: exit {got}, a shell says {status}: {stderr[:200]}")


def main():
    global arguments
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--program", required=True, help="known_live")
    arguments = parser.parse_args()
    scratch = target.scratch_directory("bad-input")
    try:
        status, _, stderr, profile = record(scratch, "memory=1m")
        if not expect(status == 0 and profile, f"the good run: {status} {stderr}"):
            target.finish(problems)
        for case in (bad_rules, rules_with_a_line_of_1_gb, bad_profiles, cut_profiles, unwritable_directories, full_disk,
                     limits_that_leave_no_room, bad_options, bad_usage):
            try:
                case(scratch, profile)
            except Exception as error:  # one broken case must not hide the others
                problems.append(f"{case.__name__}: {error!r}")
    finally:
        target.remove(scratch)
    target.finish(problems)


if __name__ == "__main__":
    main()
