#!/usr/bin/env python3
"""A container as far as a test needs one: own mounts, own pids with the command as PID 1, an own root, perhaps read-only, another uid.

As a module: `Root` makes the root directory, `Root.command` the command line that runs something in it, `Cgroup` one with a memory limit.
As a program (what `Root.command` starts): container.py ROOT UID READONLY SHM_MIB -- COMMAND... ; ends as the command ends.
Without root the mounts are made in a user namespace. What the machine does not allow is `Unavailable`, with the reason.
"""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
REFUSED = 125  # ends so, with the reason on stderr, where it cannot be made
LIBC = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    pass


def call(name, *arguments):
    if getattr(LIBC, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def mount(source, target, kind, flags, data=None):
    def encode(text):
        return text.encode() if text is not None else None
    call("mount", encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data))


class Root:
    """A root directory with the loader, libc and the programs that are put into it."""

    def __init__(self, path):
        self.path = path
        for name in ("proc", "dev/shm", "tmp", "sys/fs/cgroup/memory", "etc"):
            os.makedirs(os.path.join(path, name), exist_ok=True)

    def add(self, source, target, libraries=True):
        """Copies a file, and the libraries that it needs, to the places where it looks for them."""
        place = os.path.join(self.path, target.lstrip("/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy2(source, place)
        if not libraries:
            return
        listed = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            if not os.path.exists(os.path.join(self.path, library.lstrip("/"))):
                self.add(library, library, libraries=False)

    def command(self, command, uid=65532, readonly=True, shm_mib=64):
        return [sys.executable, os.path.abspath(__file__), self.path, str(uid), "1" if readonly else "0", str(shm_mib), "--", *command]

    def check(self):
        """Raises Unavailable where this machine makes no container."""
        probe = subprocess.run(self.command(["/probe"]), capture_output=True, text=True, check=False)
        if probe.returncode == REFUSED:
            raise Unavailable(probe.stderr.strip())


class Cgroup:
    """A memory cgroup below ours, version 2 or 1."""

    def __init__(self, name, limit_bytes):
        self.path = None
        with open("/proc/self/cgroup", encoding="ascii") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
        v1 = next((path for _, names, path in lines if "memory" in names.split(",")), None)
        v2 = next((path for _, names, path in lines if names == ""), None)
        for base, own, limit in (("/sys/fs/cgroup/memory", v1, "memory.limit_in_bytes"), ("/sys/fs/cgroup", v2, "memory.max")):
            if own is None:
                continue
            for parent in (base + own, base):
                path = os.path.join(parent, name)
                try:
                    os.mkdir(path)
                except OSError:
                    continue
                self.path = path
                try:
                    self.write(limit, str(limit_bytes))
                    for swap, value in (("memory.swap.max", "0"), ("memory.memsw.limit_in_bytes", str(limit_bytes))):
                        if os.path.exists(os.path.join(path, swap)):
                            self.write(swap, value)
                    return
                except OSError:
                    os.rmdir(path)
                    self.path = None
        raise Unavailable("no memory cgroup can be made here")

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(text)

    def enter(self):
        """For a child, before its exec."""
        self.write("cgroup.procs", str(os.getpid()))

    def pids(self):
        with open(os.path.join(self.path, "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file]

    def remove(self):
        while self.path is not None:
            try:
                os.rmdir(self.path)
                return
            except FileNotFoundError:
                return
            except OSError:  # somebody in it has not gone yet
                for pid in self.pids():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass


def enter(root, uid, readonly, shm_mib):
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount(root, root, None, MS_BIND | MS_REC)
    mount("proc", os.path.join(root, "proc"), "proc", 0)
    if os.environ.get("CONTAINER_SHM"):  # one that outlives the container, as a pod's does
        mount(os.environ["CONTAINER_SHM"], os.path.join(root, "dev/shm"), None, MS_BIND)
    else:
        mount("tmpfs", os.path.join(root, "dev/shm"), "tmpfs", 0, f"size={shm_mib}m,mode=1777")
    group = os.environ.get("CONTAINER_CGROUP")
    if group:  # its own, as /sys/fs/cgroup shows it in a container
        place = os.path.join(root, "sys/fs/cgroup", "memory" if group.startswith("/sys/fs/cgroup/memory") else "")
        mount(group, place, None, MS_BIND)
    if readonly:
        flags = 2 | 4 if os.environ.get("CONTAINER_USERNS") else 0  # what the mount below has may not be taken away
        mount(None, root, None, MS_BIND | MS_REMOUNT | MS_RDONLY | flags)
    # As container engines do, and not by chroot: what others see of paths here then begins at this root.
    os.chdir(root)
    call("syscall", ctypes.c_long(155), b".", b".")  # pivot_root
    call("umount2", b".", 2)  # MNT_DETACH: the old root lies over the new one
    os.chdir("/")
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        call("prctl", 4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as after an exec


def main():
    root, uid, readonly, shm_mib = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1", int(sys.argv[4])
    command = sys.argv[6:]
    own = os.geteuid()
    try:
        if own != 0:
            call("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID)
            os.environ["CONTAINER_USERNS"] = "1"
            for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {own} 1"), ("gid_map", f"{uid} {os.getegid()} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)
        else:
            call("unshare", CLONE_NEWNS | CLONE_NEWPID)
    except OSError as error:
        print(f"no namespaces here: {error}", file=sys.stderr)
        sys.exit(REFUSED)
    child = os.fork()
    if child == 0:
        try:
            enter(root, uid, readonly, shm_mib)
        except OSError as error:
            print(f"no container here: {error}", file=sys.stderr)
            os._exit(REFUSED)
        environment = {name: value for name, value in os.environ.items() if name.startswith(("CADASTRE", "LD_PRELOAD"))}
        environment["PATH"] = "/bin:/cadastre"
        try:
            os.execvpe(command[0], command, environment)
        except OSError as error:
            print(f"{command[0]}: {error}", file=sys.stderr)
            os._exit(127)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: os.kill(child, number))
    while True:
        try:
            _, status = os.waitpid(child, 0)
            break
        except InterruptedError:
            pass
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
