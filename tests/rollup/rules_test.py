#!/usr/bin/env python3
"""`cadastre rules`: what lint finds, what explain says, what coverage misses, what import makes of CODEOWNERS.

Exists because rules decide who is asked about memory: a rule that is quietly dead, or a package that nobody owns, is found here or in
production. Every case is a function below; all run, all failures are printed.
"""
import io
import os
import shutil
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_cases import cadastre, expect, path_of, run_all, write  # noqa: E402

HEADER = "prefix,module,team\n"


def rules(*words, stdin=""):
    return cadastre("rules", *words, stdin=stdin)


def lint(content):
    status, stdout, stderr = rules("lint", write("owners.csv", content))
    expect(stderr == "", f"lint: {stderr}")
    lines = stdout.splitlines()
    expect(status == (1 if len(lines) > 1 else 0), f"lint: exit {status} for {lines}")
    return lines[:-1]


def lint_finds_each_fault_with_its_line():
    for what, content, faults in (
            ("none", HEADER + "a::,a,t\nlib:libb,b,t\nsrc:x/y/,c,t\nsrc:x/z.cc,d,t\nthread:w,e,t\nbilling_,f,t\ncom.acme.Invoice,g,t\n", []),
            ("the same again", HEADER + "a::,a,t\na::,a,t\n", ["owners.csv:3: prefix a:: stands here again, first at owners.csv:2"]),
            ("two owners", HEADER + "a::,a,t\na::,b,t\n", ["owners.csv:3: prefix a:: is never reached: the rule at owners.csv:2 (a) comes first"]),
            ("inside a name", HEADER + "com.acme.bill,b,t\n",
             ["owners.csv:2: prefix com.acme.bill ends inside a name and also catches com.acme.billx; write com.acme.bill."]),
            ("inside a namespace", HEADER + "acme::bill,b,t\n",
             ["owners.csv:2: prefix acme::bill ends inside a name and also catches acme::billx; write acme::bill::"]),
            ("inside a directory", HEADER + "src:services/bill,b,t\n",
             ["owners.csv:2: prefix src:services/bill ends inside a name and also catches src:services/billx; write src:services/bill/"]),
            ("a longer twin", HEADER + "com.acme.bill,b,t\ncom.acme.bill.,c,t\n",
             ["owners.csv:2: prefix com.acme.bill has only names such as com.acme.billx left: com.acme.bill. at owners.csv:3 is longer and has the "
              "rest"]),
            ("several teams", HEADER + "a::,m,t1\nb::,m,t2\n", ["owners.csv:3: module m has several teams: t1 at owners.csv:2, t2 at owners.csv:3"]),
            ("a team spelt in two ways", HEADER + "a::,a,Data Platform\nb::,b,data-platform\nc::,c,data-platform\n",
             ["owners.csv:3: team data-platform is spelt Data Platform at owners.csv:2"]),
            ("platform by accident", HEADER + "com.acme.core.,platform,core\n",
             ["owners.csv:2: module platform is walked past, so com.acme.core. owns nothing in a stack; if that is meant, say so by the kind "
              "transparent (or owner, or container)"]),
            ("the platform in other words", HEADER + "com.acme.core.,Platform,core\n",
             ["owners.csv:2: module Platform is not the platform's: only platform and platform/... are"]),
            ("the platform itself", HEADER + "java.util.,platform,\nlib:libz.so,platform/zlib,\n", []),
            ("a kind for a marker", HEADER + "container:com.acme.Cache.,cache,core\nPools:acme::Pool::,pool,core\n",
             ["owners.csv:2: prefix container:com.acme.Cache. is of a function called so: container: is no marker; write com.acme.Cache. and container in "
              "the column kind",
              "owners.csv:3: prefix Pools:acme::Pool:: is of a function called so: Pools: is no marker; write acme::Pool:: and pool in the column kind"]),
            ("slips of the pen", HEADER + "library:libz.so,a,t\nclas:com.acme.Foo.,b,t\nLib:libx.so,c,t\nthraed:http-,d,t\nsource:x/y/,e,t\nfile:x/z/,f,t\n",
             ["owners.csv:2: prefix library:libz.so is of a function called so: library: is no marker; write lib:libz.so",
              "owners.csv:3: prefix clas:com.acme.Foo. is of a function called so: clas: is no marker; write class:com.acme.Foo.",
              "owners.csv:4: prefix Lib:libx.so is of a function called so: Lib: is no marker; write lib:libx.so",
              "owners.csv:5: prefix thraed:http- is of a function called so: thraed: is no marker; write thread:http-",
              "owners.csv:6: prefix source:x/y/ is of a function called so: source: is no marker; write src:x/y/",
              "owners.csv:7: prefix file:x/z/ is of a function called so: file: is no marker; write src:x/z/"]),
            ("namespaces and names with colons", HEADER + "lists:map,a,t\nclas::Foo::,b,t\nLazyCompile:f,c,t\n", []),
            ("a container of threads", "prefix,module,team,kind\nthread:http-,web,t,container\n",
             ["owners.csv:2: a thread is in no stack, so the kind container of thread:http- says nothing: only owner does"]),
            ("a container without a frame", "prefix,module,team,kind\nclass:com.acme.Cache$Entry,cache,t,container\n",
             ["owners.csv:2: no frame says who created what lies in class:com.acme.Cache$Entry: give module cache a rule of kind container for the functions "
              "that fill it too"]),
            ("a container with its frame", "prefix,module,team,kind\nclass:com.acme.Cache$Entry,cache,t,container\ncom.acme.Cache.,cache,t,container\n", []),
            ("the platform, meant", "prefix,module,team,kind\ncom.acme.core.,platform,core,transparent\n", [])):
        found = lint(content)
        expect(found == faults, f"lint, {what}: {found}")
    write("teams/b.csv", HEADER + "a::,b,t\n")
    found = lint(HEADER + "a::,a,t\n#include teams/b.csv\n")
    expect(found == ["teams/b.csv:2: prefix a:: is never reached: the rule at owners.csv:2 (a) comes first"], f"lint, included: {found}")


