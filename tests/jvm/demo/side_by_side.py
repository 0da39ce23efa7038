#!/usr/bin/env python3
"""Cadastre's owner table beside the program's own count: side_by_side.py REPORT.json PROGRAM_OUTPUT.

Prints one line per module that the program counts: what the report says with its standard error, what the program says, and how many
standard errors lie between. `vendor` has no owner, so it is looked for by its function among the unattributed sites.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import target  # noqa: E402

MIB = 1 << 20


def truths(text):
    """{module: (live bytes, blocks)} of the TRUTH lines."""
    found = re.findall(r"^TRUTH module=(\w+) live_bytes=(\d+) blocks=(\d+)$", text, re.M)
    return {module: (int(live), int(blocks)) for module, live, blocks in found}


def estimates(document):
    """{module: (team, live bytes, standard error)}, `vendor` included."""
    rows = {row["module"]: (row["team"], row["live_bytes"], row["live_bytes_stderr"]) for row in document["modules"]}
    sites = [site for site in document["sites"] if any(target.names_function(f["function"], "vendor_blob") for f in site["frames"])]
    owners = {site["module"] for site in sites}
    rows["vendor"] = (None if owners <= {None, "unattributed"} else str(owners), sum(site["live_bytes"] for site in sites),
                      sum(site["live_bytes_stderr"] ** 2 for site in sites) ** 0.5)
    return rows


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        truth = truths(file.read())
    found = estimates(document)
    print(f"{'MODULE':<24}{'TEAM':<12}{'CADASTRE':>22}{'PROGRAM':>14}{'DIFFERENCE':>20}")
    for module, (live, _) in sorted(truth.items(), key=lambda item: -item[1][0]):
        team, estimate, error = found.get(module, (None, 0, 0))
        name = module if module != "vendor" else "vendor (unattributed)"
        sigma = f"{(estimate - live) / error:+.1f} std errors" if error else f"{estimate - live:+d} B"
        shown = f"{estimate / MIB:.2f} ±{error / MIB:.2f} MiB"
        print(f"{name:<24}{team or '-':<12}{shown:>22}{live / MIB:>10.2f} MiB{sigma:>20}")


if __name__ == "__main__":
    main()
