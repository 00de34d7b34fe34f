#!/usr/bin/env python3
"""Harm by the samples of a recorder against the neighbour's own account: a job in a memory cgroup (v1) of its own, a neighbour in
another one, both within one limit, and `memtide record` beside them. As root, on a disk (not tmpfs).

usage: job_recorded.py MEMTIDE DIRECTORY
Figures of docs/job.md are of this script."""
import json, os, shutil, signal, subprocess, sys, time

MEMTIDE, D = sys.argv[1:3]
MIB = 1 << 20
TOP = f"/sys/fs/cgroup/memory/memtide-recorded-{os.getpid()}"
RECORDING = f"{D}/recording"


def write(path, value):
    with open(path, "w") as f:
        f.write(str(value))


def file(name, mib):
    path = f"{D}/{name}"
    if not os.path.exists(path) or os.path.getsize(path) != mib * MIB:
        with open(path, "wb") as f:
            for _ in range(mib):
                f.write(os.urandom(MIB))
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return path


def neighbour(path):
    pid = os.fork()
    if pid:
        return pid
    write(f"{TOP}/n/cgroup.procs", os.getpid())
    fd = os.open(path, os.O_RDONLY)
    while True:
        for at in range(0, os.fstat(fd).st_size, MIB):
            os.pread(fd, MIB, at)
        time.sleep(0.2)


def read_bytes(pid):
    with open(f"/proc/{pid}/io") as f:
        return int(next(line for line in f if line.startswith("read_bytes")).split()[1])


os.makedirs(D, exist_ok=True)
big, theirs = file("big", 1024), file("theirs150", 150)
shutil.rmtree(RECORDING, ignore_errors=True)
for below in ("", "/n", "/backup"):
    os.makedirs(TOP + below)
write(f"{TOP}/memory.limit_in_bytes", 180 * MIB)
pid = neighbour(theirs)
time.sleep(3)
recorder = subprocess.Popen([MEMTIDE, "record", "--to", RECORDING, "--every", "1s"])
time.sleep(4)
before = read_bytes(pid)
script = f"for i in 1 2 3 4; do cat {big} > /dev/null; sleep 1; done"
subprocess.run(["sh", "-c", script], check=True, preexec_fn=lambda: write(f"{TOP}/backup/cgroup.procs", os.getpid()))
time.sleep(2)
measured = (read_bytes(pid) - before) / MIB
time.sleep(2)
recorder.send_signal(signal.SIGINT)
recorder.wait()
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
time.sleep(0.3)
for below in ("/backup", "/n", ""):
    os.rmdir(TOP + below)
group = TOP.removeprefix("/sys/fs/cgroup/memory")
answer = subprocess.run([MEMTIDE, "job", RECORDING, "--cgroup", f"{group}/backup", "--format", "json"], check=True, capture_output=True)
printed = sum(row["reread_bytes"] for row in json.loads(answer.stdout)["others"] if row["cgroup"] == f"{group}/n") / MIB
print(f"printed {printed:.1f} MiB, measured {measured:.1f} MiB")
