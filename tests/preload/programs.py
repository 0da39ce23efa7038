"""The real programs that must not notice the preload: for each a function that runs a fixed job and tells all it did.

A job gets a Job object and returns (status, stdout, stderr), where stdout may have digests of files that were made appended, so that
a wrong output file is a difference too. Every job is deterministic; what a program prints that is not (times, pids, rates) is replaced
here, beside the reason.
"""
import hashlib
import os
import re
import shutil
import socket
import subprocess
import time

import target


class Missing(Exception):
    """The program is not installed here."""


def need(*names):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise Missing(f"{' or '.join(names)} is not installed")


class Job:
    def __init__(self, work, environment):
        self.work = work  # an empty directory, the same path for every run
        self.environment = environment
        self.status, self.stdout, self.stderr = 0, "", ""

    def write(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run(self, *command, stdin=b"", timeout=300, extra=None):
        """Runs one command under the environment; its output and status are added to the job's."""
        outcome = target.run(list(command), {"HOME": self.work, **(extra or {}), **self.environment}, cwd=self.work,
                             stdin=stdin, timeout=timeout)
        self.stdout += outcome.stdout + f"[status {outcome.status}]\n"
        self.stderr += outcome.stderr
        self.status = outcome.status
        return outcome

    def digest(self, name):
        with open(os.path.join(self.work, name), "rb") as file:
            self.stdout += f"{name} {hashlib.sha256(file.read()).hexdigest()}\n"

    def replace(self, pattern, replacement):
        self.stdout = re.sub(pattern, replacement, self.stdout, flags=re.M)
        self.stderr = re.sub(pattern, replacement, self.stderr, flags=re.M)


def bash(job):
    job.run(need("bash"), "-c", r"""
declare -A seen
for i in $(seq 1 3000); do seen[k$((i % 97))]+="$i,"; done
for k in "${!seen[@]}"; do echo "$k ${#seen[$k]}"; done | sort
x=$(for i in {1..200}; do echo "line $i"; done | while read -r a b; do echo "${b}${a}"; done | tail -n 3); echo "$x"
(exec 3>&1; echo sub >&3; exit 4); echo "sub ended with $?"
cat <(echo one) <(echo two) | tr a-z A-Z
echo problem >&2
ls /no/such/file
printf '%s\n' "${seen[k5]:0:40}"
exit 7
""")


def git(job):
    tool = need("git")
    fixed = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A",
             "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "1700000000 +0000",
             "GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
    job.run(tool, "init", "-q", "-b", "main", ".", extra=fixed)
    for commit in range(3):
        for n in range(60):
            job.write(f"d{n % 7}/file{n}.txt", f"{commit * n}\n" * (n * 20 + 1))
        job.run(tool, "add", ".", extra=fixed)
        job.run(tool, "commit", "-q", "-m", f"change {commit}", extra=fixed)
    job.write("d1/new.txt", "new\n")
    for arguments in (["status", "--porcelain", "--branch"], ["log", "--stat", "-p"], ["gc", "-q"], ["fsck", "--strict"],
                      ["diff", "HEAD~2", "--stat"], ["blame", "d3/file10.txt"], ["checkout", "nosuchbranch"]):
        job.run(tool, *arguments, extra=fixed)


SOURCE = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct Fib { static constexpr long value = Fib<N - 1>::value + Fib<N - 2>::value; };
template <> struct Fib<0> { static constexpr long value = 0; };
template <> struct Fib<1> { static constexpr long value = 1; };
int main() {
  std::map<std::string, std::vector<int>> index;
  for (int i = 0; i < 1000; i++) index[std::to_string(i % 31)].push_back(i);
  std::regex word("[0-9]+");
  for (auto& [key, values] : index) {
    std::sort(values.rbegin(), values.rend());
    if (std::regex_match(key, word)) std::cout << key << ' ' << values.front() << '\n';
  }
  int unused;
  std::cout << Fib<60>::value << std::endl;
}
"""


def gcc(job):
    tool = need("g++")
    job.write("source.cc", SOURCE)
    job.run(tool, "-std=c++17", "-O1", "-Wall", "-g", "-c", "source.cc", "-o", "source.o")
    job.digest("source.o")
    job.run(tool, "source.o", "-o", "program")
    job.run("./program")
    job.write("broken.cc", "#include <vector>\nint main() { std::vector<int> v = \"x\"; return y; }\n")
    job.run(tool, "-c", "broken.cc")
    # The name of collect2's and as's temporary files may appear in messages.
    job.replace(r"/tmp/cc\w+", "/tmp/cc")


PYTHON = r"""
import collections, ctypes, hashlib, json, re, subprocess, sys, threading, zlib
data = {f"key{i}": [i, str(i) * (i % 50), {"n": i / 7}] for i in range(3000)}
text = json.dumps(data)
print(len(text), hashlib.sha256(text.encode()).hexdigest(), zlib.crc32(zlib.compress(text.encode(), 9)))
words = collections.Counter(re.findall(r"[0-9]{2}", text)); print(words.most_common(5))
out = [None] * 8
def work(k):
    out[k] = sum(len(zlib.compress(bytes([k]) * 100000)) for _ in range(20))
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]; print(out)
libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(1 + i * 37) for i in range(5000)]; print(all(blocks)); [libc.free(b) for b in blocks]
print(subprocess.run(["/bin/echo", "child"], capture_output=True).stdout)
big = bytearray(50 << 20); big[::4096] = b"x" * (len(big) // 4096); print(len(big), big.count(b"x"))
print("to stderr", file=sys.stderr)
raise ValueError("the end")
"""


def python3(job):
    # Not a version manager's shim: the interpreter itself.
    tool = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else need("python3")
    job.write("program.py", PYTHON)
    job.run(tool, "-I", "program.py", extra={"PYTHONHASHSEED": "0"})


def perl(job):
    job.run(need("perl"), "-e", r"""
use strict; use warnings; my %h;
for my $i (1..50000) { $h{"k" . ($i % 1013)} .= chr(65 + $i % 26); }
print "$_ ", length $h{$_}, "\n" for (sort keys %h)[0..20];
my $s = join ",", map { $_ * 3 } 1..20000; $s =~ s/(\d)(\d)/$2$1/g; print length $s, " ", unpack("%32C*", $s), "\n";
my @sorted = sort { $a <=> $b } map { ($_ * 7919) % 104729 } 1..30000; print "@sorted[0..9]\n";
my $pid = fork; if (!$pid) { print "child\n"; exit 3 } waitpid $pid, 0; print "child ended with ", $? >> 8, "\n";
print STDERR "warning\n"; die "the end\n";
""", extra={"PERL_HASH_SEED": "0"})


def node(job):
    job.write("program.js", r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib');
if (!isMainThread) {
  let s = 0; for (let i = 0; i < 300000; i++) s = (s * 31 + i * workerData) | 0;
  parentPort.postMessage(s);
} else {
  const rows = []; for (let i = 0; i < 30000; i++) rows.push({ id: i, name: 'n' + i, list: [i, i + 1] });
  const text = JSON.stringify(rows);
  console.log(text.length, crypto.createHash('sha256').update(text).digest('hex'), zlib.gunzipSync(zlib.gzipSync(text)).length);
  const buffers = []; for (let i = 0; i < 400; i++) buffers.push(Buffer.alloc(65536, i));
  console.log(buffers.reduce((a, b) => a + b[7], 0));
  const results = []; let left = 3;
  for (let k = 1; k <= 3; k++) new Worker(__filename, { workerData: k }).on('message', v => { results[k] = v; })
    .on('exit', () => { if (--left === 0) { console.log(results.join(' ')); console.error('done'); process.exitCode = 6; } });
}
""")
    job.run(need("node", "nodejs"), "program.js")


