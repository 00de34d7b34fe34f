#!/usr/bin/env python3
"""What being watched costs a job: its CPU time (user and system, from the kernel's account of its shell), interleaved: alone,
under `memtide job` by trace points and by open files, and under strace. Warm cache. Also the CPU time of the watcher.

usage: job_cost.py MEMTIDE DIRECTORY [ROUNDS]"""
import os, random, statistics, subprocess, sys, time

MEMTIDE, D = sys.argv[1:3]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 8
os.makedirs(D, exist_ok=True)
BIG = f"{D}/cost.bin"
if not os.path.exists(BIG):
    with open(BIG, "wb") as f:
        for _ in range(100):
            f.write(os.urandom(512 << 10) + b"a line of text " * 34953)
JOBS = {
    "backup (tar, gzip -1 of 100 MB)": f"tar cf {D}/c.tar -C {D} cost.bin; gzip -1 -c {D}/c.tar > {D}/c.gz; rm {D}/c.tar {D}/c.gz",
    "grep -r in 130 MB of headers": "grep -r no_such_word_here /usr/include; true",
    "a shell that starts 300 programs": "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done",
}
WATCH = {
    "alone": [],
    "trace": [MEMTIDE, "job", "--watch", "trace", "--output", "/dev/null", "--force", "--"],
    "open files": [MEMTIDE, "job", "--watch", "files", "--output", "/dev/null", "--force", "--"],
    "strace": ["strace", "-f", "-o", "/dev/null"],
    "strace, reads and writes": ["strace", "-f", "--seccomp-bpf", "-e", "trace=read,write,openat,close,unlink", "-o", "/dev/null"],
}
TICKS = os.sysconf("SC_CLK_TCK")


def run(prefix, command):
    path = f"/tmp/memtide-job-cost-{os.getpid()}"
    script = f"({command}); cat /proc/$$/stat > {path}"
    before = os.times()
    begun = time.monotonic()
    subprocess.run([*prefix, "sh", "-c", script], check=True, stdout=subprocess.DEVNULL)
    wall = time.monotonic() - begun
    after = os.times()
    with open(path) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    job = (int(fields[13]) + int(fields[14])) / TICKS
    everything = after.children_user + after.children_system - before.children_user - before.children_system
    return job, everything - job, wall


for name, command in JOBS.items():
    run([], command)
    rows = {watch: [] for watch in WATCH}
    for _ in range(ROUNDS):
        for watch in random.sample(list(WATCH), len(WATCH)):
            rows[watch].append(run(WATCH[watch], command))
    alone = statistics.median(row[0] for row in rows["alone"])
    print(name)
    for watch, of in rows.items():
        job, watcher, wall = (statistics.median(row[at] for row in of) for at in range(3))
        print(f"  {watch:26} job {job:6.2f} s CPU ({job / alone:4.2f}x)  watcher {watcher:5.2f} s  wall {wall:5.2f} s", flush=True)
