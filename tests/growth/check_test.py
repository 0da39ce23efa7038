#!/usr/bin/env python3
"""`cadastre check`: each gate fails when it must, passes when it must, and warns in between; what it writes is what its readers expect.

Exists because a gate that breaks builds on noise is switched off, and one that cannot fail protects nothing. Every case is a function below;
all run, all failures are printed.
"""
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

from growth_cases import WEIGHT, cadastre, compose, expect, path_of, refused, run_all, write

MIB = 1 << 20


def check(*words, environment=None):
    """(exit status, the document)"""
    status, stdout, stderr = cadastre("check", *words, "--format", "json", environment=environment)
    expect(status in (0, 1) and stderr == "", f"check {words}: exit {status}, {stderr}")
    document = json.loads(stdout)
    expect(document["schema"] == "cadastre.check/1", document["schema"])
    expect((status == 1) == (document["outcome"] == "fail"), f"exit {status} for {document['outcome']}")
    return status, document


def outcomes(document):
    return {gate["name"]: gate["outcome"] for gate in document["gates"]}


def no_gate_is_an_error():
    compose("pay.cad", [("invoice", 300)])
    status, stdout, stderr = cadastre("check", "pay.cad")
    expect(status == 2 and stdout == "" and stderr.count("\n") == 1, f"no gate: exit {status} {stderr!r}")
    for gate in ("--max-unattributed", "--budgets", "--baseline", "--max-growth", "--fail-on-unowned", "--min-samples"):
        expect(gate in stderr, f"no gate: {gate} is not named: {stderr}")
    status, stdout, _ = cadastre("check", "pay.cad", "--min-samples", "200")
    expect(status == 0 and stdout.startswith("pass pay.cad: at least 200 samples"), f"--min-samples: exit {status}\n{stdout}")
    refused("too few samples", ["check", "pay.cad", "--min-samples", "400"], "fewer than 400")


def unattributed_fails_beyond_two_errors():
    # 100 of 1,000 samples: 10 % ±1.
    compose("pay.cad", [("invoice", 900), ("nobody", 100)])
    for limit, status, outcome in (("5", 1, "fail"), ("9.5", 0, "warn"), ("8.5%", 0, "warn"), ("7.5", 1, "fail"), ("10.5", 0, "pass")):
        got, document = check("pay.cad", "--max-unattributed", limit)
        expect((got, document["gates"][0]["outcome"]) == (status, outcome), f"limit {limit}: exit {got}, {document['gates'][0]}")
    gate = check("pay.cad", "--max-unattributed", "5")[1]["gates"][0]
    expect(any("org.geo." in hint for hint in gate["hints"]) and gate["sites"][0]["stack"].find("org.geo.Tile.load") >= 0, f"what to do: {gate}")
    expect("standard errors" in gate["text"], gate["text"])
    # Guesses are no owners.
    os.remove(path_of("owners.csv"))
    got, document = check("pay.cad", "--max-unattributed", "50")
    expect(got == 1 and any("no rules file" in hint for hint in document["gates"][0]["hints"]), f"guesses: {document['gates']}")