JAVA = r"""
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class Program {
  record Row(int id, String name) {}
  static long squeeze(int seed) {
    byte[] data = new byte[300000];
    new Random(seed).nextBytes(data);
    Arrays.fill(data, 1000, 200000, (byte) seed);
    Deflater deflater = new Deflater(6);
    deflater.setInput(data);
    deflater.finish();
    byte[] out = new byte[400000];
    int n = deflater.deflate(out);
    deflater.end();
    CRC32 crc = new CRC32();
    crc.update(out, 0, n);
    return crc.getValue();
  }
  public static void main(String[] arguments) throws Exception {
    TreeMap<String, Row> rows = new TreeMap<>();
    for (int i = 0; i < 100000; i++) rows.put("k" + (i * 7919 % 100003), new Row(i, "n" + i));
    System.out.println(rows.size() + " " + rows.firstEntry() + " " + rows.lastEntry());
    ExecutorService pool = Executors.newFixedThreadPool(6);
    List<Future<Long>> sums = new ArrayList<>();
    for (int i = 0; i < 40; i++) { int seed = i; sums.add(pool.submit(() -> squeeze(seed))); }
    for (Future<Long> sum : sums) System.out.print(sum.get() + " ");
    pool.shutdown();
    System.out.println();
    List<ByteBuffer> buffers = new ArrayList<>();
    for (int i = 0; i < 200; i++) buffers.add(ByteBuffer.allocateDirect(100000 + i).putInt(0, i));
    System.out.println(buffers.stream().mapToInt(b -> b.getInt(0)).sum());
    Process child = new ProcessBuilder("/bin/echo", "child").start();
    System.out.print(new String(child.getInputStream().readAllBytes()));
    System.err.println("child ended with " + child.waitFor());
    Object[] garbage = new Object[1000];
    for (int i = 0; i < 200000; i++) garbage[i % 1000] = new long[100];
    if (arguments.length > 0) throw new IllegalStateException("the end");
    System.exit(5);
  }
}
"""


