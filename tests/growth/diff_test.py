#!/usr/bin/env python3
"""`cadastre diff`: growth by module, team and site with its error, across snapshots, processes and builds.

Exists because a difference without an error, or with that of two independent estimates, sends people after noise. Every case is a function
below; all run, all failures are printed.
"""
import csv
import io
import json
import math

from growth_cases import SITES, WEIGHT, cadastre, compose, expect, refused, run_all

SAMPLE_ERROR = math.sqrt(WEIGHT * (WEIGHT - 64))


def diff(*words):
    status, stdout, stderr = cadastre("diff", *words, "--format", "json")
    expect(status == 0, f"diff {words}: exit {status}, {stderr}")
    document = json.loads(stdout)
    return document, {row["module"]: row for row in document["modules"]}


def what_lives_in_both_cancels():
    before = [("invoice", 2000), ("index", 300)]
    compose("pay.cad", before + [("invoice", 40, 4000)], uptime=7200)
    compose("pay.cad@early", before, snapshot="early")
    document, rows = diff("pay.cad@early", "pay.cad")
    billing = rows["billing"]
    expect(billing["delta_bytes"] == 40 * WEIGHT, f"grew by {billing['delta_bytes']}")
    # 40 samples are in one of both alone: sum of w(w-S).
    expect(abs(billing["delta_stderr"] - math.sqrt(40) * SAMPLE_ERROR) < 2, f"error {billing['delta_stderr']}")
    expect(abs(billing["stderr"][1] - math.sqrt(2040) * SAMPLE_ERROR) < 2, f"error of the level {billing['stderr']}")
    expect(rows["search"]["delta_bytes"] == 0 and rows["search"]["delta_stderr"] == 0, f"search: {rows['search']}")
    expect(billing["cohort_bytes"] == 2000 * WEIGHT, f"cohort {billing['cohort_bytes']}")
    expect(billing["verdict"] is None and document["schema"] == "cadastre.diff/1" and document["one_process"], "two snapshots have a verdict")
    expect([moment["label"] for moment in document["snapshots"]] == ["pay.cad@early", "pay.cad"], f"labels {document['snapshots']}")
    # By uptime, and as text.
    status, stdout, _ = cadastre("diff", "pay.cad@1h", "pay.cad")
    expect(status == 0 and "+20 MiB ±3" in stdout and "billing" in stdout and "com.acme.billing.Invoice.add" in stdout, f"text:\n{stdout}")


def of_two_processes_nothing_cancels():
    compose("a.cad", [("invoice", 2000)])
    compose("b.cad", [("invoice", 2040)], pid=4243, started=86400)
    document, rows = diff("a.cad", "b.cad")
    expect(abs(rows["billing"]["delta_stderr"] - math.sqrt(4040) * SAMPLE_ERROR) < 2, f"error {rows['billing']['delta_stderr']}")
    expect(rows["billing"]["cohort_bytes"] is None and not document["one_process"], "a cohort across processes")
    expect(document["warnings"] == [], f"warnings {document['warnings']}")


def sites_are_the_same_across_builds():
    sites = dict(SITES)
    sites["lambda"] = "libc+100 java:com.acme.billing.Shop.lambda$add${n}:7"
    sites["hidden"] = "libc+100 java:com.acme.billing.Shop$$Lambda${n}/0x0000{n}c0ffee.run"
    sites["proxy"] = "libc+100 java:jdk.proxy{n}.$Proxy{n}.call java:com.acme.billing.Shop.call"
    sites["cglib"] = "libc+100 java:com.acme.billing.Shop$$EnhancerBySpringCGLIB$$1a{n}b.add"
    sites["buddy"] = "libc+100 java:com.acme.billing.Shop$ByteBuddy$aB{n}.add"
    sites["reflected"] = "libc+100 java:jdk.internal.reflect.GeneratedMethodAccessor{n}.invoke java:com.acme.billing.Shop.reflect"

    def of_build(number):
        return {name: frames.replace("{n}", str(number)) for name, frames in sites.items()}
    samples = [(name, 50) for name in sites if name != "nobody"]
    compose("a.cad", samples, sites=of_build(3), line=10)
    compose("b.cad", samples, sites=of_build(17), pid=4300, started=90000, line=88, version="4")
    document, _ = diff("a.cad", "b.cad")
    expect(len(document["sites"]) == len(samples), f"{len(document['sites'])} sites, not {len(samples)}")
    for site in document["sites"]:
        expect(site["delta_bytes"] == 0 and site["change"] is None, f"not the same site: {site}")
    # One that is new and one that is gone.
    compose("c.cad", [("invoice", 50), ("nobody", 70)], pid=4301, started=95000)
    compose("d.cad", [("invoice", 50), ("table", 20)], pid=4302, started=99000)
    document, rows = diff("c.cad", "d.cad")
    changes = {site["module"]: site["change"] for site in document["sites"]}
    expect(changes == {"billing": None, "native": "new", "unattributed": "gone"}, f"changes {changes}")
    expect(rows["unattributed"]["delta_bytes"] == -70 * WEIGHT, f"unattributed: {rows['unattributed']}")
    status, stdout, _ = cadastre("diff", "c.cad", "d.cad", "--by", "site")
    expect(status == 0 and "[new]" in stdout and "[gone]" in stdout, f"by site:\n{stdout}")


