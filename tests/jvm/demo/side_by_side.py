#!/usr/bin/env python3
"""Cadastre's owner table beside the program's own count: side_by_side.py REPORT.json PROGRAM_OUTPUT.

Prints one line per module that the program counts: what the report says with its standard error, what the program says, and how many
standard errors lie between. Where the program knows two bounds (zlib does not tell its size to the byte), those are shown, and the
distance is to the nearer one. `geotiles` has no owner, so it is looked for by its function among the unattributed sites.
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import target  # noqa: E402

MIB = 1 << 20


def truths(text):
    """{module: (at least, at most)}, live bytes of the TRUTH lines."""
    found = re.findall(r"^TRUTH module=(\w+) at_least=(\d+) at_most=(\d+)$", text, re.M)
    return {module: (int(least), int(most)) for module, least, most in found}


def distance(estimate, truth):
    """Bytes from the nearest value that the truth allows."""
    least, most = truth
    return estimate - min(max(estimate, least), most)


def estimates(document):
    """{module: (team, live bytes, standard error)}, `geotiles` included."""
    rows = {row["module"]: (row["team"], row["live_bytes"], row["live_bytes_stderr"]) for row in document["modules"]}
    sites = [site for site in document["sites"] if any(target.names_function(f["function"], "geotiles_read") for f in site["frames"])]
    owners = {site["module"] for site in sites}
    rows["geotiles"] = (None if owners <= {None, "unattributed"} else str(owners), sum(site["live_bytes"] for site in sites),
                        sum(site["live_bytes_stderr"] ** 2 for site in sites) ** 0.5)
    return rows


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        truth = truths(file.read())
    found = estimates(document)
    print(f"{'MODULE':<25}{'TEAM':<11}{'CADASTRE':>18}{'PROGRAM':>19}{'DIFFERENCE':>18}")
    for module, (least, most) in sorted(truth.items(), key=lambda item: -item[1][0]):
        team, estimate, error = found.get(module, (None, 0, 0))
        name = module if module != "geotiles" else "geotiles (unattributed)"
        known = f"{least / MIB:.2f} MiB" if least == most else f"{least / MIB:.1f} to {most / MIB:.1f} MiB"
        off = distance(estimate, (least, most))
        if off == 0:
            judged = "none"
        else:
            judged = f"{off / error:+.1f} std errors" if error else f"{off:+d} B"
        shown = f"{estimate / MIB:.2f} ±{error / MIB:.2f} MiB"
        print(f"{name:<25}{team or '-':<11}{shown:>18}{known:>19}{judged:>18}")


if __name__ == "__main__":
    main()
