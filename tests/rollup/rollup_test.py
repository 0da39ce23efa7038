#!/usr/bin/env python3
"""`cadastre rollup`: numbers that an independent script agrees with, the documented figures, every spelling, every mistake in its place.

Exists because teams are told how much is theirs: a wrong sum is worse than none. Every case is a function below; all run, all failures are
printed.
"""
import json
import os
import random
import sys

import plain_rollup

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_cases import cadastre, expect, path_of, run_all, write  # noqa: E402

GENERATED_INPUTS = 200


def rollup(rules, heap, stacks, *rest):
    return cadastre("rollup", rules, heap, stacks, *rest)


def rolled(rules, heap, stacks, *rest):
    """The JSON of inputs given as text, and the exit status."""
    status, stdout, stderr = rollup(write("rules.csv", rules), write("heap.csv", heap), write("stacks.txt", stacks), *rest, "--format", "json")
    expect(status in (0, 1), f"exit {status}: {stderr}")
    return (json.loads(stdout) if stdout else {"modules": [], "teams": [], "containers": []}), status


def numbers(report, key):
    return {row["module"]: row[key] for row in report["modules"] if row[key]}


def random_name(choose):
    return "".join(choose.choice(["com.", "acme.", "bill.", "x", "ing.", "::", "café "]) for _ in range(choose.randrange(1, 6)))


def generated_inputs_agree_with_the_plain_script():
    for seed in range(GENERATED_INPUTS):
        choose = random.Random(seed)
        names = [random_name(choose) for _ in range(30)]
        modules = ["billing", "search", "auth", "platform", "platform/jdk", "web, the"]
        rules = "prefix,module,team\n" + "".join(
            f'"{choose.choice(names)[:choose.randrange(1, 12)].strip() or "c"}","{choose.choice(modules)}",{choose.choice(["t1", "t2", "t3"])}\n'
            for _ in range(choose.randrange(0, 25)))
        heap = "class,retained_bytes\n" + "".join(
            f'"{choose.choice(names).strip()}q",{choose.randrange(1 << choose.randrange(1, 50))}\n' for _ in range(choose.randrange(1, 40)))
        stacks = "".join(";".join(choose.choice(names).strip() + "q" for _ in range(choose.randrange(1, 8))) + f" {choose.randrange(1, 10**9)}\n"
                         for _ in range(choose.randrange(1, 60)))
        report, status = rolled(rules, heap, stacks, "50")
        wanted, teams = plain_rollup.roll_up(*(path_of(name) for name in ("rules.csv", "heap.csv", "stacks.txt")))
        total = sum(row[0] for row in wanted.values())
        expect(numbers(report, "bytes") == {m: row[0] for m, row in wanted.items() if row[0]}, f"seed {seed}: bytes of modules differ")
        expect(numbers(report, "samples") == {m: row[1] for m, row in wanted.items() if row[1]}, f"seed {seed}: samples of modules differ")
        expect({row["team"]: row["bytes"] for row in report["teams"] if row["bytes"]} == {t: n for t, n in teams.items() if n},
               f"seed {seed}: teams differ")
        for row in report["modules"]:
            share = 100 * wanted.get(row["module"], [0])[0] / total if total else 0
            expect(abs(row["share_pct"] - share) < 1e-5, f"seed {seed}: share of {row['module']}: {row['share_pct']}, not {share}")
        lost = 100 * (wanted.get("unattributed", [0, 0])[0] / total if total else
                      wanted.get("unattributed", [0, 0])[1] / sum(row[1] for row in wanted.values()))
        expect(abs(report["unattributed_share_pct"] - lost) < 1e-5, f"seed {seed}: unattributed {report['unattributed_share_pct']}, not {lost}")
        expect(status == (1 if lost > 50 else 0), f"seed {seed}: exit {status} with {lost} % unattributed, limit 50")


