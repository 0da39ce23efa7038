#!/usr/bin/env python3
"""`cadastre report`: what it knows of the past from the snapshots beside a profile: SINCE and VERDICT.

Exists because "2 GiB" says nothing and "+1.9 GiB since 10:20, steady growth" says whom to call; and because a column that is made up where
nothing is known is worse than none. Every case is a function below; all run, all failures are printed.
"""
import csv
import io
import json
import os

from growth_cases import WEIGHT, cadastre, compose, expect, path_of, refused, run_all, write


def series(points, name="pay.cad", end=None):
    """Snapshots at 1 h, 2 h, ...; billing grows by 100 samples (50 MiB) an hour, search holds 300."""
    for hour in range(1, points):
        compose(f"{name}@{hour}:00", [("index", 300), ("invoice", 100 * hour)], uptime=3600 * hour, snapshot=f"{hour}:00")
    return compose(name, [("index", 300), ("invoice", 100 * points)], uptime=3600 * (end or points))


def report(*words):
    status, stdout, stderr = cadastre("report", *words)
    expect(status == 0, f"report {words}: exit {status}, {stderr}")
    return stdout


def document_of(*words):
    document = json.loads(report(*words, "--format", "json"))
    return document, {row["module"]: row for row in document["modules"]}


def line_of(text, module):
    return next(line for line in text.splitlines() if line.startswith(module))


def without_snapshots_nothing_is_made_up():
    compose("pay.cad", [("index", 300), ("invoice", 400)])
    text = report("pay.cad")
    expect("SINCE" not in text and "VERDICT" not in text and "next: cadastre diff" not in text, f"columns of nothing:\n{text}")
    document, rows = document_of("pay.cad")
    expect(document["since"] is None and rows["billing"]["since_bytes"] is None and rows["billing"]["verdict"] is None, f"JSON: {rows['billing']}")
    refused("--since without snapshots", ["report", "pay.cad", "--since", "10:20"], "no earlier snapshot of that label; it has none")


def one_snapshot_gives_growth_and_no_verdict():
    series(2)
    text = report("pay.cad")
    expect("SINCE 1:00" in text and "VERDICT" not in text, f"one snapshot:\n{text}")
    expect("+50 MiB ±5" in line_of(text, "billing") and " 0 B" in line_of(text, "search"), f"growth:\n{text}")
    expect("next: cadastre diff pay.cad@1:00 pay.cad --by site" in text, f"where to go on:\n{text}")
    document, rows = document_of("pay.cad")
    expect(rows["billing"]["since_bytes"] == 100 * WEIGHT and rows["billing"]["verdict"] is None, f"JSON: {rows['billing']}")
    expect(document["since"]["label"] == "1:00" and document["since"]["snapshots"] == 2, f"since: {document['since']}")


def three_and_more_give_a_verdict():
    series(8)
    text = report("pay.cad")
    expect("VERDICT" in text and "steady growth, 50" in line_of(text, "billing") and "no change" in line_of(text, "search"), f"verdicts:\n{text}")
    expect(all(len(line) <= 110 for line in text.splitlines()), f"too wide:\n{text}")
    document, rows = document_of("pay.cad")
    expect(rows["billing"]["verdict"] == "steady growth" and abs(rows["billing"]["rate_bytes_per_hour"] - 100 * WEIGHT) < 0.1 * WEIGHT, f"{rows['billing']}")
    expect(rows["billing"]["reason"] and document["since"]["snapshots"] == 8, f"{document['since']}")
    teams = {row["team"]: row for row in document["teams"]}
    expect(teams["payments"]["verdict"] == "steady growth" and teams["discovery"]["verdict"] == "no change", f"teams: {teams}")
    expect("steady growth" in line_of(report("pay.cad", "--by", "team"), "payments"), "by team")
    rows = {row["module"]: row for row in csv.DictReader(io.StringIO(report("pay.cad", "--format", "csv")))}
    expect(rows["billing"]["verdict"] == "steady growth" and rows["billing"]["since_bytes"] == str(700 * WEIGHT), f"CSV: {rows['billing']}")
    expect(rows["unattributed"]["since_bytes"] in ("", "0"), f"CSV: {rows['unattributed']}")
    text = report("pay.cad", "--format", "markdown")
    expect("| since 1:00 | verdict |" in text and "| steady growth, 50" in text, f"markdown:\n{text}")
    # It says what diff says.
    status, stdout, _ = cadastre("diff", *[f"pay.cad@{hour}:00" for hour in range(1, 8)], "pay.cad", "--format", "json")
    diff = {row["module"]: row for row in json.loads(stdout)["modules"]}["billing"]
    expect(status == 0 and (diff["verdict"], diff["delta_bytes"]) == ("steady growth", 700 * WEIGHT), f"diff: {diff}")
    expect("SINCE" not in report("pay.cad", "--since", "none") and "SINCE" not in report("pay.cad", "--metric", "count"), "not asked for")
    expect("SINCE" not in report("pay.cad", "--by", "thread"), "by thread nothing is known")
    refused("--since with another metric", ["report", "pay.cad", "--since", "1:00", "--metric", "allocated"], "--metric allocated")


