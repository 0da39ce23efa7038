#!/usr/bin/env python3
"""Memory in a shared cache: 70, 25 and 5 by who created it; 70 and 30 by who holds it, each with its method.

Exists because both are true and only one of them finds the team that can free it. The slack is the vectors, which grow beside the
entries, and the C++ run time's own block, which is the platform's.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

UNIT = 100
UNIT_BYTES = UNIT * 10000
SLACK = 0.01
RULES = """prefix,module,team,kind
billing::,billing,payments,
search::,search,discovery,
auth::,auth,identity,
platform::Cache::,platform,core,container
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    scratch = target.scratch_directory("shared-cache")
    failed = 0

    def expect(condition, message):
        nonlocal failed
        if not condition:
            failed = 1
            print("FAILED:", message)

    def expect_units(rows, key, wanted):
        for name, units in wanted.items():
            found = sum(row["live_bytes"] for row in rows if row[key] == name) / UNIT_BYTES
            expect(units <= found <= units * (1 + SLACK), f"{key} {name}: {found} units, not {units}")

    try:
        rules = os.path.join(scratch, "owners.csv")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(RULES)
        ran = target.run([arguments.program, str(UNIT)], target.preload_environment(arguments.library, scratch, "1"))
        profiles = target.profiles_of(scratch, ran.pid)
        expect(ran.status == 0 and len(profiles) == 1, f"status {ran.status}, {len(profiles)} profiles: {ran.stderr}")
        document = target.report(arguments.cadastre, profiles[0], "--rules", rules)
        expect_units(document["modules"], "module", {"billing": 70, "search": 25, "auth": 5})
        expect("by allocation site" in document["profile"]["method"], document["profile"]["method"])
        held = target.report(arguments.cadastre, profiles[0], "--rules", rules, "--by", "holder")
        expect_units(held["holders"], "holder", {"platform": 70, "billing": 30})
        expect("by holder" in held["profile"]["method"], held["profile"]["method"])
        shared = document["shared"]
        expect([row["holder"] for row in shared] == ["platform"], f"shared: {shared}")
        expect_units(shared[0]["created_by"], "module", {"billing": 40, "search": 25, "auth": 5})
        text = target.run([arguments.cadastre, "report", profiles[0], "--rules", rules]).stdout
        expect("in platform: " in text and "created by billing 38." in text, f"the text does not say who created it:\n{text}")
    finally:
        target.remove(scratch)
    sys.exit(failed)


if __name__ == "__main__":
    main()