def explain_names_the_winner_and_every_candidate():
    write("owners.csv", "prefix,module,team,kind\ncom.acme.,acme,core,\ncom.acme.billing.,billing,payments,\ncom.acme.billing.,late,x,\n"
          "acme::Cache::,cache,core,container\nlib:libbilling.so,billing.native,payments,\nclass:byte[],bytes,core,\nthread:http-,web,web,\n"
          "src:billing/,billing.src,payments,\n")
    for frame, words in (
            ("com.acme.billing.Invoice.add", ["billing (payments) by owners.csv:3 com.acme.billing.",
                                              "not acme (core) by owners.csv:2 com.acme.: shorter",
                                              "not late (x) by owners.csv:4 com.acme.billing.: the same prefix, further down"]),
            ("os::malloc", ["no rule matches", "in libjvm.so it would be platform/jvm.os by the built-in rule lib:libjvm.so!os::"]),
            ("os::malloc (libjvm.so)", ["platform/jvm.os by the built-in rule lib:libjvm.so!os::", "not platform/jvm by the built-in rule lib:libjvm.so: shorter"]),
            ("libjvm.so!os::malloc", ["platform/jvm.os by the built-in rule lib:libjvm.so!os::"]),
            ("deflateInit2_ (libz.so.1)", ["platform/zlib by the built-in rule lib:libz.so, walked past"]),
            ("com.acme.Shop.run (Shop.java:8)", ["acme (core) by owners.csv:2"]),
            ("std::vector<int> acme::Cache::Put(int) const", ["cache (core) by owners.csv:5 acme::Cache::, a container"]),
            ("operator new(unsigned long) (libstdc++.so.6)", ["platform/"]),
            ("java.lang.String com.acme.Shop.name()", ["acme (core) by owners.csv:2"]),
            ("java.util.List<java.lang.String> com.acme.Shop.names(int, java.lang.String)", ["acme (core) by owners.csv:2"]),
            ("public static void com.acme.billing.Invoice.run()", ["billing (payments) by owners.csv:3"]),
            ("com/acme/billing/Invoice.add(Ljava/lang/String;I)V", ["billing (payments) by owners.csv:3"]),
            ("com/acme/billing/Invoice.add(Ljava/lang/String|I)V", ["billing (payments) by owners.csv:3"]),
            ("app//com.acme.Shop.run(Shop.java:8)", ["acme (core) by owners.csv:2"]),
            ("app/com.acme.shop@2.1/com.acme.Shop.run(Shop.java:8)", ["acme (core) by owners.csv:2"]),
            ("java.base@21.0.2/java.util.zip.Deflater.init", ["platform/jdk.zip"]),
            ("github.com/acme/shop.Add", ["no rule matches"]),
            ("acme::Cache::Put(int)", ["cache (core) by owners.csv:5 acme::Cache::, a container"]),
            ("f (billing/x.cc:3)", ["billing.src (payments) by owners.csv:9"]),
            ("lib:/opt/libbilling.so.2", ["billing.native (payments) by owners.csv:6"]),
            ("class:[B", ["bytes (core) by owners.csv:7 class:byte[]"]),
            ("class:[Lcom.acme.Foo;", ["class:[Lcom.acme.Foo;: acme (core) by owners.csv:2"]),
            ("class:[[Lcom/acme/billing/Row;", ["billing (payments) by owners.csv:3"]),
            ("thread:http-nio-8080", ["web (web) by owners.csv:8"]),
            ("nobody_knows", ["nobody_knows: no rule matches\n"])):
        status, stdout, stderr = rules("explain", frame)
        expect(status == 0 and stderr == "", f"explain {frame}: exit {status}, {stderr}")
        for word in words:
            expect(word in stdout, f"explain {frame} lacks {word!r}:\n{stdout}")


