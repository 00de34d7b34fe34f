#!/usr/bin/env python3
"""A made day: plays 36 incidents and harmless look-alikes of 28 kinds in 20 minutes, in cgroups of its own, and records it.

    scripts/made-day.py DIR [MEMTIDE]      as root, with the memory controller of cgroup v1

DIR/recording is what `memtide record` kept, DIR/truth.tsv says what was played: the time of day of begin and end, cgroup,
kind, PID, what is true of it. scripts/made-day-questions.py asks memtide about it. No cgroup has more than 1 GiB, all are
removed at the end, and files lie in DIR.
"""

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time

ROOT = "/sys/fs/cgroup/memory/day"
MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


def touched(mib):
    """Private anonymous memory, all of it in RAM."""
    area = mmap.mmap(-1, mib * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, mib * MIB, 4096):
        area[page] = 1
    return area


def grow(rate, until):
    """Takes `rate` MiB a second until it holds `until` MiB, and then ends; or is killed."""
    held = []
    while len(held) < until:
        held.append(touched(1))
        time.sleep(1 / rate)


def hold(mib, seconds):
    area = touched(mib)
    time.sleep(seconds)
    return area


def spike(mib):
    touched(mib)


def sawtooth(mib, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        hold(mib, 3).close()
        time.sleep(2)


def make_file(path, mib):
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(MIB):
            pass


def read_again(path, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        read(path)


def write(path, seconds):
    end = time.monotonic() + seconds
    block = bytes(MIB)
    while time.monotonic() < end:
        with open(path, "wb", buffering=0) as file:
            for _ in range(300):
                file.write(block)
                if time.monotonic() >= end:
                    break
    os.unlink(path)


def fill_tmpfs(path, mib):
    """Files in a tmpfs outlive the process that wrote them."""
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "day", path], check=True)
    try:
        for number in range(mib):
            with open(f"{path}/{number}", "wb", buffering=0) as file:
                file.write(bytes(MIB))
            time.sleep(0.1)
    finally:
        time.sleep(2)


def fork_workers(count, mib):
    for _ in range(count):
        if os.fork() == 0:
            hold(mib, 12)
            os._exit(0)
        time.sleep(0.5)
    time.sleep(12)


def forks(count):
    for _ in range(count):
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        time.sleep(0.01)


def crash_loop(times, mib):
    """A supervisor that starts again what was killed."""
    for _ in range(times):
        if os.fork() == 0:
            grow(25, mib)
            os._exit(0)
        os.wait()
        time.sleep(2)


def compile_often(seconds, place):
    source = f"{place}/build.c"
    with open(source, "w", encoding="ascii") as file:
        file.write("#include <stdio.h>\n" + "".join(f"int f{n}(int x){{return x*{n};}}\n" for n in range(3000)))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        subprocess.run(["gcc", "-O2", "-c", source, "-o", f"{place}/build.o"], check=True)


def page_tables(gib, seconds):
    """A page in each 2 MiB of a shared mapping: as many page tables as pages."""
    with open("/dev/shm/day-sparse", "w+b") as file:
        os.unlink(file.name)
        file.truncate(gib << 30)
        area = mmap.mmap(file.fileno(), gib << 30)
        for at in range(0, gib << 30, 2 * MIB):
            area[at]
        time.sleep(seconds)
        return area


