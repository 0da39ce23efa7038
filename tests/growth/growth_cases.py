"""What the tests here share: cases that compose profiles and run the command on them."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command_cases  # noqa: E402
from command_cases import cadastre, expect, path_of, program  # noqa: E402

RULES = "prefix,module,team\ncom.acme.billing.,billing,payments\ncom.acme.search.,search,discovery\nlib:libnative.so,native,core\n"
HEAD = """library libc /nowhere/lib/libc.so{build}
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


def write(name, content):
    """Its name: what is run is run where it lies, and says where a fault is by it."""
    command_cases.write(name, content)
    return name


def compose_text(name, text):
    with open(path_of(name + ".txt"), "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run([program("compose"), path_of(name + ".txt"), path_of(name)], check=True)
    return name


def compose(name, samples, sites=None, exe="pay", interval=524288, pid=4242, started=0, uptime=3600, snapshot=None, line=10, offset="200", version="3",
            areas=(), build=None):
    """A profile NAME with these samples: (site, number) or (site, number, seconds of uptime). Same order, same blocks. A snapshot's areas of memory: (start, end,
    name, resident bytes)."""
    text = HEAD.format(exe=exe, interval=interval, pid=pid, started=started, uptime=uptime, version=version,
                       build=f".6 {build}" if build else ".6")
    if snapshot:
        text += f"snapshot {snapshot}\n"
    for site, frames in (sites or SITES).items():
        text += f"site {site} " + frames.format(line=line, offset=offset) + "\n"
    for site, number, *seconds in samples:
        weight = 64 if interval == 1 else WEIGHT
        text += f"live {site} 64 {weight} {number} - {seconds[0] if seconds else 1}\n"
    for start, end, area, rss in areas:
        text += f"area {start:x} {end:x} {area} {rss}\n"
    return compose_text(name, text)


def refused(what, words, said):
    """Exit 2, nothing on stdout, one line that says what is wrong."""
    status, stdout, stderr = cadastre(*words)
    expect(status == 2 and stdout == "" and stderr.count("\n") == 1 and said in stderr, f"{what}: exit {status}, {stdout[:200]!r}, {stderr!r}")


def run_all(name, cases):
    command_cases.run_all(name, cases, ("cadastre", "compose"), before_each=lambda: write("owners.csv", RULES))