def java_feature(home):
    """8, 11, 17, ...: what the JDK's own release file says; None if there is none."""
    try:
        with open(os.path.join(home, "release"), encoding="utf-8") as file:
            match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', file.read(), re.M)
    except OSError:
        return None
    return int(match.group(1)) if match else None


def jdk_homes():
    """The homes of all JDKs found, one of each feature version."""
    homes = [os.environ.get("JAVA_HOME", "")]
    if os.path.isdir("/usr/lib/jvm"):
        homes += [os.path.join("/usr/lib/jvm", name) for name in sorted(os.listdir("/usr/lib/jvm"))]
    if shutil.which("javac"):
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("javac")))))
    found = {}
    for home in homes:
        feature = java_feature(home)
        if feature and os.path.exists(f"{home}/bin/javac"):
            found.setdefault(feature, home)
    return list(found.values())


def jdk(version):
    """The home of JDK `version`, by its own release file."""
    for home in jdk_homes():
        if version == "any" or java_feature(home) == int(version):
            return home
    raise Missing(f"JDK {version} is not installed")


SMALL_HEAP = ["-Xmx256m", "-XX:-UsePerfData"]  # no /tmp/hsperfdata file that two runs would share


def java(version):
    def job_java(job):
        home = jdk(version)
        job.write("Program.java", JAVA)
        subprocess.run([f"{home}/bin/javac", "-d", job.work, os.path.join(job.work, "Program.java")], check=True,
                       env=target.clean_environment())
        job.run(f"{home}/bin/java", *SMALL_HEAP, "-cp", ".", "Program")
        job.run(f"{home}/bin/java", *SMALL_HEAP, "-XX:+UseSerialGC", "-Xint", "-cp", ".", "Program", "throw")
        job.run(f"{home}/bin/java", *SMALL_HEAP, "-XX:+UseParallelGC", "-cp", ".", "NoSuchProgram")
    return job_java


def javac(version):
    def job_javac(job):
        home = jdk(version)
        job.write("Program.java", JAVA)
        job.write("Broken.java", "public class Broken { int x = \"s\"; void f() { g(); } }\n")
        job.run(f"{home}/bin/javac", "-J-XX:-UsePerfData", "-Xlint:all", "-g", "Program.java")
        job.digest("Program.class")
        job.run(f"{home}/bin/javac", "-J-XX:-UsePerfData", "Broken.java")
    return job_javac