def the_figure_by_creator_and_by_holder():
    """100 MB: a platform cache holds 40, 25 and 5 of billing, search and auth; billing has an index of 30."""
    rules = ("prefix,module,team,kind\ncom.acme.billing.,billing,payments,\ncom.acme.search.,search,discovery,\ncom.acme.auth.,auth,identity,\n"
             "com.acme.platform.Cache,platform,core,container\n")
    heap = "class,retained_bytes\ncom.acme.platform.Cache,70000000\ncom.acme.billing.InvoiceIndex,30000000\n"
    stacks = ("main;com.acme.billing.Load.run;com.acme.platform.Cache.put 40\nmain;com.acme.search.Load.run;com.acme.platform.Cache.put 25\n"
              "main;com.acme.auth.Load.run;com.acme.platform.Cache.put 5\nmain;com.acme.billing.InvoiceIndex.add 30\n")
    report, status = rolled(rules, heap, stacks)
    expect(status == 0, f"figure: exit {status}")
    expect(numbers(report, "bytes") == {"billing": 70_000_000, "search": 25_000_000, "auth": 5_000_000}, f"figure by creator: {report['modules']}")
    expect(numbers(report, "samples") == {"billing": 70, "search": 25, "auth": 5}, f"figure by samples: {report['modules']}")
    expect(numbers(report, "held_bytes") == {"platform": 70_000_000, "billing": 30_000_000}, f"figure by holder: {report['modules']}")
    expect("by who created it" in report["method"] and "retained" in report["method"], f"figure: method {report['method']}")
    text = rollup(*(path_of(name) for name in ("rules.csv", "heap.csv", "stacks.txt")))[1]
    for words in ("HELD", "in platform: 66.8 MiB, created by billing 38.1 MiB (57.1 %)", "by first owned frame"):
        expect(words in text, f"figure: text lacks {words!r}:\n{text}")


def the_estimate_of_a_cache():
    """4 GB, of which a cache of 1.6 GB is infra's; its entries are created 50, 30, 15 and 5 % by three modules and nobody."""
    rules = ("prefix,module,team,kind\nbilling.,billing,a,\nsearch.,search,b,\nnotifications.,notifications,c,\ncore.,core,d,\n"
             "infra.Cache.,infra,e,container\n")
    heap = "class,retained_bytes\ninfra.Cache,1600000000\ncore.State,2400000000\n"
    stacks = "".join(f"{module}.Load;infra.Cache.put {samples}\n"
                     for module, samples in (("billing", 500), ("search", 300), ("notifications", 150), ("stranger", 50)))
    report, status = rolled(rules, heap, stacks)
    expect(status == 0, f"estimate: exit {status}")
    expect(numbers(report, "bytes") == {"billing": 800_000_000, "search": 480_000_000, "notifications": 240_000_000, "unattributed": 80_000_000,
                                        "core": 2_400_000_000}, f"estimate: {report['modules']}")
    expect(numbers(report, "held_bytes") == {"infra": 1_600_000_000, "core": 2_400_000_000}, f"estimate by holder: {report['modules']}")
    expect(report["unattributed_share_pct"] == 2, f"estimate: unattributed {report['unattributed_share_pct']}")


def containers_divide_without_losing_a_byte():
    rules = "prefix,module,team,kind\na.,a,t,\nb.,b,t,\nc.,c,t,\nclass:Pool,pool,t,pool\nPool.,pool,t,pool\nclass:Idle,idle,t,container\n"
    report, _ = rolled(rules, "class,retained_bytes\nPool,100\nIdle,7\n", "a.x;Pool.get 1\nb.x;Pool.get 1\nc.x;Pool.get 1\n")
    expect(numbers(report, "bytes") == {"a": 34, "b": 33, "c": 33, "idle": 7}, f"a pool of three: {report['modules']}")
    pools = {row["holder"]: row for row in report["containers"]}
    expect(pools["pool"]["pool"] is True and pools["idle"]["created_by"] == [] and pools["idle"]["samples"] == 0, f"containers: {pools}")


