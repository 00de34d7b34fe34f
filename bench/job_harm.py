#!/usr/bin/env python3
"""Harm to a neighbour, printed against measured: a neighbour that reads its files again and again in a memory cgroup (v1) of
its own, beside a job in another one; both within a limit that they share. What the neighbour had to read again is
its own `read_bytes` (/proc/PID/io) from the job's start to its end; what is printed is the `reread_bytes` of `memtide job`. As
root, on a disk (not tmpfs).

usage: job_harm.py MEMTIDE DIRECTORY [ROUNDS]
Figures of docs/job.md are of this script."""
import json, os, random, signal, subprocess, sys, time

MEMTIDE, D = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
MIB = 1 << 20
TOP = f"/sys/fs/cgroup/memory/memtide-harm-{os.getpid()}"
os.makedirs(D, exist_ok=True)


def file(name, mib):
    path = f"{D}/{name}"
    if not os.path.exists(path) or os.path.getsize(path) != mib * MIB:
        with open(path, "wb") as f:
            for _ in range(mib):
                f.write(os.urandom(MIB))
    return path


def evict(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def write(path, value):
    with open(path, "w") as f:
        f.write(str(value))


def group(name, limit=None):
    os.makedirs(f"{TOP}{name}")
    if limit:
        write(f"{TOP}{name}/memory.limit_in_bytes", limit * MIB)


def into(name):
    return lambda: write(f"{TOP}{name}/cgroup.procs", os.getpid())


def neighbour(path, pause, pread, where):
    """Reads a file again and again, in a group."""
    pid = os.fork()
    if pid:
        return pid
    into(where)()
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    chance = random.Random(1)
    while True:
        for at in range(0, size, MIB):
            # Whole, or 8 KiB anywhere, as a database does.
            if pread:
                for _ in range(128):
                    os.pread(fd, 8 << 10, chance.randrange(size >> 13) << 13)
            else:
                os.pread(fd, MIB, at)
        time.sleep(pause)


def read_bytes(text):
    return int(next(line for line in text.splitlines() if line.startswith("read_bytes")).split()[1])


CASES = {
    # Name: the limit of both, what the neighbour reads, how long it waits, how it reads, and the job.
    "scan of 1 GiB beside 150 MiB": (320, 150, 0.2, False, "cat {big} > /dev/null"),
    "slow scan beside 150 MiB": (320, 150, 0.2, False, "for i in 1 2 3 4; do cat {big} > /dev/null; sleep 1; done"),
    "copy beside 100 MiB": (200, 100, 0.1, False, "cat {big} > {copy}; sync {copy}; rm {copy}"),
    "scan beside a database": (256, 200, 0.1, True, "cat {big} > /dev/null; sleep 0.5; cat {big} > /dev/null"),
    "a job that fits": (1400, 150, 0.2, False, "cat {big} > /dev/null"),
    # Both in one cgroup: what is of the neighbour is known by its own account alone.
    "in the cgroup of the job": (320, 150, 0.2, False, "cat {big} > /dev/null"),
    # It pushes out its own files: no harm of the job.
    "at a limit of its own": (600, 150, 0.2, False, "head -c 200000000 {big} > /dev/null"),
}
big = file("big", 1024)
within = total = 0
for name, (limit, mib, pause, pread, job) in CASES.items():
    theirs = file(f"theirs{mib}", mib)
    for _ in range(ROUNDS):
        evict(big), evict(theirs)
        theirs_at = "/j" if "in the cgroup" in name else "/n"
        is_own = "of its own" in name
        group("", limit), group("/n", 100 if is_own else None), group("/j")
        pid = neighbour(theirs, pause, pread, theirs_at)
        try:
            time.sleep(2)
            answer = f"/tmp/memtide-harm-{os.getpid()}.json"
            command = job.format(big=big, copy=f"{D}/copy")
            script = f"cat /proc/{pid}/io > {answer}.before; {command}; cat /proc/{pid}/io > {answer}.after"
            words = [MEMTIDE, "job", "--format=json", "--force", f"--output={answer}", "--", "sh", "-c", script]
            subprocess.run(words, check=True, preexec_fn=into("/j"))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            time.sleep(0.3)
            for below in ("/n", "/j", ""):
                os.rmdir(TOP + below)
        with open(f"{answer}.before") as before, open(f"{answer}.after") as after, open(answer) as f:
            # What it pushed out itself is not of the job.
            measured = 0 if is_own else (read_bytes(after.read()) - read_bytes(before.read())) / MIB
            report = json.load(f)
        groups = [group for group in report["seen"]["others"] if group["cgroup"].endswith(theirs_at) and not group["is_at_own_limit"]]
        printed = sum(group["reread_bytes"] for group in groups) / MIB
        who = [f"{reader['name']} {reader['pid'] == pid}" for group in groups for reader in group["readers"][:1]]
        off = (printed / measured - 1) if measured > 1 else printed - measured
        good = abs(off) <= 0.15
        within, total = within + good, total + 1
        left = report["seen"]["left_cached"]["bytes"] / MIB
        print(f"{name:30} printed {printed:7.1f} MiB  measured {measured:7.1f} MiB  off {off:+6.1%}  {who}  left {left:.0f} MiB", flush=True)
        for end in ("", ".before", ".after"):
            os.unlink(answer + end)
print(f"within 15 %: {within} of {total}")