def budgets_hold_modules_teams_and_the_total():
    compose("pay.cad", [("invoice", 400), ("index", 100)])  # 200 and 50 MiB, errors 10 and 5
    for row, status, outcome in (("module,billing,live,300m,,", 0, "pass"), ("module,billing,live,195m,,", 0, "warn"), ("module,billing,live,150m,,", 1, "fail"),
                                 ("team,payments,live,150m,,", 1, "fail"), ("team,discovery,live,150m,,", 0, "pass"), ("total,,live,200m,,", 1, "fail"),
                                 ("total,,live,1g,,", 0, "pass"), ("module,billing,share,50%,,", 1, "fail"), ("module,billing,share,90,,", 0, "pass"),
                                 ("module,billing,count,1000,,", 1, "fail"), ("module,billing,count,100000000,,", 0, "pass"),
                                 ("module,billing,peak,100m,,", 1, "fail"), ("module,billing,allocated,100m,,", 1, "fail"), ("module,billing,peak,500m,,", 0, "pass"),
                                 ("module,native,live,100m,,", 0, "pass"), ("module,biling,live,300m,,", 0, "warn"),
                                 ("module,billing,live,300m,2099-12-31,renderer", 0, "pass"), ("module,billing,live,300m,2001-01-01,renderer", 1, "fail")):
        write("budgets.csv", f"scope,name,metric,limit,until,reason\n{row}\n")
        got, document = check("pay.cad", "--budgets", "budgets.csv")
        expect((got, document["gates"][0]["outcome"]) == (status, outcome), f"{row}: exit {got}, {document['gates'][0]}")
        expect((document["gates"][0]["file"], document["gates"][0]["line"]) == ("budgets.csv", 2), f"{row}: {document['gates'][0]}")
    # A row until a day stands before the one for good, and that stands behind it.
    write("budgets.csv", "scope,name,metric,limit,until,reason\nmodule,billing,live,150m,,\nmodule,billing,live,300m,2099-12-31,JIRA-812\n")
    got, document = check("pay.cad", "--budgets", "budgets.csv")
    expect(got == 0 and len(document["gates"]) == 1 and "JIRA-812" in document["gates"][0]["text"], f"an exception: {document['gates']}")
    write("budgets.csv", "scope,name,metric,limit,until,reason\nmodule,billing,live,150m,,\nmodule,billing,live,300m,2001-12-31,JIRA-812\n")
    got, document = check("pay.cad", "--budgets", "budgets.csv")
    expect(got == 1 and document["gates"][0]["line"] == 2, f"an exception that is over: {document['gates']}")
    # Contacts, the sites that matter, and what sampling cannot tell.
    write("teams.csv", "team,contact\npayments,#payments-oncall\n")
    write("budgets.csv", "scope,name,metric,limit\nmodule,billing,live,150m\nmodule,search,live,1m\n")
    got, document = check("pay.cad", "--budgets", "budgets.csv")
    billing = [gate for gate in document["gates"] if gate["name"] == "module billing live"][0]
    expect(billing["contact"] == "#payments-oncall" and "Invoice.add" in billing["sites"][0]["stack"], f"billing: {billing}")
    search = [gate for gate in document["gates"] if gate["name"] == "module search live"][0]
    expect(any("below what an interval of 512 KiB can resolve" in hint and "interval=64k" in hint for hint in search["hints"]), f"search: {search}")


