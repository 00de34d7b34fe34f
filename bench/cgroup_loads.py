"""Loads in cgroups of v1 and v2, whose work is counted: what the benches of headroom and of sizes share."""

import argparse
import mmap
import os
import random
import re
import signal
import subprocess
import sys
import time

MIB = 1 << 20
BLOCK = 64 << 10
IS_V1 = os.path.isdir("/sys/fs/cgroup/memory")
MOUNT = "/sys/fs/cgroup/memory" if IS_V1 else "/sys/fs/cgroup"
LIMIT = "memory.limit_in_bytes" if IS_V1 else "memory.max"
ROOT = f"memtide-bench-{os.getpid()}"
# What a load leaves in /dev/shm begins so.
SHARED = "memtide-bench"


def write(path, text):
    with open(path, "w") as file:
        file.write(str(text))


def group_path(name):
    return f"{MOUNT}/{ROOT}{name}"


def set_limit(name, mib, file=LIMIT):
    unlimited = "-1" if IS_V1 else "max"
    write(f"{group_path(name)}/{file}", int(mib * MIB) if mib else unlimited)


def make_group(name, limit):
    os.makedirs(group_path(name), exist_ok=True)
    if not IS_V1:
        # Groups below can have limits of their own; one that has processes itself refuses.
        for parent in (MOUNT, os.path.dirname(group_path(name))):
            write(f"{parent}/cgroup.subtree_control", "+memory +io")
    if limit:
        set_limit(name, limit)


def remove_group(name):
    for _ in range(20):
        try:
            return os.rmdir(group_path(name))
        except OSError:
            time.sleep(0.1)


def count_in(name, file, key):
    with open(f"{group_path(name)}/{file}") as opened:
        return int(re.search(rf"(?:^|\n){key} ?(\d+)", opened.read())[1])


def memory(name):
    """What it has, in MiB."""
    with open(f"{group_path(name)}/{'memory.usage_in_bytes' if IS_V1 else 'memory.current'}") as file:
        return int(file.read()) / MIB


def kills(name):
    return count_in(name, "memory.oom_control" if IS_V1 else "memory.events", "oom_kill")


def refaults(name):
    """Pages that were read again, in it and below."""
    key = "total_workingset_refault_file" if IS_V1 else "workingset_refault_file"
    return count_in(name, "memory.stat", key)


def hits(name):
    return count_in(name, "memory.failcnt", "") if IS_V1 else count_in(name, "memory.events", "max")


# --- inside the cgroups -----------------------------------------------------------------------------------------------

def fill(size_mib):
    memory = mmap.mmap(-1, int(size_mib * MIB), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, len(memory), 4096):
        memory[at] = 1
    return memory


def file_of(directory, kind, size_mib):
    return f"{directory}/{kind}-{size_mib}"


def make_files(spec, directory):
    """The files that a load reads, outside of its cgroup: what it evicts and reads again is all that it evicts."""
    for kind, size in (part.split("=") for part in spec.split(",")):
        path = file_of(directory, kind, size)
        if kind in ("loop", "stream", "once", "washot", "random", "mapped") and not os.path.exists(path):
            with open(path, "wb") as file:
                for _ in range(int(size)):
                    file.write(os.urandom(4096) * 256)
                file.flush()
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def load(spec, directory, counter):
    """Works in rounds; each round is as much of every kind of work, and the same time of sleep."""
    parts = [part.split("=") for part in spec.split(",")]
    kept, jobs = [], []
    chance = random.Random(7)
    for kind, size in parts:
        size = int(size)
        if kind == "anon":
            kept.append(fill(size))
            if "touch=1" in spec:
                memory = kept[-1]

                def walk(memory=memory, place=[0]):
                    for _ in range(2048):
                        memory[place[0]] = 1
                        place[0] = (place[0] + 4096) % len(memory)
                jobs.append(walk)
        elif kind == "shm":
            path = f"/dev/shm/{SHARED}-{os.getpid()}"
            with open(path, "wb") as file:
                for _ in range(size):
                    file.write(b"1" * MIB)
            kept.append(path)
        elif kind in ("loop", "stream", "once", "washot"):
            file = os.open(file_of(directory, kind, size), os.O_RDONLY)
            if kind in ("once", "washot"):
                for _ in range(1 if kind == "once" else 3):
                    for at in range(0, size * MIB, BLOCK):
                        os.pread(file, BLOCK, at)
                continue
            # A stream drops what it has read, so it is read once.
            def sequential(file=file, size=size, place=[0], once=kind == "stream"):
                for _ in range(16):
                    os.pread(file, BLOCK, place[0])
                    place[0] += BLOCK
                if place[0] >= size * MIB:
                    place[0] = 0
                    if once:
                        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            jobs.append(sequential)
        elif kind == "random":
            file = os.open(file_of(directory, kind, size), os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)

            def somewhere(file=file, size=size):
                for _ in range(64):
                    os.pread(file, 16384, chance.randrange(size * 64) * 16384)
            jobs.append(somewhere)
        elif kind == "mapped":
            file = os.open(file_of(directory, kind, size), os.O_RDONLY)
            memory = mmap.mmap(file, size * MIB, prot=mmap.PROT_READ)

            def look(memory=memory, size=size):
                for _ in range(256):
                    memory[chance.randrange(size * 256) * 4096]
            jobs.append(look)
        elif kind == "grow":
            # Grows by a twentieth every half second, and then has what it wants.
            def more(size=size, grown=[]):
                if len(grown) < 20:
                    grown.append(fill(size / 20))
                    time.sleep(0.5)
                    shared[16] = len(grown)
            jobs.append(more)
        elif kind == "write":
            file = os.open(f"{directory}/{kind}-{size}-{os.getpid()}", os.O_RDWR | os.O_CREAT)

            def again(file=file, size=size, place=[0]):
                for _ in range(4):
                    os.pwrite(file, b"2" * BLOCK, place[0])
                    place[0] = (place[0] + BLOCK) % (size * MIB)
            jobs.append(again)
    shared = mmap.mmap(os.open(counter, os.O_RDWR), 17)
    done, took = 0, 0
    schedule = os.open("/proc/self/schedstat", os.O_RDONLY)
    # Waiting for a CPU is the fault of others.
    waited = lambda: int(os.pread(schedule, 64, 0).split()[1])
    while True:
        began, before = time.monotonic_ns(), waited()
        for job in jobs:
            job()
        took += max(time.monotonic_ns() - began - (waited() - before), 1)
        done += 1
        shared[:16] = done.to_bytes(8, "little") + took.to_bytes(8, "little")
        time.sleep((time.monotonic_ns() - began) / 1e9 if jobs else 0.02)