def explain_walks_whole_stacks():
    stack = ("  malloc (libc.so.6): platform/libc by the built-in rule lib:libc.so, walked past while an owner is looked for\n"
             "  acme::Cache::Put: cache (core) by owners.csv:5 acme::Cache::, a container: walked past while who created what lies in it is looked for\n"
             "* com.acme.billing.Load.run: billing (payments) by owners.csv:3 com.acme.billing.\n"
             "  main: no rule matches\n"
             "charged to billing (payments) by owners.csv:3 com.acme.billing., via cache, held by cache\n")
    frames = ["malloc (libc.so.6)", "acme::Cache::Put", "com.acme.billing.Load.run", "main"]
    for what, words, stdin in (("arguments", frames, ""), ("collapsed", [";".join(reversed(frames)) + " 42"], ""), ("of a report", [" < ".join(frames)], ""),
                               ("stdin", ["-"], "".join(f"   {frame}\n" for frame in frames))):
        status, stdout, _ = rules("explain", *words, stdin=stdin)
        expect(status == 0 and stdout == stack, f"explain a stack, {what}:\n{stdout}")
    stdout = rules("explain", "malloc (libc.so.6)", "stranger")[1]
    expect("unattributed: no frame has an owner, and no rule matches stranger\n" in stdout, f"explain an unowned stack:\n{stdout}")
    stdout = rules("explain", "malloc (libc.so.6)", "f (libz.so)")[1]
    expect("charged to platform: no frame has an owner, and a rule matches each, via platform/zlib\n" in stdout, f"explain a platform's stack:\n{stdout}")