def redis(job, requests=20000):
    # In Debian the server is redis-check-rdb under another name; the package redis-server only adds the service.
    server, name = shutil.which("redis-server"), os.path.join(job.work, "redis-server")
    os.symlink(os.path.realpath(server or need("redis-check-rdb")), name)
    benchmark, client = need("redis-benchmark"), need("redis-cli")
    listen = os.path.join(job.work, "socket")
    environment = {**target.clean_environment(), **job.environment}
    with open(os.path.join(job.work, "log"), "wb") as log:
        process = subprocess.Popen([name, "--port", "0", "--unixsocket", listen, "--save", "", "--appendonly", "no",
                                    "--dir", job.work, "--io-threads", "2", "--activedefrag", "no", "--enable-debug-command",
                                    "local"],
                                   env=environment, cwd=job.work, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: process.poll() is not None or ask(listen, b"PING\r\n").startswith(b"+PONG"), "redis-server does not answer")
        job.run(benchmark, "-s", listen, "-n", str(requests), "-c", "20", "-P", "8", "-r", "5000", "-d", "200", "-q", "-t",
                "set,get,lpush,lrange_100,mset")
        commands = b"flushall\n" + b"".join(
            b"set key:%d value-%d\nlpush list %d\nhset hash f%d %d\n" % (i, i * i, i, i, i) for i in range(2000))
        commands += b"dbsize\nstrlen key:1999\nlrange list 0 5\nhget hash f77\ndebug digest\nbgsave\nnosuchcommand\n"
        job.run(client, "-s", listen, stdin=commands)
        wait_until(lambda: b"rdb_bgsave_in_progress:0" in ask(listen, b"INFO persistence\r\n"), "the background save does not end")
        job.run(client, "-s", listen, "shutdown", "nosave")
        job.stdout += f"server ended with {process.wait(60)}\n"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    with open(os.path.join(job.work, "log"), encoding="utf-8") as log:
        server_log = log.read()
    # Times, pids and rates differ between any two runs; the order of the lines about the background save does too.
    job.stdout += re.sub(r"\d+:([A-Z]) \d+ \w+ \d{4} [\d:.]+", r"\1", "\n".join(
        line for line in server_log.splitlines()
        if not re.search(r"PID|Background saving|Fork CoW|DB saved|pid=", line)))
    job.replace(r"^\s*[\d.]+ requests per second, p50=[\d.]+ msec", " requests per second")
    job.replace(r"[^\r\n]*\r", "")  # the progress display
    job.replace(r"(: )[\d.]+ requests per second, p50=[\d.]+ msec", r"\1requests per second")
    job.replace(r"^.*(PING_|overall:|rps=).*$", "")


def ask(path, request):
    """One request to the server, one read of its answer; empty while it does not listen yet."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(path)
            connection.sendall(request)
            return connection.recv(65536)
    except OSError:
        return b""


def wait_until(condition, otherwise):
    """Neither a server's readiness nor the end of its child can be waited for, only asked for."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(otherwise)
        time.sleep(0.01)  # between two questions


def sort(job):
    lines = "".join(f"{(i * 7919) % 100003:06d} {'x' * (i % 60)}\n" for i in range(150000))
    job.write("lines", lines)
    job.run(need("sort"), "--parallel=2", "-S", "2M", "-T", ".", "-k1,1n", "-o", "sorted", "lines")
    job.digest("sorted")
    job.run("sort", "-r", "-u", "-k1,1", "lines")
    job.run("sort", "-c", "lines")
    job.run("sort", "/no/such/file")


def tar_xz(job):
    need("tar"), need("xz")
    for n in range(120):
        job.write(f"tree/d{n % 9}/file{n}", "".join(f"{n} {k * n}\n" for k in range(n * 30)))
    job.run("tar", "--sort=name", "--mtime=@1700000000", "--owner=0", "--group=0", "-cf", "a.tar", "tree")
    job.run("xz", "-k", "-T2", "-6", "--block-size=200000", "a.tar")
    job.digest("a.tar.xz")
    job.run("tar", "--sort=name", "--mtime=@1700000000", "--owner=0", "--group=0", "-cJf", "b.tar.xz", "tree")
    job.digest("b.tar.xz")
    job.run("tar", "-tvf", "a.tar.xz")
    os.mkdir(os.path.join(job.work, "out"))
    job.run("tar", "-xf", "b.tar.xz", "-C", "out")
    job.run("diff", "-r", "tree", "out/tree")
    job.run("xz", "-t", "a.tar")


JOBS = {
    "bash": bash, "git": git, "gcc": gcc, "python3": python3, "perl": perl, "node": node, "java17": java("17"),
    "java25": java("25"), "java": java("any"), "javac17": javac("17"), "javac25": javac("25"), "javac": javac("any"),
    "redis": redis, "sort": sort, "tar_xz": tar_xz,
}