def classes_in_every_spelling():
    rules = "prefix,module,team\nclass:byte[],bytes,t\ncom.acme.,acme,t\njava.lang.String[],strings,t\n"
    for name, module in (("[B", "bytes"), ("byte[]", "bytes"), ("[Ljava.lang.String;", "strings"), ("java.lang.String[]", "strings"),
                         ("com/acme/C$1", "acme"), ("com.acme.C$1", "acme"), ("[[Lcom.acme.C;", "acme"), ("com.acme.C[][]", "acme")):
        report, _ = rolled(rules, f"class,retained_bytes\n{name},10\n", "x 1\n", "100")
        expect(numbers(report, "bytes") == {module: 10}, f"{name}: {report['modules']}")
    histogram = ("4242:\n num     #instances         #bytes  class name (module)\n" + "-" * 55 +
                 "\n   1:         54646        6024416  [B (java.base@17.0.15)\n   2:           100           2400  com.acme.Foo$$Lambda/0x00007f\n"
                 "Total         54746        6026816\n")
    report, _ = rolled(rules, histogram, "com.acme.A.b 1\n")
    expect(numbers(report, "bytes") == {"bytes": 6024416, "acme": 2400}, f"histogram: {report['modules']}")
    expect(report["heap_measure"] == "shallow" and report["warnings"] == [], f"histogram: {report['heap_measure']} {report['warnings']}")
    # Cut, or filtered: what is there counts, and what is missing is said in every format.
    lines = histogram.splitlines(keepends=True)
    for what, text, said in (("cut", "".join(lines[:-1]), "heap.csv: the histogram has no Total line: it is cut"),
                             ("filtered", "".join(lines[:4] + lines[-1:]), "heap.csv: the rows of the histogram have 6024416 bytes, its Total line 6026816")):
        report, _ = rolled(rules, text, "com.acme.A.b 1\n")
        expect(len(report["warnings"]) == 1 and said in report["warnings"][0], f"histogram, {what}: {report['warnings']}")
        for form in ("text", "markdown", "csv"):
            _, stdout, stderr = rollup(path_of("rules.csv"), path_of("heap.csv"), path_of("stacks.txt"), "--format", form)
            expect(said in (stderr if form == "csv" else stdout), f"histogram, {what}, {form}: {stdout} {stderr}")


def files_of_every_origin():
    rules = "\ufeffprefix,module,team\r\n\"std::map<int, long>\",maps,t\r\ncom.acme.,acme,t\r\n"
    heap = "\ufeffclass,retained_bytes\r\n\"com.acme.A, B\",5\r\n\r\ncom.acme.C,6\r\n"
    stacks = "\ufeffmain;com/acme/billing/Load.run_[j];malloc 7\r\nstd::map<int, long>::operator[](int const&) 8\r\n\r\nsingle frame\t9"
    report, _ = rolled(rules, heap, stacks, "100")
    expect(numbers(report, "bytes") == {"acme": 11}, f"origins: {report['modules']}")
    expect(numbers(report, "samples") == {"acme": 7, "maps": 8, "unattributed": 9}, f"origins: {report['modules']}")
    # A stack of which only the leaf is known begins with a semicolon.
    report, _ = rolled(RULES, HEAP, ";a.b 7\n;a.b 1\n")
    plain, _ = rolled(RULES, HEAP, "a.b 8\n")
    expect(numbers(report, "samples") == numbers(plain, "samples") != {}, f"a leaf alone: {report['modules']}")


def limits_decide_the_exit():
    rules, heap = "prefix,module,team\na,m,t\n", "class,retained_bytes\na,90\nb,10\n"
    for limit, wanted in ((None, 0), ("10", 0), ("9.99", 1), ("0", 1), ("100", 0)):
        _, status = rolled(rules, heap, "a 1\n", *([limit] if limit else []))
        expect(status == wanted, f"limit {limit}: exit {status}")
    report, status = rolled(rules, "class,retained_bytes\n", "a 1\nb 1\n")
    expect(status == 1 and report["unattributed_share_pct"] == 50, f"samples alone: exit {status}, {report['unattributed_share_pct']}")


def formats_say_the_same():
    files = [write("rules.csv", "prefix,module,team\na,\"m|1, x\",t\n"), write("heap.csv", "class,retained_bytes\na,90\nb,10\n"), write("stacks.txt", "a 3\nz 1\n")]
    table = rollup(*files, "--format", "csv")[1]
    expect(table == "module,team,bytes,share_pct,held_bytes,samples,samples_share_pct\n\"m|1, x\",t,90,90,90,3,75\nunattributed,,10,10,10,1,25\n",
           f"csv: {table}")
    markdown = rollup(*files, "--format", "markdown")[1]
    expect("| m\\|1, x | t | 90 B | 90.0 % | 3 | 75.0 % |" in markdown, f"markdown: {markdown}")