def budgets_hold_rows_of_the_ledger():
    # Sampled blocks that stand for 512 KiB each lie a MiB apart in an allocator's memory that is resident as a whole: 100 of them, 50 MiB ±5.
    first = 0x7f0000000000
    areas = [(0x1000000, 0x1000000 + 30 * MIB, "/srv/tiles", 30 * MIB), (first, first + 100 * MIB, "[heap]", 100 * MIB),
             (0x7fff00000000, 0x7fff00000000 + 8 * MIB, "[stack]", 8 * MIB)]
    compose("pay.cad", [("invoice", 64), ("index", 136)], snapshot="noon", areas=areas)
    for row, status, outcome in (("RSS,resident,138m", 0, "pass"), ("rss,resident,137m", 1, "fail"), ("thread stacks,resident,8m", 0, "pass"),
                                 ("Thread Stacks,resident,7m", 1, "fail"), ("mapped files,resident,29m", 1, "fail"), ("Java heap,resident,1m", 0, "pass"),
                                 ("malloc live,resident,45m", 0, "warn"), ("malloc live,resident,30m", 1, "fail"), ("malloc live,resident,60m", 0, "pass"),
                                 ("allocator retention,resident,100m", 0, "pass"), ("unexplained,resident,0", 0, "pass")):
        write("budgets.csv", f"scope,name,metric,limit\nrow,{row}\n")
        got, document = check("pay.cad", "--budgets", "budgets.csv")
        expect((got, document["gates"][0]["outcome"]) == (status, outcome), f"{row}: exit {got}, {document['gates'][0]}")
    # Who has most of a row that is over, in the ledger's names.
    write("budgets.csv", "scope,name,metric,limit,until,reason\nrow,malloc live,resident,10m,,\nrow,thread stacks,resident,1m,2001-01-01,many threads\n")
    got, document = check("pay.cad", "--budgets", "budgets.csv")
    gates = {gate["name"]: gate for gate in document["gates"]}
    live, stacks = gates["row malloc live resident"], gates["row thread stacks resident"]
    expect(got == 1 and [site["stack"] for site in live["sites"]] == ["billing", "search"] and live["sites"][0]["bytes"] > 0, f"owners: {live}")
    expect("standard errors" in live["text"] and "ended on 2001-01-01 (many threads)" in stacks["text"], f"{live} {stacks}")
    # Several runs: the mean, and the spread between them.
    runs = [compose(f"run{i}.cad", [("invoice", 200)], pid=5000 + i, started=1000 * i, snapshot="noon",
                    areas=[(0x1000000, 0x1000000 + 64 * MIB, "/srv/tiles", size * MIB)]) for i, size in enumerate((10, 20, 60))]
    write("budgets.csv", "scope,name,metric,limit\nrow,mapped files,resident,20m\n")
    got, document = check(*runs, "--budgets", "budgets.csv")
    expect(got == 0 and document["gates"][0]["outcome"] == "warn" and "30 MiB" in document["gates"][0]["text"], f"runs: exit {got}, {document['gates']}")
    compose("dead.cad", [("invoice", 400)])
    refused("no memory to look at", ["check", "dead.cad", "--budgets", "budgets.csv"], "dead.cad: the process has ended, and what was resident went with it")
    # The report has the same rows.
    status, stdout, stderr = cadastre("report", "pay.cad", "--format", "json")
    rss = json.loads(stdout)["rss"]
    expect(status == 0 and rss["rss_bytes"] == 138 * MIB and sum(row["resident_bytes"] for row in rss["rows"]) == 138 * MIB, f"report: {rss} {stderr}")
    expect([row["name"] for row in rss["rows"]] == ["thread stacks", "malloc live", "allocator retention", "mapped files", "unexplained"], f"rows: {rss}")
    expect(rss["rows"][1]["estimate"] and rss["rows"][1]["resident_bytes_stderr"] > MIB and rss["summary"].startswith("RSS 138 MiB at "), f"estimate: {rss}")
    status, stdout, _ = cadastre("report", "dead.cad", "--format", "json")
    expect(status == 0 and json.loads(stdout)["rss"] is None, "a report without the process")