def three_snapshots_have_a_verdict():
    def series(name, counts, uptimes):
        for number, (count, uptime) in enumerate(zip(counts, uptimes)):
            compose(f"{name}.cad@{number}", [("invoice", 100)] + [("index", count)], uptime=uptime, snapshot=str(number), interval=1)
        compose(f"{name}.cad", [("invoice", 100)], uptime=uptimes[-1] + 1)
        return [f"{name}.cad@{number}" for number in range(len(counts))]
    hours = [36000 + 3600 * i for i in range(3)]
    for name, counts, verdict in (("leak", (1000, 2000, 3000), "steady growth"), ("warm", (1000, 4000, 4000), "levelling off"),
                                  ("level", (1000, 1000, 1000), "no change"), ("step", (1000, 1000, 3000), "step"),
                                  ("saw", (1000, 3000, 1000), "sawtooth"), ("less", (3000, 2000, 1000), "shrinking")):
        document, rows = diff(*series(name, counts, hours), "--requests", "0,1000,4000")
        row = rows["search"]
        expect(row["verdict"] == verdict and row["reason"], f"{name}: {row}")
        expect(rows["billing"]["verdict"] == "no change", f"{name}: billing {rows['billing']}")
        if name == "leak":
            expect(row["rate_bytes_per_hour"] == 64000, f"rate {row}")
            expect(row["rate_bytes_per_1000_requests"] == 32000, f"rate per 1,000 requests {row}")
            status, stdout, _ = cadastre("diff", *[f"leak.cad@{i}" for i in range(3)], "--requests", "0,1000,4000")
            expect("steady growth, 62.5 KiB/h, 31.3 KiB per 1,000 requests" in stdout, f"text:\n{stdout}")
        else:
            expect(verdict == "shrinking" or row["rate_bytes_per_hour"] is None, f"{name}: a rate {row}")
    refused("no order", ["diff", "leak.cad@2", "leak.cad@1", "leak.cad@0"], "give the oldest first")
    refused("requests", ["diff", "leak.cad@0", "leak.cad@1", "--requests", "1,2,3"], "3 numbers for 2 snapshots")
    refused("requests fall", ["diff", "leak.cad@0", "leak.cad@1", "--requests", "2,1"], "goes down")
    refused("requests are words", ["diff", "leak.cad@0", "leak.cad@1", "--requests", "x,1"], "--requests")


def what_does_not_compare_is_said():
    compose("a.cad", [("invoice", 300)], uptime=60)
    compose("b.cad", [("invoice", 300)], uptime=36000, pid=4243, started=100)
    document, _ = diff("a.cad", "b.cad")
    expect(any(warning.startswith("cold against warm: a.cad was up 60 s") for warning in document["warnings"]), f"cold: {document['warnings']}")
    compose("early.cad", [("invoice", 300), ("index", 200)], uptime=36000)
    compose("early.cad@s", [("invoice", 300)], uptime=100, snapshot="s")
    document, _ = diff("early.cad@s", "early.cad")
    expect(any("start-up is part of the growth" in warning for warning in document["warnings"]), f"cold: {document['warnings']}")
    refused("peak against live", ["diff", "a.cad@peak", "b.cad"], "different methods are not compared")
    compose("exact.cad", [("invoice", 300)], interval=1, pid=4244, started=200, uptime=60)
    document, _ = diff("a.cad", "exact.cad")
    expect(any("every allocation" in warning for warning in document["warnings"]), f"exact and sampled: {document['warnings']}")
    compose("few.cad", [("invoice", 10)], pid=4245, started=300, uptime=60)
    document, _ = diff("a.cad", "few.cad")
    expect(any("unusable" in warning for warning in document["warnings"]), f"few samples: {document['warnings']}")
    refused("one snapshot", ["diff", "a.cad"], "two snapshots")
    refused("no such file", ["diff", "a.cad", "nosuch.cad"], "nosuch.cad")
    refused("no such label", ["diff", "a.cad", "a.cad@nosuch"], "nosuch")


def every_format_has_the_same_rows():
    compose("a.cad", [("invoice", 300), ("index", 50), ("nobody", 5)])
    compose("b.cad", [("invoice", 400), ("index", 20), ("nobody", 5)], pid=4243, started=86400)
    document, rows = diff("a.cad", "b.cad")
    status, stdout, _ = cadastre("diff", "a.cad", "b.cad", "--format", "csv")
    table = list(csv.DictReader(io.StringIO(stdout)))
    expect(status == 0 and {row["module"]: int(row["delta_bytes"]) for row in table} == {name: row["delta_bytes"] for name, row in rows.items()}, f"csv:\n{stdout}")
    status, stdout, _ = cadastre("diff", "a.cad", "b.cad", "--format", "csv", "--by", "site")
    expect(len(list(csv.DictReader(io.StringIO(stdout)))) == len(document["sites"]), f"csv by site:\n{stdout}")
    status, stdout, _ = cadastre("diff", "a.cad", "b.cad", "--by", "team", "--format", "markdown")
    lines = [line for line in stdout.splitlines() if line.startswith("|")]
    expect(status == 0 and len(lines) == 2 + len(document["teams"]) and len({line.count("|") for line in lines}) == 1, f"markdown:\n{stdout}")
    for row in (*document["modules"], document["total"]):
        expect(row["delta_bytes"] == row["bytes"][-1] - row["bytes"][0], f"delta of {row}")
    for key in ("modules", "teams", "sites"):
        expect(sum(row["delta_bytes"] for row in document[key]) == document["total"]["delta_bytes"], f"{key} do not add up")


if __name__ == "__main__":
    run_all("diff", (what_lives_in_both_cancels, of_two_processes_nothing_cancels, sites_are_the_same_across_builds, three_snapshots_have_a_verdict,
                     what_does_not_compare_is_said, every_format_has_the_same_rows))