RULES, HEAP, STACKS = "prefix,module,team\na,m,t\n", "class,retained_bytes\na,1\n", "a 1\n"
LONG = b"a" * (9 << 20)
MALFORMED = (
    # what, rules, heap, stacks, what the message says after the file's name
    ("rules: empty", "", HEAP, STACKS, "rules.csv:1:1: missing header line"),
    ("rules: no header", "a,m,t\n", HEAP, STACKS, "rules.csv:1:1: missing header line"),
    ("rules: no team column", "prefix,module\na,m\n", HEAP, STACKS, "rules.csv:1:14: missing column 'team'"),
    ("rules: an unknown column", "prefix,module,team,boss\n", HEAP, STACKS, "rules.csv:1:20: unknown column 'boss'"),
    ("rules: a column twice", "prefix,module,team,team\n", HEAP, STACKS, "rules.csv:1:20: column 'team' appears twice"),
    ("rules: a row too short", "prefix,module,team\na,m\n", HEAP, STACKS, "rules.csv:2:4: missing column 'team'"),
    ("rules: a row too long", "prefix,module,team\na,m,t,x\n", HEAP, STACKS, "rules.csv:2:7: 4 columns; the header names 3"),
    ("rules: an empty prefix", "prefix,module,team\n,m,t\n", HEAP, STACKS, "rules.csv:2:1: empty prefix"),
    ("rules: a marker alone", "prefix,module,team\nlib:,m,t\n", HEAP, STACKS, "rules.csv:2:1: empty prefix"),
    ("rules: an empty module", "prefix,module,team\na,,t\n", HEAP, STACKS, "rules.csv:2:3: empty module"),
    ("rules: a reserved module", "prefix,module,team\na,unattributed,t\n", HEAP, STACKS, "rules.csv:2:3: 'unattributed' is the row"),
    ("rules: an unknown kind", "prefix,module,team,kind\na,m,t,glass\n", HEAP, STACKS, "rules.csv:2:7: unknown kind 'glass'"),
    ("rules: an open quote", "prefix,module,team\n\"a,m,t\n", HEAP, STACKS, "rules.csv:2:1: unterminated quote"),
    ("rules: text after a quote", "prefix,module,team\n\"a\"b,m,t\n", HEAP, STACKS, "rules.csv:2:4: text after a closing quote"),
    ("rules: a quote inside", "prefix,module,team\na\"b,m,t\n", HEAP, STACKS, "rules.csv:2:2: quote inside an unquoted field"),
    ("rules: a NUL byte", b"prefix,module,team\na\0,m,t\n", HEAP, STACKS, "rules.csv:2:2: NUL byte"),
    ("rules: Latin-1", b"prefix,module,team\ncaf\xe9,m,t\n", HEAP, STACKS, "rules.csv:2:4: not UTF-8"),
    ("rules: includes nothing there", "prefix,module,team\n#include no.csv\n", HEAP, STACKS, "rules.csv:2:1: includes "),
    ("rules: includes itself", "prefix,module,team\n#include rules.csv\n", HEAP, STACKS, "rules.csv:2:1: includes "),
    ("heap: empty", RULES, "", STACKS, "heap.csv:1:1: missing header line"),
    ("heap: no header", RULES, "a,1\n", STACKS, "heap.csv:1:1: the first line must name the columns"),
    ("heap: no bytes column", RULES, "class,count\na,1\n", STACKS, "heap.csv:1:1: the first line must name the columns"),
    ("heap: a column twice", RULES, "class,class,retained_bytes\n", STACKS, "heap.csv:1:7: column 'class' appears twice"),
    ("heap: a row too short", RULES, HEAP + "b\n", STACKS, "heap.csv:3:2: missing column 'retained_bytes'"),
    ("heap: a row too long", RULES, HEAP + "b,2,3\n", STACKS, "heap.csv:3:5: 3 columns; the header names 2"),
    ("heap: an unquoted comma in numbers", RULES, HEAP + "b,1,024\n", STACKS, "heap.csv:3:5: 3 columns"),
    ("heap: no class", RULES, HEAP + ",2\n", STACKS, "heap.csv:3:1: empty class"),
    ("heap: no number", RULES, HEAP + "b,\n", STACKS, "heap.csv:3:3: \"\" is not a number of bytes"),
    ("heap: a word", RULES, HEAP + "b,many\n", STACKS, "heap.csv:3:3: \"many\" is not a number of bytes"),
    ("heap: negative", RULES, HEAP + "b,-1\n", STACKS, "heap.csv:3:3: \"-1\" is not a number of bytes"),
    ("heap: a fraction", RULES, HEAP + "b,1.5\n", STACKS, "heap.csv:3:3: \"1.5\" is not a number of bytes"),
    ("heap: a unit", RULES, HEAP + "b,1k\n", STACKS, "heap.csv:3:3: \"1k\" is not a number of bytes"),
    ("heap: beyond 64 bits", RULES, HEAP + "b,18446744073709551616\n", STACKS, "heap.csv:3:3: \"18446744073709551616\" is not"),
    ("heap: a sum beyond 64 bits", RULES, HEAP + "b,18446744073709551615\n", STACKS, "heap.csv:3:3: all bytes together"),
    ("heap: UTF-16", RULES, HEAP.encode("utf-16"), STACKS, "heap.csv:1: NUL byte"),
    ("heap: a broken histogram", RULES, " num     #instances         #bytes  class name\n   1:    x   3  [B\n", STACKS, "heap.csv:2: not a row"),
    ("heap: a histogram without bytes", RULES, " num     #instances         #bytes  class name\n   1:    4   z  [B\n", STACKS, "heap.csv:2: \"z\""),
    ("heap: two histograms", RULES, " num     #instances         #bytes  class name\n   1:    4   5  [B\nTotal 4 5\n num     #instances         #bytes  class name\n", STACKS,
     "heap.csv:4: a second histogram begins here"),
    ("heap: a histogram's broken end", RULES, " num     #instances         #bytes  class name\n   1:    4   5  [B\nTotal 4\n", STACKS, "heap.csv:3: not the end"),
    ("stacks: no count", RULES, HEAP, "a;b\n", "stacks.txt:1: a stack ends with a blank and a count"),
    ("stacks: a word for a count", RULES, HEAP, "a;b 1\na;b many\n", "stacks.txt:2: a stack ends with a blank and a count"),
    ("stacks: a negative count", RULES, HEAP, "a;b -1\n", "stacks.txt:1: a stack ends with a blank and a count"),
    ("stacks: a fraction", RULES, HEAP, "a;b 1.5\n", "stacks.txt:1: a stack ends with a blank and a count"),
    ("stacks: beyond 64 bits", RULES, HEAP, "a;b 99999999999999999999\n", "stacks.txt:1: the count 99999999999999999999 is too large"),
    ("stacks: a sum beyond 64 bits", RULES, HEAP, "a 1\nb 18446744073709551615\n", "stacks.txt:2: all counts together"),
    ("stacks: a count alone", RULES, HEAP, "a 1\n\n12\n", "stacks.txt:3: a count without a stack"),
    ("stacks: an empty frame", RULES, HEAP, "a;;b 1\n", "stacks.txt:1: an empty frame"),
    ("stacks: an empty leaf", RULES, HEAP, "a; 1\n", "stacks.txt:1: an empty frame"),
    ("stacks: a NUL byte", RULES, HEAP, b"a 1\na\0b 1\n", "stacks.txt:2: NUL byte"),
    ("stacks: UTF-16", RULES, HEAP, STACKS.encode("utf-16"), "stacks.txt:1: NUL byte"),
    ("stacks: a line without an end", RULES, HEAP, b"a 1\n" + LONG, "stacks.txt:2: line longer than"),
)