def bad_budgets_are_refused_with_their_place():
    compose("pay.cad", [("invoice", 400)])
    head = "scope,name,metric,limit,until,reason\n"
    for what, content, said in (
            ("scope", head + "modul,a,live,1m,,\n", "budgets.csv:2:1: unknown scope 'modul'"), ("row", head + "row,stacks,resident,1m,,\n", "budgets.csv:2:5: the ledger has no row 'stacks'; it has RSS, Java heap"),
            ("a row's metric", head + "row,thread stacks,live,1m,,\n", "budgets.csv:2:19: the metric of a row of the ledger is resident"),
            ("metric", head + "module,a,heap,1m,,\n", "budgets.csv:2:10: unknown metric"), ("limit", head + "module,a,live,many,,\n", "budgets.csv:2:15: 'many' is not a size"),
            ("count", head + "module,a,count,1.5,,\n", "whole number"), ("share", head + "module,a,share,120,,\n", "percentage"),
            ("day", head + "module,a,live,1m,31.12.2026,\n", "is not a day"), ("no day", head + "module,a,live,1m,2026-02-30,\n", "is not a day"),
            ("name", head + "module,,live,1m,,\n", "empty name"), ("total", head + "total,x,live,1m,,\n", "has no name"),
            ("twice", head + "module,a,live,1m,,\nmodule,a,live,2m,,\n", "budgets.csv:3:1: the same budget stands at line 2"),
            ("columns", head + "module,a,live,1m,,,\n", "7 columns"), ("short", head + "module,a\n", "missing column 'metric'"),
            ("header", "module,a,live,1m,,\n", "unknown column 'module'"), ("nothing", head, "no budget in it"), ("empty", "", "missing header"),
            ("quote", head + "\"module,a,live\n", "budgets.csv:2")):
        write("budgets.csv", content)
        refused(f"budgets: {what}", ["check", "pay.cad", "--budgets", "budgets.csv"], said)
    refused("no budgets", ["check", "pay.cad", "--budgets", "nosuch.csv"], "nosuch.csv")
    write("teams.csv", "team\nx\n")
    refused("teams", ["check", "pay.cad", "--max-unattributed", "5"], "teams.csv:1")
    write("teams.csv", "team,contact\na,x\na,y\n")
    refused("teams twice", ["check", "pay.cad", "--max-unattributed", "5"], "teams.csv:3:1: team a stands twice")


