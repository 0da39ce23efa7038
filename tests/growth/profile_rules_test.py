#!/usr/bin/env python3
"""`cadastre rules` on profiles: a starter file that owns what the profile has, and rules that matched nothing in it.

Exists because a starter file that does not own what it was made of, or a dead rule that looks alive, costs the first hour with the product.
"""
import os

from growth_cases import cadastre, compose, compose_text, expect, path_of, refused, run_all, write


def init_writes_a_rule_for_each_class_without_a_package():
    os.remove(path_of("owners.csv"))
    compose("pay.cad", [("main", 300), ("cart", 50), ("packed", 20), ("native", 400)],
            sites={"main": "libc+100 java:Shop.main", "cart": "libc+100 java:Cart$Item.add", "packed": "libc+100 java:com.acme.billing.pdf.Invoice.add",
                   "native": "libc+100 native+200"})
    status, stdout, stderr = cadastre("rules", "init", "pay.cad")
    rows = [line for line in stdout.splitlines() if not line.startswith("#")]
    expect(status == 0 and stderr == "", f"init: exit {status} {stderr}")
    # By bytes; a class without a package has a rule of its own, not the letter it begins with.
    expect(rows == ["prefix,module,team", "lib:libnative.so,libnative.so,TEAM", "Shop.,Shop,TEAM", "Cart$,Cart,TEAM", "com.acme.billing.,com.acme.billing,TEAM"],
           f"init:\n{stdout}")
    write("owners.csv", stdout)
    status, told, _ = cadastre("rules", "lint", "owners.csv")
    expect(status == 0, f"the starter file has faults:\n{told}")
    status, told, _ = cadastre("check", "pay.cad", "--max-unattributed", "0")
    expect(status == 0, f"the starter file does not own what it was made of:\n{told}")


def lint_tells_rules_that_nothing_matched():
    compose("pay.cad", [("invoice", 300), ("index", 50)])
    compose("more.cad", [("table", 300)])
    status, told, _ = cadastre("rules", "lint", "owners.csv", "--profile", "pay.cad")
    # Sites are in the file whether anything is alive there or not: all three are met.
    expect(status == 0 and "3 rules, no fault" in told, f"all are met: exit {status}\n{told}")
    write("owners.csv", "prefix,module,team\ncom.acme.billing.,billing,payments\ncom.acme.gone.,gone,core\nthread:nosuch-,pool,core\n")
    status, told, _ = cadastre("rules", "lint", "owners.csv", "--profile", "pay.cad", "--profile", "more.cad")
    lines = told.splitlines()
    expect(status == 1 and len(lines) == 3 and lines[0].startswith("owners.csv:3: ") and "com.acme.gone." in lines[0] and lines[1].startswith("owners.csv:4: "),
           f"dead rules: exit {status}\n{told}")
    status, told, _ = cadastre("rules", "lint", "owners.csv")
    expect(status == 0, f"without a profile nothing is dead: {told}")
    # The file may follow the profile.
    expect(cadastre("rules", "lint", "--profile", "pay.cad", "owners.csv")[:2] == cadastre("rules", "lint", "owners.csv", "--profile", "pay.cad")[:2], "lint: FILE behind --profile")
    write("none.csv", "prefix,module,team\n# nothing yet\n")
    status, told, _ = cadastre("rules", "lint", "none.csv")
    expect(status == 1 and "none.csv:1: no rule in it" in told, f"a file without rules: exit {status}\n{told}")
    refused("lint: no such profile", ["rules", "lint", "owners.csv", "--profile", "nosuch.cad"], "nosuch.cad")


def a_root_that_is_not_there_is_told():
    compose("pay.cad", [("invoice", 300)])
    for command in (["symbolize", "pay.cad", "-o", "out.cad"], ["report", "pay.cad"], ["check", "pay.cad", "--max-unattributed", "5"], ["diff", "pay.cad", "pay.cad"]):
        refused(f"{command[0]} --root", command + ["--root", "/nonexistent"], "--root /nonexistent: No such file or directory")
        refused(f"{command[0]} --root FILE", command + ["--root", "owners.csv"], "--root owners.csv: no directory")
    expect(not os.path.exists(path_of("out.cad")), "symbolize left a file behind")


def guesses_that_hold_nothing_are_left_out():
    os.remove(path_of("owners.csv"))
    compose("pay.cad", [("invoice", 300)], sites={"invoice": "libc+100 java:com.acme.billing.Invoice.add", "index": "libc+100 java:com.acme.search.Index.add"})
    with open(path_of("pay.cad.txt"), encoding="utf-8") as file:
        text = file.read()
    compose_text("freed.cad", text + "freed index 64 524320 50\n")
    stdout = cadastre("report", "freed.cad")[1]
    expect("com.acme.billing ?" in stdout and "com.acme.search ?" not in stdout, f"a guess without a byte:\n{stdout}")
    stdout = cadastre("report", "freed.cad", "--metric", "allocated")[1]
    expect("com.acme.search ?" in stdout, f"by volume it has its row:\n{stdout}")


if __name__ == "__main__":
    run_all("profile-rules", (init_writes_a_rule_for_each_class_without_a_package, lint_tells_rules_that_nothing_matched,
                              a_root_that_is_not_there_is_told, guesses_that_hold_nothing_are_left_out))