def jar(entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def coverage_finds_what_nobody_owns():
    write("owners.csv", HEADER + "com.acme.billing.,billing,payments\ncom.acme.,misc,core\nlib:libpay.so,pay,payments\nsrc:services/,services,core\n")
    inner = jar({"net/vendor/codec/Codec.class": b"", "net/vendor/codec/Codec$1.class": b""})
    app = write("app.jar", jar({"BOOT-INF/classes/com/acme/billing/Invoice.class": b"", "com/acme/shop/Cart.class": b"", "org/geo/tiles/Tile.class": b"",
                                "META-INF/versions/9/org/geo/tiles/Map.class": b"", "org/springframework/Context.class": b"", "Main.class": b"",
                                "module-info.class": b"", "native/libpay.so": b"", "native/libgeo.so.2": b"", "BOOT-INF/lib/codec.jar": inner}))
    status, stdout, stderr = rules("coverage", "--jar", app)
    rows = {line.split()[0]: line for line in stdout.splitlines()[1:-1]}
    expect(status == 1 and set(rows) == {"org.geo.tiles.", "net.vendor.codec.", "Main.", "lib:libgeo.so"}, f"coverage of a jar: exit {status} {stderr}\n{stdout}")
    expect("2 classes" in rows.get("org.geo.tiles.", "") and "codec.jar" in rows.get("net.vendor.codec.", ""), f"coverage: {rows}")
    stdout = rules("coverage", "--weak", "--jar", app)[1]
    expect("com.acme.shop." in stdout and "owners.csv:3 com.acme." in stdout, f"coverage --weak:\n{stdout}")
    write("build/classes/java/main/com/acme/billing/Invoice.class", b"")
    expect(rules("coverage", "--dir", path_of("build"))[0] == 0, "coverage of a build directory that is owned")
    write("build/classes/java/main/org/geo/Tile.class", b"")
    status, stdout, _ = rules("coverage", "--dir", path_of("build"))
    expect(status == 1 and "org.geo." in stdout, f"coverage of a build directory: exit {status}\n{stdout}")
    write("source/services/x.cc", "int x;\n")
    write("source/geo/y.cc", "// y\nnamespace geo::tiles {\n}\n")
    write("source/java/Q.java", "/* c */\npackage com.quiet.corner;\nclass Q {}\n")
    write("source/tools/z.c", "int z;\n")
    write("source/java/Same.java", "/* c */ package com.same.line; class Same {}\n")
    write("source/java/package-info.java", "@Quiet(\"package no.such;\") @Other(names = {\"a\"}) package com.annotated.here;\n")
    write("source/kotlin/Bare.kt", "@file:JvmName(\"x\")\n// package no.such\npackage com.bare.kotlin\n\nimport a.b\n\nfun f() {}\n")
    write("source/geo/alias.cc", "#define namespace_of(x) namespace x {\nnamespace fs = std::filesystem;\nusing namespace std;\n"
          "const char* text = \"namespace no { \";\nnamespace {\nint hidden;\n}\nnamespace [[deprecated]] geo::inline maps\n{\n}\n")
    status, stdout, _ = rules("coverage", "--src", path_of("source"))
    rows = {line.split()[0] for line in stdout.splitlines()[1:-1]}
    expect(status == 1 and rows == {"geo::tiles::", "geo::maps::", "com.quiet.corner.", "com.same.line.", "com.annotated.here.", "com.bare.kotlin.", "src:tools/"},
           f"coverage of sources: exit {status}\n{stdout}")
    for words, said in ((["--jar", write("broken.jar", b"PK no")], "broken.jar: cannot read the jar"), (["--dir", "/nowhere"], "/nowhere: cannot read"),
                        (["--src", path_of("teams")], "no class, library or source was found"), ([], "nothing to look at")):
        status, _, stderr = rules("coverage", *words)
        expect(status == 2 and said in stderr, f"coverage {words}: exit {status}, {stderr!r}")


def coverage_reads_the_functions_of_libraries():
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return
    source = write("native/lib.cc", "namespace acme::billing { void F() {} }\nnamespace geo::tiles { void G() {} }\nextern \"C\" void plain() {}\n")
    directory = os.path.dirname(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", os.path.join(directory, "libmixed.so"), source], check=True)
    write("owners.csv", HEADER + "acme::billing::,billing,payments\n")
    status, stdout, _ = rules("coverage", "--dir", directory)
    rows = {line.split()[0] for line in stdout.splitlines()[1:-1]}
    expect(status == 1 and rows == {"geo::tiles::"}, f"coverage of a library: exit {status}\n{stdout}")
    write("owners.csv", HEADER + "lib:libmixed.so,mixed,payments\n")
    expect(rules("coverage", "--dir", directory)[0] == 0, "coverage of a library that a rule owns")


CODEOWNERS = """# who reviews what
*                          @acme/everyone
*.md                       @acme/docs
/src/billing/              @acme/payments @acme/leads
src/billing/Legacy.java    @acme/archive
/src/search/**/Index.java  @anna
/native/geo/               geo@acme.com
/native/geo/shared.cc
[Section]
"""


def make_repository():
    for path, text in (("src/billing/Invoice.java", "package com.acme.billing;\n"), ("src/billing/pdf/Pdf.java", "package com.acme.billing.pdf;\n"),
                       ("src/billing/Legacy.java", "package com.acme.billing;\n"), ("src/search/a/Index.java", "package com.acme.search;\n"),
                       ("src/search/Query.java", "package com.acme.search;\n"), ("src/web/Page.kt", "package com.acme.web\n"),
                       ("native/geo/tile.cc", "int t;\n"), ("native/geo/shared.cc", "int s;\n"), ("README.md", "x\n"), (".git/config.cc", "int c;\n")):
        write(os.path.join("repo", path), text)
    return path_of("repo"), write("CODEOWNERS", CODEOWNERS)


def import_makes_rules_of_codeowners():
    repository, codeowners = make_repository()
    status, stdout, stderr = rules("import", "--codeowners", codeowners, "--repo", repository)
    expect(status == 0, f"import: exit {status}, {stderr}")
    wanted = """prefix,module,team
src:native/geo/tile.cc,native/geo,geo@acme.com
com.acme.billing.Legacy$,com.acme.billing (archive),archive
com.acme.billing.Legacy.,com.acme.billing (archive),archive
com.acme.billing.Invoice$,com.acme.billing (payments),payments
com.acme.billing.Invoice.,com.acme.billing (payments),payments
com.acme.billing.pdf.,com.acme.billing.pdf,payments
com.acme.search.Index$,com.acme.search (anna),anna
com.acme.search.Index.,com.acme.search (anna),anna
com.acme.search.Query$,com.acme.search (everyone),everyone
com.acme.search.Query.,com.acme.search (everyone),everyone
com.acme.web.,com.acme.web,everyone
# not said: CODEOWNERS:3: *.md @acme/docs: decides for no source of Java, Kotlin, Scala, Groovy, C or C++
# not said: CODEOWNERS:4: /src/billing/ @acme/payments @acme/leads: a rule has one team: payments
# not said: CODEOWNERS:9: [Section] : sections and negations are not understood
"""
    wanted = wanted.replace("native/geo,geo@", "native/geo (geo@acme.com),geo@")
    expect(stdout == wanted, f"import:\n{stdout}")
    write("owners.csv", stdout)
    status, told, _ = rules("lint", path_of("owners.csv"))
    expect(status == 0, f"imported rules have faults:\n{told}")
    status, told, _ = rules("import", "--codeowners", codeowners, "--repo", repository, "--check")
    expect(status == 0 and "no difference" in told, f"import --check of its own rules: exit {status}\n{told}")
    write("owners.csv", HEADER + "com.acme.,all,everyone\nsrc:native/,native,geo@acme.com\n")
    status, told, _ = rules("import", "--codeowners", codeowners, "--repo", repository, "--check")
    expect(status == 1 and "com.acme.billing.pdf.: CODEOWNERS:4 says payments, owners.csv:2 com.acme. says everyone (1 source, src/billing/pdf/Pdf.java)" in told,
           f"import --check: exit {status}\n{told}")
    for words, said in ((["--codeowners", "nosuch"], "nosuch: cannot open"), (["--codeowners", codeowners, "--repo", "/nowhere"], "/nowhere: cannot read"),
                        (["--codeowners", codeowners, "--repo", path_of("teams")], "no source")):
        status, _, stderr = rules("import", *words)
        expect(status == 2 and said in stderr, f"import {words}: exit {status}, {stderr!r}")


def import_sees_every_class_of_a_file():
    for path, text in (("a/Invoice.java", "package com.acme.mixed;\n\n@Table(name = \"class Fake\")\npublic class Invoice {\n  class Inner {}\n  char brace = '{';\n}\n\n"
                        "// class Never {}\nrecord Line(int n) {}\n/* interface Never {} */ enum Kind { A { void f() {} } }\n"),
                       ("a/Tools.kt", "package com.acme.mixed\n\nfun interface Job { fun run() }\nfun open() = \"{\"\nenum class Mode { A }\n"),
                       ("b/Other.java", "package com.acme.mixed;\nclass Other {}\n")):
        write(os.path.join("mixed", path), text)
    codeowners = write("CODEOWNERS", "/a/ @acme/one\n/b/ @acme/two\n")
    status, stdout, stderr = rules("import", "--codeowners", codeowners, "--repo", path_of("mixed"))
    prefixes = {line.split(",")[0]: line.split(",")[2] for line in stdout.splitlines()[1:]}
    wanted = {f"com.acme.mixed.{name}{end}": team for name, team in (("Invoice", "one"), ("Line", "one"), ("Kind", "one"), ("Job", "one"), ("ToolsKt", "one"), ("Mode", "one"),
                                                                      ("Other", "two")) for end in ".$"}
    expect(status == 0 and prefixes == wanted, f"classes of one file: exit {status} {stderr}\n{stdout}")
    write("owners.csv", "".join(line + "\n" for line in stdout.splitlines() if "Line" not in line))
    status, told, _ = rules("import", "--codeowners", codeowners, "--repo", path_of("mixed"), "--check")
    expect(status == 1 and "com.acme.mixed.: CODEOWNERS:1 says one, no rule matches (1 source, a/Invoice.java)" in told, f"a second class without a rule: exit {status}\n{told}")


def codeowners_patterns_mean_what_they_mean_to_github():
    for pattern, path, matches in (
            ("*", "a/b.java", True), ("*.java", "a/b.java", True), ("/*.java", "a/b.java", False), ("/*.java", "b.java", True),
            ("docs/*", "docs/b.java", True), ("docs/*", "docs/c/b.java", False), ("docs/*", "x/docs/b.java", False), ("/docs/", "docs/c/b.java", True),
            ("docs/", "x/docs/c/b.java", True), ("docs/", "docs.java", False), ("**/logs", "x/y/logs/b.java", True), ("a/**/b.java", "a/b.java", True),
            ("a/**/b.java", "a/x/y/b.java", True), ("/a/**", "a/x/b.java", True), ("b.java", "a/b.java", True), ("a/?.java", "a/b.java", True),
            ("with\\ blank/", "with blank/b.java", True)):
        repository = path_of("patterns")
        shutil.rmtree(repository, ignore_errors=True)
        write(os.path.join("patterns", path), "package p.q;\n")
        status = rules("import", "--codeowners", write("CODEOWNERS", f"{pattern} @t # why\n"), "--repo", repository)[0]
        expect(status == (0 if matches else 2), f"{pattern} and {path}: exit {status}")


def main():
    run_all("rules", (
        lint_finds_each_fault_with_its_line, explain_names_the_winner_and_every_candidate, explain_walks_whole_stacks,
        coverage_finds_what_nobody_owns, coverage_reads_the_functions_of_libraries, import_makes_rules_of_codeowners, import_sees_every_class_of_a_file,
        codeowners_patterns_mean_what_they_mean_to_github))


if __name__ == "__main__":
    main()