def growth_against_a_baseline_fails_where_both_are_exceeded():
    compose("before.cad", [("invoice", 400), ("index", 400)])
    status, stdout, stderr = cadastre("check", "before.cad", "--save", "baseline.csv")
    expect((status, stdout, stderr) == (0, "", ""), f"--save: {status} {stdout!r} {stderr!r}")
    for samples, growth, status, outcome in (
            ([("invoice", 402), ("index", 400)], "10%,32m", 0, "pass"), ([("invoice", 800), ("index", 400)], "10%,32m", 1, "fail"),
            ([("invoice", 800), ("index", 400)], "150%,32m", 0, "pass"), ([("invoice", 800), ("index", 400)], "10%,400m", 0, "pass"),
            ([("invoice", 480), ("index", 400)], "10%,32m", 0, "warn"), ([("invoice", 800), ("index", 400)], None, 1, "fail")):
        compose("now.cad", samples, pid=4243, started=86400)
        words = ["now.cad", "--baseline", "baseline.csv"] + (["--max-growth", growth] if growth else [])
        got, document = check(*words)
        expect((got, outcomes(document)["module billing"]) == (status, outcome), f"{samples} {growth}: exit {got}, {document['gates']}")
        expect(outcomes(document)["module search"] == "pass", f"search: {document['gates']}")
    gate = [gate for gate in document["gates"] if gate["name"] == "module billing"][0]
    expect(gate["sites"][0]["grown_bytes"] > 190 * MIB and "Invoice.add" in gate["sites"][0]["stack"], f"the site that grew: {gate}")
    # A module that was not there.
    compose("now.cad", [("invoice", 400), ("index", 400), ("table", 300)], pid=4243, started=86400)
    got, document = check("now.cad", "--baseline", "baseline.csv", "--max-growth", "10%,32m")
    expect(got == 1 and outcomes(document)["module native"] == "fail" and "new" in document["gates"][0]["text"] + document["gates"][1]["text"], f"a new module: {document['gates']}")
    # diff reads it too.
    status, stdout, stderr = cadastre("diff", "baseline.csv", "now.cad", "--format", "json")
    rows = {row["module"]: row for row in json.loads(stdout)["modules"]}
    expect(status == 0 and rows["native"]["delta_bytes"] == 300 * WEIGHT and rows["billing"]["delta_stderr"] > 10 * MIB, f"diff: {rows}")
    refused("growth against nothing", ["check", "now.cad", "--max-growth", "10%,32m"], "--baseline")
    refused("growth is no pair", ["check", "now.cad", "--baseline", "baseline.csv", "--max-growth", "10%"], "10%,32m")
    refused("growth is no size", ["check", "now.cad", "--baseline", "baseline.csv", "--max-growth", "10%,x"], "10%,32m")
    refused("no baseline", ["check", "now.cad", "--baseline", "owners.csv"], "owners.csv:1: no baseline")
    refused("the peak", ["check", "now.cad@peak", "--baseline", "baseline.csv"], "different methods are not compared")
    compose("other.cad", [("invoice", 400)], exe="ship")
    refused("another program", ["check", "other.cad", "--baseline", "baseline.csv"], "is of pay, other.cad of ship")
    with open(path_of("baseline.csv"), encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    for what, content, said in (("cut", lines[:4], "the file is cut"), ("cut behind its total", lines[:-2], "no end row: the file is cut"),
                                ("cut before its end", lines[:-1], "no end row: the file is cut"), ("joined with another", lines + lines[-2:], "a row behind the end row"),
                                ("a number", lines[:-2] + ["team,x,,many,0,0,\n"], "not a number"),
                                ("a row", lines[:-1] + ["zone,x,,1,0,0,\n"], "unknown row 'zone'"), ("columns", lines[:-1] + ["team,x\n"], "2 columns"),
                                ("a module twice", lines[:-1] + [line for line in lines if line.startswith("module,")][:1], "stands there twice"),
                                ("a version", ["# cadastre baseline 9: x\n"] + lines[1:], "another version"), ("nothing", [], "empty")):
        write("bad.csv", "".join(content))
        refused(f"baseline: {what}", ["check", "now.cad", "--baseline", "bad.csv"], said)


def a_change_of_the_rules_is_not_growth():
    compose("before.cad", [("invoice", 400), ("index", 400)])
    cadastre("check", "before.cad", "--save", "baseline.csv")
    write("owners.csv", "prefix,module,team\ncom.acme.,billing,payments\n")
    compose("now.cad", [("invoice", 400), ("index", 400)], pid=4243, started=86400)
    got, document = check("now.cad", "--baseline", "baseline.csv", "--max-growth", "10%,32m")
    gate = [gate for gate in document["gates"] if gate["name"] == "module billing"][0]
    expect(got == 0 and gate["outcome"] == "warn" and "comes from the rules, not from memory" in gate["text"], f"rules: exit {got}, {gate}")
    expect(any("the rules are not those of the baseline" in warning for warning in document["warnings"]), f"warnings {document['warnings']}")
    compose("now.cad", [("invoice", 900), ("index", 400)], pid=4243, started=86400)
    got, document = check("now.cad", "--baseline", "baseline.csv", "--max-growth", "10%,32m")
    gate = [gate for gate in document["gates"] if gate["name"] == "module billing"][0]
    expect(got == 1 and gate["outcome"] == "fail", f"rules and memory: exit {got}, {document['gates']}")
    # 200 MiB were another module's, and 250 are new.
    expect("; 200 MiB of it comes from the rules, not from memory" in gate["text"], f"rules and memory: {gate}")
    expect(any("beside that memory has grown by 250 MiB" in hint for hint in gate["hints"]), f"rules and memory: {gate}")
    # The same rules: whatever moved, they did not move it.
    cadastre("check", "before.cad", "--save", "same.csv")
    got, document = check("now.cad", "--baseline", "same.csv", "--max-growth", "10%,32m")
    gate = [gate for gate in document["gates"] if gate["name"] == "module billing"][0]
    expect(got == 1 and "rules" not in gate["text"], f"the same rules: exit {got}, {gate}")


def replaced_binaries_are_named():
    def build(number):
        return {"build": f"ab{number:02d}cd"}
    samples = [("invoice", 400), ("index", 400)]
    compose("before.cad", samples, **build(1))
    cadastre("check", "before.cad", "--save", "baseline.csv")
    compose("same.cad", samples, pid=4243, started=86400, **build(1))
    compose("now.cad", samples, pid=4244, started=96400, **build(2))
    for name, warnings in (("same.cad", []), ("now.cad", ["replaced since baseline.csv: libc.so.6"])):
        document = check(name, "--baseline", "baseline.csv")[1]
        expect(document["warnings"] == warnings, f"{name} against a baseline: {document['warnings']}")
    document = check("before.cad", "same.cad", "now.cad", "--max-unattributed", "5")[1]
    expect(document["warnings"] == ["replaced between before.cad and now.cad: libc.so.6"], f"runs: {document['warnings']}")
    for first in ("before.cad", "baseline.csv"):
        document = json.loads(cadastre("diff", first, "now.cad", "--format", "json")[1])
        expect(document["warnings"] == [f"replaced between {first} and now.cad: libc.so.6"], f"diff: {document['warnings']}")
    document = json.loads(cadastre("diff", "before.cad", "same.cad", "--format", "json")[1])
    expect(document["warnings"] == [], f"diff of the same builds: {document['warnings']}")


def the_spread_between_runs_counts():
    write("budgets.csv", "scope,name,metric,limit\nmodule,billing,live,250m\n")
    for name, counts, status, outcome in (("even", (600, 610, 590), 1, "fail"), ("spread", (300, 600, 900), 0, "warn")):
        runs = [compose(f"{name}{i}.cad", [("invoice", count)], pid=5000 + i, started=1000 * i) for i, count in enumerate(counts)]
        got, document = check(*runs, "--budgets", "budgets.csv")
        expect((got, document["gates"][0]["outcome"]) == (status, outcome), f"{name}: exit {got}, {document['gates']}")
        expect(document["runs"] == 3, document["runs"])
    # The baseline keeps it: one more run within the spread is no growth.
    cadastre("check", "spread0.cad", "spread1.cad", "spread2.cad", "--save", "baseline.csv")
    for name, status in (("spread2.cad", 0), ("even0.cad", 0)):
        expect(check(name, "--baseline", "baseline.csv", "--max-growth", "10%,32m")[0] == status, f"{name} against a spread")
    cadastre("check", "even0.cad", "even1.cad", "even2.cad", "--save", "baseline.csv")
    expect(check("spread2.cad", "--baseline", "baseline.csv", "--max-growth", "10%,32m")[0] == 1, "growth beyond even runs")
    compose("other.cad", [("invoice", 400)], exe="ship")
    refused("one run twice", ["check", "even0.cad", "./even0.cad", "--budgets", "budgets.csv"], "given twice")
    refused("runs of two programs", ["check", "even0.cad", "other.cad", "--max-unattributed", "5"], "runs of one load")


def a_baseline_is_fit_for_version_control():
    compose("a.cad", [("invoice", 400), ("index", 400)])
    cadastre("check", "a.cad", "--save", "one.csv")
    cadastre("check", "a.cad", "--save", "two.csv")
    with open(path_of("one.csv"), encoding="utf-8") as one, open(path_of("two.csv"), encoding="utf-8") as two:
        first, second = one.read(), two.read()
    expect(first == second and len(first) < 4000, f"not the same twice, or large:\n{first}")
    billing = [line for line in first.splitlines() if line.startswith("module,billing")]
    # 209,728,000 ±10,485,760: what the error leaves is kept.
    expect(billing == ["module,billing,payments,210000000,10000000,0,"], f"rounded: {billing}")
    status, _, stderr = cadastre("check", "a.cad", "--save", "no/such/directory/x.csv")
    expect(status == 2 and stderr.count("\n") == 1, f"--save: exit {status} {stderr!r}")
    # A baseline that cannot be read is not written over by a failing run.
    refused("a profile that cannot be trusted", ["check", compose("few.cad", [("invoice", 3)]), "--save", "one.csv"], "unusable")
    with open(path_of("one.csv"), encoding="utf-8") as one:
        expect(one.read() == first, "a refused run has changed the baseline")
    # Nor by one whose gate fails: the next run would pass.
    compose("grown.cad", [("invoice", 900), ("index", 400)], pid=4243, started=86400)
    status, _, stderr = cadastre("check", "grown.cad", "--baseline", "one.csv", "--max-growth", "10%,32m", "--save", "one.csv")
    expect(status == 1 and "not written, for a gate fails" in stderr, f"--save of growth: exit {status} {stderr!r}")
    with open(path_of("one.csv"), encoding="utf-8") as one:
        expect(one.read() == first, "a failing run has changed the baseline")


def unowned_fails():
    compose("pay.cad", [("invoice", 400)])
    expect(check("pay.cad", "--fail-on-unowned")[0] == 0, "all is owned")
    compose("pay.cad", [("invoice", 400), ("nobody", 40)])
    got, document = check("pay.cad", "--fail-on-unowned")
    expect(got == 1 and "unattributed 20" in document["gates"][0]["text"], f"unattributed: exit {got} {document['gates']}")
    compose("pay.cad", [("invoice", 400), ("nobody", 1)])
    got, document = check("pay.cad", "--fail-on-unowned")
    expect(got == 0 and document["gates"][0]["outcome"] == "warn", f"one sample is within the error: exit {got} {document['gates']}")
    write("owners.csv", "prefix,module,team\ncom.acme.billing.,billing,\n")
    compose("pay.cad", [("invoice", 400)])
    got, document = check("pay.cad", "--fail-on-unowned")
    expect(got == 1 and "billing has no team" in document["gates"][0]["text"], f"no team: exit {got} {document['gates']}")


SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "junit.xsd")


