#!/usr/bin/env python3
"""Snapshots of a running program: the leak grows steadily, the cache levels off, the rest does not change.

Exists because verdicts on scripted numbers say nothing of profiles: copies of a live file, times of snapshots, names, owners. The leak
goes with the program's clock, so a snapshot that comes late is on the same line; nothing here depends on how fast the machine is.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

SNAPSHOTS = 9
RULES = "prefix,module,team\nleaky::,leaky,payments\ncache::,cache,search\nlevel::,level,core\n"
MIB = 1 << 20


def main():
    parser = argparse.ArgumentParser()
    for name in ("cadastre", "library", "program"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    problems = []
    scratch = target.scratch_directory("growth")

    def expect(condition, message):
        if not condition:
            problems.append(message)

    def cadastre(*words):
        return target.run([arguments.cadastre, *words], cwd=scratch)

    def recorded(interval):
        environment = target.clean_environment()
        environment.update(target.preload_environment(arguments.library, scratch, interval, extra="seed=7"))
        with subprocess.Popen([arguments.program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for number in range(SNAPSHOTS):
                time.sleep(0.1)  # what the leak leaks in; how long it really takes does not matter
                process.stdin.write(b"step\n")
                process.stdin.flush()
                expect(process.stdout.readline() == b"ok\n", "the program does not answer")
                taken = cadastre("snapshot", str(process.pid), "--label", f"s{number}")
                expect(taken.status == 0, f"snapshot {number}: {taken.stderr}")
            process.stdin.close()
            process.wait(timeout=60)
        return target.profiles_of(scratch, process.pid)[-1]

    def nightly():
        """The example of a nightly job, on a load that does the same each time, and then on one that holds more."""
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "nightly-example")
        environment = {"CADASTRE": os.path.abspath(arguments.cadastre), "RUNS": "2", "INTERVAL": "16k", "MAX_UNATTRIBUTED": "30"}

        def job(mode, megabytes):
            return target.run([script, mode, "--", arguments.program, str(megabytes)], environment, cwd=scratch)
        saved = job("save", 20)
        expect(saved.status == 0 and os.path.exists(os.path.join(scratch, "memory-baseline.csv")), f"nightly save: {saved}")
        same = job("check", 20)
        expect(same.status == 0 and "pass" in same.stdout, f"nightly check of the same load: {same}")
        for name in ("memory-junit.xml", "memory-summary.md"):
            expect(os.path.exists(os.path.join(scratch, name)), f"nightly check writes no {name}")
        more = job("check", 80)
        expect(more.status == 1 and re.search(r"FAIL .*module level \+[56]\d", more.stdout) and "level::Hold" in more.stdout, f"nightly check of a larger load: {more}")
        expect(target.run([script, "check"], environment, cwd=scratch).status == 2, "nightly without a load")
        # A line for the shell: the shell's own profile is not the one that is judged.
        line = target.run([script, "check", "--", f"cd . && {arguments.program} 20; true"], environment, cwd=scratch)
        expect(line.status == 0 and "module level" in line.stdout, f"nightly of a line for the shell: {line}")
        named = target.run([script, "check", "--", f"cd . && {arguments.program} 20; true"], {**environment, "EXE": "growth_*"}, cwd=scratch)
        expect(named.status == 0 and "module level" in named.stdout, f"nightly of a named program: {named}")
        for what, load, more in (("a load that fails", "exit 3; true", {}), ("no program of that name", "true; true", {"EXE": "nosuch"})):
            failed = target.run([script, "check", "--", load], {**environment, **more}, cwd=scratch)
            expect(failed.status == 2 and "nightly-example: " in failed.stderr, f"nightly, {what}: {failed}")
            expect(not os.path.exists(os.path.join(scratch, "memory-junit.xml")), f"nightly, {what}: what an earlier night said is still there")

    try:
        with open(os.path.join(scratch, "owners.csv"), "w", encoding="utf-8") as file:
            file.write(RULES)
        for interval in ("1", "16k"):
            profile = recorded(interval)
            snapshots = [f"{profile}@s{number}" for number in range(SNAPSHOTS)]
            ran = cadastre("diff", *snapshots, "--format", "json")
            expect(ran.status == 0, f"diff: exit {ran.status}: {ran.stderr}")
            document = json.loads(ran.stdout)
            rows = {row["module"]: row for row in document["modules"]}
            for module, verdict in (("leaky", "steady growth"), ("cache", "levelling off"), ("level", "no change")):
                row = rows[module]
                expect(row["verdict"] == verdict, f"interval {interval}: {module} is {row['verdict']}: {row['reason']}: {row['bytes']}")
            expect(document["one_process"] is True, "not one process")
            # 8 MiB a second. The last snapshot's delay behind its step is all that can be wrong.
            rate = rows["leaky"]["rate_bytes_per_hour"] or 0
            expect(0.5 < rate / (8 * MIB * 3600) < 1.5, f"interval {interval}: the leak leaks {rate / MIB / 3600:.2f} MiB/s")
            if interval == "1":
                expect(rows["level"]["delta_bytes"] == 0 and rows["level"]["cohort_bytes"] == rows["level"]["bytes"][0], f"level: {rows['level']}")
                expect(rows["cache"]["delta_bytes"] == 6 * MIB, f"the cache grew by {rows['cache']['delta_bytes']}")
                expect(all(row["delta_stderr"] == 0 for row in rows.values()), "an exact profile has errors")
            else:
                # What was there from the beginning cancels: its estimate has an error, its growth has none.
                expect(rows["level"]["stderr"][-1] > 0 and rows["level"]["delta_stderr"] == 0 and rows["level"]["delta_bytes"] == 0, f"level: {rows['level']}")
            site = document["sites"][0]
            expect(site["module"] == "leaky" and "leaky::Lose" in site["stack"], f"the first site: {site}")
            text = cadastre("diff", snapshots[0], snapshots[4], snapshots[-1])
            expect(text.status == 0 and "leaky" in text.stdout and "VERDICT" in text.stdout, f"text: {text}")
        nightly()
    finally:
        target.remove(scratch)
    target.finish(problems)


if __name__ == "__main__":
    main()
