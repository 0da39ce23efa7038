#!/usr/bin/env python3
"""Real programs under a preload that compares each Nth allocation's stack with libunwind's (oracle_preload.cc).

At most one stack in a thousand may differ. A stack that we end, marked as cut, at code without unwind tables (V8's built-in functions in
node) must be equal as far as it goes; how many there are is printed.
Usage: oracle_programs_test.py PRELOAD
"""
import os
import shutil
import subprocess
import sys
import tempfile

MANY_ALLOCATIONS = ("gcc", "ld", "bash")
CXX_SOURCE = "#include <map>\n#include <string>\n#include <regex>\nint main() { std::map<std::string, int> m; m[\"a\"] = 1; " \
             "return std::regex_match(\"abc\", std::regex(\"[a-c]+\")) ? 0 : 1; }\n"


def programs(directory):
    source = os.path.join(directory, "a.cc")
    with open(source, "w") as f:
        f.write(CXX_SOURCE)
    text = os.path.join(directory, "text")
    with open(text, "w") as f:
        f.writelines("%d some words to sort and to compress %d\n" % (i * 7919 % 10007, i) for i in range(20000))
    yield "python", ["python3", "-c", "import json, re, ssl, sqlite3, zlib, ctypes, decimal, threading\n"
                     "c = sqlite3.connect(':memory:'); c.execute('create table t(a, b)')\n"
                     "c.executemany('insert into t values(?, ?)', [(i, str(i)) for i in range(3000)])\n"
                     "print(len(c.execute('select * from t order by b').fetchall()))\n"
                     "print(len(json.dumps([{'a': i} for i in range(5000)])), len(re.findall('a+', 'ab' * 1000)))\n"
                     "t = [threading.Thread(target=lambda: sorted(range(1000))) for _ in range(8)]\n"
                     "[x.start() for x in t]; [x.join() for x in t]"]
    yield "perl", ["perl", "-e", "my %h; $h{$_ % 1000} .= $_ for 1..30000; print join(',', sort keys %h), \"\\n\";"]
    yield "git", ["git", "-C", os.path.dirname(os.path.abspath(__file__)), "log", "--stat", "-n", "30"]
    yield "gcc", ["g++", "-O1", "-c", source, "-o", os.path.join(directory, "a.o")]
    yield "ld", ["g++", source, "-o", os.path.join(directory, "a")]
    yield "sort", ["sort", "--parallel=4", text]
    yield "xz", ["xz", "-k", "-1", "-T2", "-c", text]
    yield "tar", ["tar", "-cJf", os.path.join(directory, "t.tar.xz"), "-C", directory, "text"]
    yield "bash", ["bash", "-c", "for i in $(seq 200); do a[$i]=$(printf %d $i); done; echo ${#a[@]}"]
    yield "node", ["node", "-e", "let s = 0; for (let i = 0; i < 1e4; i++) s += JSON.stringify({i}).length; console.log(s)"]
    yield "java", ["java", "-version"]  # most of its stacks end in generated code
    yield "gdb", ["gdb", "-batch", "-ex", "info line main", "/bin/true"]


def main():
    preload = sys.argv[1]
    compared = different = cut = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, command in programs(directory):
            if shutil.which(command[0]) is None:
                print(f"{name:8} not installed")
                continue
            out = os.path.join(directory, name + ".counts")
            environment = dict(os.environ, LD_PRELOAD=preload, CADASTRE_ORACLE_OUT=out,
                               CADASTRE_ORACLE_EVERY="101" if name in MANY_ALLOCATIONS else "13")
            result = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
            rows = [line.rsplit(" ", 4) for line in open(out)] if os.path.exists(out) else []
            sums = [sum(int(row[i]) for row in rows) for i in range(1, 5)]
            print(f"{name:8} status {result.returncode}, {len(rows)} processes, {sums[0]} stacks, {sums[1]} different, "
                  f"{sums[2]} cut, {sums[3]} frames")
            if sums[1]:
                print(result.stderr.decode(errors="replace")[:6000])
            if result.returncode < 0 or not rows:
                print(f"FAILED: {name} did not run to its end")
                return 1
            compared, different, cut = compared + sums[0], different + sums[1], cut + sums[2]
    print(f"all: {compared} stacks, {different} different, {cut} cut")
    if compared < 10000 or different * 1000 > compared:
        print("FAILED: more than one stack in a thousand differs, or too few were compared")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