def junit_problems(name):
    """What a file of JUnit's XML has against the schema, and where its counts are not those of its cases."""
    checked = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", SCHEMA, path_of(name)], capture_output=True, text=True, check=False)
    problems = [] if checked.returncode == 0 else checked.stderr.splitlines()
    root = ElementTree.parse(path_of(name)).getroot()
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        if int(element.get("tests")) != len(cases) or int(element.get("failures")) != len([case for case in cases if case.find("failure") is not None]):
            problems.append(f"{element.tag} {element.attrib} counts wrongly")
    return problems


def junit_and_annotations_are_what_their_readers_expect():
    write("teams.csv", "team,contact\npayments,\"#pay, <oncall> & co: 100%\"\n")
    modules = [f"m{number}" for number in range(14)]
    write("perf/budgets.csv", "scope,name,metric,limit,until,reason\nteam,payments,live,100m,,\"a, <b> & \"\"c\"\": 100%\"\nmodule,search,live,900m,,\n" +
          "".join(f"module,{name},live,{index + 1}m,2001-01-01,over\n" for index, name in enumerate(modules)))
    compose("pay.cad", [("invoice", 400), ("index", 100)])
    words = ["check", "pay.cad", "--budgets", "perf/budgets.csv", "--max-unattributed", "5", "--write", "junit=junit.xml", "--write", "github=annotations", "--write", "markdown=summary.md"]
    status, stdout, stderr = cadastre(*words)
    expect(status == 1 and stdout.startswith("FAIL pay.cad: ") and stderr == "", f"exit {status}, {stderr}")
    with open(path_of("junit.xml"), encoding="utf-8") as file:
        text = file.read()
    problems = junit_problems("junit.xml")
    expect(not problems, f"junit: {problems}\n{text}")
    write("bad.xml", text.replace(' classname="', ' class="', 1))
    expect(junit_problems("bad.xml"), "the schema accepts a case without a class")
    root = ElementTree.fromstring(text)
    suites = {suite.get("name"): suite for suite in root}
    expect("payments" in suites and root.get("tests") == str(17) and root.get("failures") == "15", f"suites {list(suites)} {root.attrib}")
    passing = [case for case in root.iter("testcase") if not list(case)]
    expect(len(passing) == 2, f"passing cases are not there: {text}")
    failure = suites["payments"].find("testcase/failure")
    expect('a, <b> & "c": 100%' in failure.get("message") and "Invoice.add" in failure.text and "#pay, <oncall> & co" in failure.text, f"failure: {failure.attrib} {failure.text}")
    with open(path_of("annotations"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    command = re.compile(r"^::(error|warning|notice) (?:file=([^,:]+),line=(\d+),)?title=([^,:]*(?:%2C|%3A|[^,:])*)::(.+)$")
    matches = [command.match(line) for line in lines]
    expect(len(lines) == 10 and all(matches), f"annotations: {lines}")
    expect([match.group(1) for match in matches] == ["error"] * 9 + ["notice"], f"annotations: {lines}")
    expect(all(match.group(2) == "perf/budgets.csv" for match in matches[:9]), f"paths: {lines}")
    expect("17 gates, 15 failed" in matches[9].group(5) and "6 more are not shown here" in matches[9].group(5), f"summary: {lines[9]}")
    pay = [match for match in matches if "payments" in match.group(4)][0]
    expect("%25" in pay.group(5) and "%0A" in pay.group(5) and "%2C" in pay.group(4) and pay.group(3) == "2", f"escapes: {pay.group(0)}")
    # A warning is a case that passes and says so.
    compose("warned.cad", [("invoice", 900), ("nobody", 100)])
    status, _, stderr = cadastre("check", "warned.cad", "--max-unattributed", "9.5", "--fail-on-unowned", "--write", "junit=warned.xml")
    problems = junit_problems("warned.xml")
    warned = ElementTree.parse(path_of("warned.xml")).find(".//testcase[@name='unattributed']/system-out")
    expect(status == 1 and not problems and warned is not None and warned.text.startswith("warning: "), f"a warning: {status} {stderr} {problems}")
    # An absolute path becomes one of the repository.
    status, stdout, _ = cadastre("check", "pay.cad", "--budgets", path_of("perf/budgets.csv"), "--format", "github", environment={"GITHUB_WORKSPACE": path_of("")})
    expect(status == 1 and "file=perf/budgets.csv,line=" in stdout, f"an absolute path: {stdout[:300]}")
    with open(path_of("summary.md"), encoding="utf-8") as file:
        rows = [line for line in file.read().splitlines() if line.startswith("| ")]
    expect(len(rows) == 18 and all(re.sub(r"\\\|", "", row).count("|") == 4 for row in rows), f"markdown: {rows[:4]}")
    status, stdout, stderr = cadastre("check", "--max-unattributed", "5", "--write", "junit=junit.xml", "pay.cad")
    expect(status == 0 and stderr == "", f"the profile behind --write: exit {status} {stderr}")
    refused("--write", ["check", "pay.cad", "--max-unattributed", "5", "--write", "xml=x"], "--write xml=x")


def names_of_files_are_safe():
    name = compose("evil\x1b[2J\n\r.cad", [("invoice", 400)])
    status, stdout, _ = cadastre("check", name, "--max-unattributed", "5")
    expect(status == 0 and "\x1b" not in stdout and stdout.count("\n") == 2, f"text: {stdout!r}")
    for form in ("junit", "github", "markdown", "json"):
        stdout = cadastre("check", name, "--max-unattributed", "5", "--format", form)[1]
        expect("\x1b" not in stdout, f"{form}: {stdout!r}")


if __name__ == "__main__":
    run_all("check", (no_gate_is_an_error, unattributed_fails_beyond_two_errors, budgets_hold_modules_teams_and_the_total, budgets_hold_rows_of_the_ledger,
                      bad_budgets_are_refused_with_their_place, growth_against_a_baseline_fails_where_both_are_exceeded,
                      a_change_of_the_rules_is_not_growth, replaced_binaries_are_named, the_spread_between_runs_counts, a_baseline_is_fit_for_version_control, unowned_fails,
                      junit_and_annotations_are_what_their_readers_expect, names_of_files_are_safe))