def only_what_was_before_counts():
    series(6)
    document, rows = document_of("pay.cad@4:00")
    expect(document["since"]["snapshots"] == 4 and rows["billing"]["since_bytes"] == 300 * WEIGHT, f"{document['since']} {rows['billing']}")
    expect(document_of("pay.cad@1:00")[0]["since"] is None, "the first has no past")
    document, rows = document_of("pay.cad", "--since", "3:00")
    expect(document["since"]["label"] == "3:00" and rows["billing"]["since_bytes"] == 300 * WEIGHT, f"--since: {document['since']}")
    refused("--since what is later", ["report", "pay.cad@2:00", "--since", "4:00"], "it has 1:00")
    # The peak was chosen for its height; a process that had this file before is another one.
    for name, pid in (("pay.cad@peak", 4242), ("pay.cad@other", 77)):
        compose(name, [("index", 9000)], uptime=1800, snapshot=name.split("@")[1], pid=pid)
    expect(document_of("pay.cad")[0]["since"] == {"label": "1:00", "path": "pay.cad@1:00", "time": document["since"]["time"].replace("03:", "01:"), "snapshots": 6}, "strangers count")
    # Cold: what start-up took is not growth.
    compose("pay.cad@cold", [("index", 10)], uptime=60, snapshot="cold")
    os.utime(path_of("pay.cad@1:00"))  # copied: files' times say nothing
    expect(document_of("pay.cad")[0]["since"]["label"] == "1:00", "counted from a cold start")
    expect(document_of("pay.cad", "--since", "cold")[0]["since"]["label"] == "cold", "a cold start was asked for")


def damage_is_told_and_many_are_thinned():
    series(40)
    document, rows = document_of("pay.cad")
    expect(document["since"]["snapshots"] == 12 and rows["billing"]["verdict"] == "steady growth", f"40 snapshots: {document['since']}")
    expect(document["since"]["label"] == "4:00", f"from {document['since']}: one hour of forty is cold")
    series(4, name="cut.cad")
    with open(path_of("cut.cad@2:00"), "r+b") as file:
        file.truncate(20000)
    write("cut.cad@2:00.html", "an export")
    document, rows = document_of("cut.cad")
    expect(rows["billing"]["since_bytes"] == 300 * WEIGHT and document["since"]["snapshots"] == 3, f"damaged: {document['since']}")
    expect(len([warning for warning in document["warnings"] if "is left out" in warning]) == 1 and any("2:00 is left out: " in warning for warning in document["warnings"]),
           f"warnings: {document['warnings']}")


if __name__ == "__main__":
    run_all("since", (without_snapshots_nothing_is_made_up, one_snapshot_gives_growth_and_no_verdict, three_and_more_give_a_verdict,
                      only_what_was_before_counts, damage_is_told_and_many_are_thinned))