def refused_huge_pages(tries):
    for _ in range(tries):
        try:
            mmap.mmap(-1, 64 * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
        except OSError:
            time.sleep(0.5)


def lock(mib, more):
    LIBC.mlockall(3)
    area = touched(mib)
    time.sleep(8)
    grow(10, more)
    return area


def grow_memfd(rate, until):
    area = os.memfd_create("day-queue")
    for _ in range(until):
        os.write(area, bytes(MIB))
        time.sleep(1 / rate)


def trim_faults(seconds):
    """malloc gives 2.4 MB back and takes it again, all the time."""
    LIBC.malloc.restype = ctypes.c_void_p
    LIBC.mallopt(-1, 128 << 10)
    LIBC.mallopt(-3, 64 << 20)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        area = ctypes.c_void_p(LIBC.malloc(2_400_000))
        LIBC.memset(area, 1, 2_400_000)
        LIBC.free(area)


def missing_names(count):
    for number in range(count):
        os.path.exists(f"/var/tmp/day-no-such-file-{number:060d}")


# What is played: second of its begin, cgroup, limit in MiB, kind, what is true, program, what an operator does meanwhile as
# (seconds after its begin, a file of the cgroup, its value).
def day(place):
    file = lambda name: f"{place}/{name}"
    return [
        (15, "ci", 512, "short-builds", "harmless", lambda: compile_often(40, place)),
        (30, "shop", 128, "oom-heap", "killed after 16 s of 8 MiB/s", lambda: grow(8, 400)),
        (60, "search", 64, "reread", "starved: reads 120 MiB again and again", lambda: read_again(file("search.data"), 40)),
        (110, "upload", 96, "oom-tmpfs", "killed: files in a tmpfs", lambda: fill_tmpfs(file("upload"), 120)),
        (135, "workers", 128, "oom-fork", "killed: 8 workers of 24 MiB", lambda: fork_workers(8, 24)),
        (155, "ledger", 200, "leak-killed", "2 MiB/s, killed after 98 s", lambda: grow(2, 400)),
        (160, "backup", 1024, "cold-cache", "harmless", lambda: read(file("backup.data"))),
        (190, "writer", 64, "dirty", "writes faster than the disk", lambda: write(file("written"), 40)),
        (245, "scan", 64, "limit-hit-only", "harmless: reads a large file once", lambda: read(file("scan.data"))),
        (265, "tenant/a", 150, "oom-nested", "killed at the limit of the parent, 160 MiB", lambda: hold(90, 30)),
        (270, "tenant/b", 150, "oom-nested", "killed at the limit of the parent, 160 MiB", lambda: grow(20, 90)),
        (290, "index", 64, "reread-raised", "starved until the limit is raised after 30 s", lambda: read_again(file("index.data"), 60),
            (30, "memory.limit_in_bytes", 256 * MIB)),
        (355, "report", 256, "reread-lowered", "starved from 20 s on, when the limit is lowered", lambda: read_again(file("report.data"), 50),
            (20, "memory.limit_in_bytes", 48 * MIB)),
        (410, "sessions", 300, "leak-stopped", "3 MiB/s for 50 s, ends before its limit", lambda: grow(3, 150)),
        (420, "sparse", 256, "page-tables", "page tables of 100 MiB", lambda: page_tables(50, 30)),
        (455, "batch", 256, "sawtooth", "harmless", lambda: sawtooth(100, 50)),
        (470, "cron", 128, "fork-burst", "harmless", lambda: forks(600)),
        (500, "huge", 256, "hugetlb-refused", "no pool of huge pages", lambda: refused_huge_pages(10)),
        (510, "locked", 160, "oom-locked", "killed: 140 MiB locked, then more", lambda: lock(140, 60)),
        (540, "queue", 120, "oom-memfd", "killed: a memfd of 4 MiB/s", lambda: grow_memfd(4, 200)),
        (590, "stopped", 64, "oom-disabled", "stands still at its limit for 40 s", lambda: grow(20, 90),
            (0, "memory.oom_control", 1), (40, "memory.limit_in_bytes", 256 * MIB)),
        (645, "faults", 256, "malloc-trim", "page faults of malloc", lambda: trim_faults(40)),
        (690, "names", 64, "negative-dentries", "slab at the limit", lambda: missing_names(300_000)),
        (730, "shop", 128, "oom-heap", "killed after 16 s of 8 MiB/s", lambda: grow(8, 400)),
        (750, "search", 64, "reread", "starved: reads 120 MiB again and again", lambda: read_again(file("search.data"), 40)),
        (795, "loop", 64, "crash-loop", "killed five times, started again", lambda: crash_loop(5, 100)),
        (835, "ledger", 250, "leak-killed", "6 MiB/s, killed after 41 s", lambda: grow(6, 400)),
        (885, "spike", 512, "spike", "harmless", lambda: spike(400)),
        (900, "writer", 64, "dirty", "writes faster than the disk", lambda: write(file("written"), 40)),
        (945, "upload", 96, "oom-tmpfs", "killed: files in a tmpfs", lambda: fill_tmpfs(file("upload2"), 120)),
        (965, "squeeze", 256, "limit-refused", "harmless: the kernel refuses the lower limit", lambda: hold(200, 20),
            (10, "memory.limit_in_bytes", 100 * MIB)),
        (990, "gone", 48, "oom-removed", "killed, and its cgroup removed", lambda: grow(20, 90), (12, None, None)),
        (1010, "sessions", 300, "leak-stopped", "3 MiB/s for 40 s, ends before its limit", lambda: grow(3, 120)),
        (1040, "fits", 256, "reread-fits", "harmless: 120 MiB fit", lambda: read_again(file("fits.data"), 40)),
        (1060, "api", 400, "leak-running", "2 MiB/s, meets its limit 60 s after the end", lambda: grow(2, 600)),
        (1100, "shop", 128, "oom-heap", "killed after 16 s of 8 MiB/s", lambda: grow(8, 400)),
    ]


SECONDS = 1200

# Files in MiB, one for each reader: the page cache is charged to the cgroup that read first.
FILES = {"search": 120, "index": 120, "report": 120, "fits": 120, "backup": 300, "scan": 300}


class Played:
    """An incident that runs."""

    def __init__(self, begin, group, limit, kind, truth, program, *interventions):
        self.begin, self.group, self.limit, self.kind, self.truth = begin, group, limit, kind, truth
        self.program, self.interventions, self.pid, self.since = program, list(interventions), None, None

    def path(self):
        return f"{ROOT}/{self.group}"

    def start(self):
        os.makedirs(self.path(), exist_ok=True)
        if self.group.startswith("tenant/"):
            put(f"{ROOT}/tenant/memory.limit_in_bytes", 160 * MIB)
        put(f"{self.path()}/memory.limit_in_bytes", self.limit * MIB)
        self.since = time.time()
        self.pid = os.fork()
        if self.pid == 0:
            os.setpgid(0, 0)
            put(f"{self.path()}/cgroup.procs", os.getpid())
            LIBC.prctl(15, self.group.split("/")[-1].encode())
            self.program()
            os._exit(0)

    def intervene(self):
        while self.interventions and time.time() >= self.since + self.interventions[0][0]:
            _, name, value = self.interventions.pop(0)
            if name is None:
                os.rmdir(self.path())
            else:
                put(f"{self.path()}/{name}", value)


def put(path, value):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(str(value))
    except OSError as error:
        print(f"{path}: {error}", file=sys.stderr)


def of_day(seconds):
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def main():
    place = os.path.abspath(sys.argv[1])
    memtide = sys.argv[2] if len(sys.argv) > 2 else "memtide"
    os.makedirs(place, exist_ok=True)
    for name, mib in FILES.items():
        make_file(f"{place}/{name}.data", mib)
    recorder = subprocess.Popen([memtide, "record", "--to", f"{place}/recording"])
    start, waiting, running = time.time(), [Played(*one) for one in day(place)], []
    with open(f"{place}/truth.tsv", "w", encoding="utf-8", buffering=1) as truth:
        truth.write("from\tto\tcgroup\tkind\tpid\ttruth\n")

        def note(one):
            row = (of_day(one.since), of_day(time.time()), f"/day/{one.group}", one.kind, str(one.pid), one.truth)
            truth.write("\t".join(row) + "\n")

        while time.time() < start + SECONDS:
            while waiting and time.time() >= start + waiting[0].begin:
                running.append(waiting.pop(0))
                running[-1].start()
            for one in list(running):
                one.intervene()
                if one.pid and os.waitpid(one.pid, os.WNOHANG)[0]:
                    note(one)
                    one.pid = None
                if not one.pid and not one.interventions:
                    running.remove(one)
            time.sleep(0.1)
        for one in running:
            note(one)
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    for one in running:
        if one.pid:
            os.killpg(one.pid, signal.SIGKILL)
            os.waitpid(one.pid, 0)
    for name in ("upload", "upload2"):
        subprocess.run(["umount", f"{place}/{name}"], check=False)
    time.sleep(1)
    for directory, _, _ in os.walk(ROOT, topdown=False):
        os.rmdir(directory)


main()
