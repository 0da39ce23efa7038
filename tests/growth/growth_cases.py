"""What the tests here share: cases that compose profiles and run the command on them."""
import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import target  # noqa: E402

RULES = "prefix,module,team\ncom.acme.billing.,billing,payments\ncom.acme.search.,search,discovery\nlib:libnative.so,native,core\n"
HEAD = """library libc /nowhere/lib/libc.so.6
library native /nowhere/lib/libnative.so.{version}
exe /nowhere/bin/{exe}
host node
allocator libc.so.6
interval {interval}
pid {pid}
started {started}
uptime {uptime}
end exit:0
"""
SITES = {"invoice": "libc+100 java:com.acme.billing.Invoice.add:{line}", "index": "libc+100 java:com.acme.search.Index.add:{line}",
         "table": "libc+100 native+{offset}", "nobody": "libc+100 java:org.geo.Tile.load"}
WEIGHT = 524320  # of a block of 64 bytes at 512 KiB

_cadastre = _compose = _scratch = None
_problems = []


def expect(condition, message):
    if not condition:
        _problems.append(message)


def path_of(name):
    return os.path.join(_scratch, name)


def write(name, content):
    path = path_of(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
    return name


def compose_text(name, text):
    with open(path_of(name + ".txt"), "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run([_compose, path_of(name + ".txt"), path_of(name)], check=True)
    return name


def compose(name, samples, sites=None, exe="pay", interval=524288, pid=4242, started=0, uptime=3600, snapshot=None, line=10, offset="200", version="3"):
    """A profile NAME with these samples: (site, number) or (site, number, seconds of uptime). Same order, same blocks."""
    text = HEAD.format(exe=exe, interval=interval, pid=pid, started=started, uptime=uptime, version=version)
    if snapshot:
        text += f"snapshot {snapshot}\n"
    for site, frames in (sites or SITES).items():
        text += f"site {site} " + frames.format(line=line, offset=offset) + "\n"
    for site, number, *seconds in samples:
        weight = 64 if interval == 1 else WEIGHT
        text += f"live {site} 64 {weight} {number} - {seconds[0] if seconds else 1}\n"
    return compose_text(name, text)


def cadastre(*words, environment=None):
    """(exit status, stdout, stderr), run where the profiles are."""
    ran = target.run([_cadastre, *words], environment, cwd=_scratch)
    return ran.status, ran.stdout, ran.stderr


def refused(what, words, said):
    """Exit 2, nothing on stdout, one line that says what is wrong."""
    status, stdout, stderr = cadastre(*words)
    expect(status == 2 and stdout == "" and stderr.count("\n") == 1 and said in stderr, f"{what}: exit {status}, {stdout[:200]!r}, {stderr!r}")


def run_all(name, cases):
    global _cadastre, _compose, _scratch
    parser = argparse.ArgumentParser()
    parser.add_argument("--cadastre", required=True)
    parser.add_argument("--compose", required=True)
    arguments = parser.parse_args()
    _cadastre, _compose = os.path.abspath(arguments.cadastre), os.path.abspath(arguments.compose)
    for case in cases:
        _scratch = target.scratch_directory(name)
        try:
            write("owners.csv", RULES)
            case()
        except Exception as error:  # one broken case must not hide the others
            _problems.append(f"{case.__name__}: {error!r}")
        finally:
            target.remove(_scratch)
    target.finish(_problems[:30])