def hog(size_mib):
    """Takes this much in all: the interpreter has some of it."""
    with open("/proc/self/status") as status:
        own = int(re.search(r"RssAnon:\s+(\d+) kB", status.read())[1]) << 10
    kept = fill(max(size_mib * MIB - own, 4096) / MIB)
    assert kept
    print("held", flush=True)
    time.sleep(600)


# --- outside ----------------------------------------------------------------------------------------------------------

def start(group, *arguments, adj=0, **more):
    def enter():
        write(f"{group_path(group)}/cgroup.procs", os.getpid())
        write("/proc/self/oom_score_adj", adj)
        if adj == 0:
            os.nice(-10)
    return subprocess.Popen([sys.executable, __file__, *map(str, arguments)], preexec_fn=enter, **more)


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


class Load:
    def __init__(self, group, spec, directory):
        self.counter = f"{directory}/counter-{group.replace('/', '-')}"
        with open(self.counter, "wb") as file:
            file.write(bytes(17))
        idle = ("anon", "shm", "once", "washot")
        self.works = any(part.split("=")[0] not in idle for part in spec.split(","))
        make_files(spec, directory)
        self.process = start(group, "--load", spec, directory, self.counter)

    def read(self):
        """Rounds, and the time that they took without waits for a CPU."""
        with open(self.counter, "rb") as file:
            both = file.read(16)
        return int.from_bytes(both[:8], "little"), int.from_bytes(both[8:], "little")

    def has_grown(self):
        """Whether a part that grows has done so."""
        with open(self.counter, "rb") as file:
            return file.read()[16] == 20

    def done(self):
        return self.read()[0]

    def rate(self, seconds):
        """Rounds in a second of work."""
        done, took = self.read()
        time.sleep(seconds)
        done_now, took_now = self.read()
        return (done_now - done) * 1e9 / (took_now - took) if took_now > took else 0.0


def remove_files(directory):
    """What loads have left behind: all but captures."""
    for path in os.listdir("/dev/shm"):
        if path.startswith(SHARED):
            os.unlink(f"/dev/shm/{path}")
    for path in os.listdir(directory):
        if not path.endswith(".gz"):
            os.unlink(f"{directory}/{path}")


def try_cases(about, cases, head, run):
    """What a bench does: runs each case that was asked for, as `run(name, case, memtide, directory)`, below `head`."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--memtide", default=f"{here}/target/release/memtide")
    parser.add_argument("--dir", default=f"/var/tmp/{ROOT}", help="where files that loads read are written")
    arguments = parser.parse_args()
    # Whatever ends it, what it started ends and its cgroups go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.makedirs(arguments.dir, exist_ok=True)
    make_group("", None)
    print(head)
    try:
        for name in arguments.cases or cases:
            run(name, cases[name], arguments.memtide, arguments.dir)
    finally:
        remove_group("")


if __name__ == "__main__":
    if sys.argv[1] == "--load":
        load(*sys.argv[2:5])
    else:
        hog(int(sys.argv[2]))
