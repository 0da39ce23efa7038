"""The roll-up in thirty lines: what `cadastre rollup` must agree with in every number.

Written from the requirement alone: longest prefix wins, the file's order breaks ties; a stack falls to its first frame from the leaf that is
neither unmatched nor the platform's; no such frame: unattributed, or the platform's if no frame is unmatched. No containers, no Java spellings.
"""
import csv


def is_platform(module):
    return module == "platform" or module.startswith("platform/")


def longest(rules, text):
    best = None
    for rule in rules:
        if text.startswith(rule["prefix"]) and (best is None or len(rule["prefix"]) > len(best["prefix"])):
            best = rule
    return best


def roll_up(rules_path, heap_path, stacks_path):
    rules = list(csv.DictReader(open(rules_path, newline="", encoding="utf-8")))
    modules, teams = {}, {}
    for row in csv.DictReader(open(heap_path, newline="", encoding="utf-8")):
        rule = longest(rules, row["class"])
        module, team = (rule["module"], rule["team"]) if rule else ("unattributed", "unattributed")
        modules.setdefault(module, [0, 0])[0] += int(row["retained_bytes"])
        teams[team] = teams.get(team, 0) + int(row["retained_bytes"])
    for line in open(stacks_path, encoding="utf-8"):
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        found = [longest(rules, frame) for frame in reversed(stack.split(";"))]
        owned = [rule["module"] for rule in found if rule and not is_platform(rule["module"])]
        module = owned[0] if owned else "unattributed" if None in found else "platform"
        modules.setdefault(module, [0, 0])[1] += int(count)
    return modules, teams