def malformed_inputs_are_named_in_one_line():
    assert len(MALFORMED) >= 40
    for what, rules, heap, stacks, words in MALFORMED:
        status, stdout, stderr = rollup(write("rules.csv", rules), write("heap.csv", heap), write("stacks.txt", stacks))
        expect(status == 2 and stdout == "", f"{what}: exit {status}, printed {stdout[:100]!r}")
        expect(stderr.count("\n") == 1 and words in stderr, f"{what}: {stderr!r} does not say {words!r}")
    for files, words in ((("nosuch.csv", "heap.csv", "stacks.txt"), "nosuch.csv: cannot open"), (("rules.csv", ".", "stacks.txt"), ".: cannot read"),
                         (("rules.csv", "heap.csv", "nosuch.txt"), "nosuch.txt: cannot open")):
        write("rules.csv", RULES), write("heap.csv", HEAP), write("stacks.txt", STACKS)
        status, stdout, stderr = rollup(*files)
        expect(status == 2 and stdout == "" and words in stderr, f"{files}: exit {status}, {stderr!r}")
    for limit in ("-1", "101", "nan", "ten"):
        status, _, stderr = rollup("rules.csv", "heap.csv", "stacks.txt", limit)
        expect(status == 2, f"limit {limit}: exit {status}, {stderr!r}")
    status, _, stderr = rollup("rules.csv", write("none.csv", "class,retained_bytes\n"), write("none.txt", ""))
    expect(status == 2 and "nothing to roll up" in stderr, f"nothing: exit {status}, {stderr!r}")


def main():
    run_all("rollup", (
        generated_inputs_agree_with_the_plain_script, the_figure_by_creator_and_by_holder, the_estimate_of_a_cache,
        containers_divide_without_losing_a_byte, classes_in_every_spelling, files_of_every_origin,
        limits_decide_the_exit, formats_say_the_same, malformed_inputs_are_named_in_one_line))


if __name__ == "__main__":
    main()
