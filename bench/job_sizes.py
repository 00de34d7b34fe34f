#!/usr/bin/env python3
"""Predicted against measured: `memtide job` watches a command once without a limit, then the same command runs in memory
cgroups (v1) of several sizes and is measured by the kernel's account of it. As root, on a disk (not tmpfs).

usage: job_sizes.py MEMTIDE DIRECTORY JOB SIZE_MIB...    JOB: backup, sort, gc, tar, compile, rsync, split
Figures of docs/job.md are of this script."""
import json, os, random, shutil, subprocess, sys, time

MEMTIDE, D, JOB = sys.argv[1:4]
SIZES = [int(size) for size in sys.argv[4:]]
# Memory of the cgroup that is neither cache of the job's files nor its processes' own: the kernel's, the shell's files (MiB).
KERNEL = 2.8
METHOD = os.environ.get("WATCH", "trace")


def logs():
    os.makedirs(f"{D}/logs", exist_ok=True)
    words = [os.urandom(6).hex().encode() for _ in range(4000)]
    for i in range(10):
        path = f"{D}/logs/app{i}.log"
        if os.path.exists(path):
            continue
        with open(path, "wb") as f:
            size, chance = 0, random.Random(i)
            while size < 10_500_000:
                line = b"2026-11-21T02:00:00 INFO app worker request finished path=/api/v1/orders status=200 bytes=1234 "
                line += b"upstream=10.0.0.7 level=info thread=main " + chance.choice(words) + os.urandom(9).hex().encode() + b"\n"
                f.write(line)
                size += len(line)


def evict(*roots):
    """Writes all files back and drops them from the cache."""
    os.sync()
    for root in roots:
        for directory, _, names in os.walk(root):
            for name in names:
                try:
                    fd = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_NOFOLLOW)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(fd)
                except OSError:
                    pass


def backup():
    logs()
    for name in ("out.tar", "out.tar.gz"):
        if os.path.exists(f"{D}/{name}"):
            os.unlink(f"{D}/{name}")
    return f"tar cf {D}/out.tar -C {D} logs; gzip -1 {D}/out.tar"


def sort():
    path = f"{D}/big.txt"
    if not os.path.exists(path):
        chance = random.Random(7)
        with open(path, "w") as f:
            for _ in range(2_000_000):
                f.write(f"{chance.getrandbits(160):040x}\n")
    os.makedirs(f"{D}/tmp", exist_ok=True)
    return f"LC_ALL=C sort --parallel=1 -S 8M -T {D}/tmp {path} -o {D}/sorted.txt"


def tree(path):
    if not os.path.exists(path):
        shutil.copytree(os.environ.get("TREE", "/usr/include"), path, symlinks=True, ignore_dangling_symlinks=True)


def gc():
    path, base = f"{D}/repo", f"{D}/repo.base"
    if not os.path.exists(base):
        tree(f"{base}/src")
        git = ["git", "-C", base, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
        subprocess.run(["git", "init", "-q", base], check=True)
        for n in range(3):
            for directory, _, names in os.walk(f"{base}/src"):
                for name in names[n::3]:
                    if name.endswith(".h") and not os.path.islink(f"{directory}/{name}"):
                        with open(f"{directory}/{name}", "a") as f:
                            f.write(f"/* {n} */\n")
            subprocess.run(git + ["add", "-A"], check=True)
            subprocess.run(git + ["commit", "-q", "-m", str(n)], check=True)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(base, path, symlinks=True)
    return f"git -C {path} -c gc.autoDetach=false -c pack.threads=1 gc -q"


def tar():
    tree(f"{D}/tree")
    return f"tar cf {D}/tree.tar -C {D} tree; tar df {D}/tree.tar -C {D}"


def compile():
    path = f"{D}/cc"
    os.makedirs(path, exist_ok=True)
    for n in range(24):
        with open(f"{path}/f{n}.cc", "w") as f:
            f.write("#include <algorithm>\n#include <iostream>\n#include <map>\n#include <regex>\n#include <string>\n")
            f.write(f"int f{n}(const std::string &s) {{ std::map<std::string,int> m; m[s]={n}; return m.begin()->second; }}\n")
    for name in os.listdir(path):
        if name.endswith((".o", ".a")):
            os.unlink(f"{path}/{name}")
    return f"cd {path} && for f in f*.cc; do g++ -save-temps=obj -c $f || exit; done && ar rc all.a f*.o && rm -f f*.ii f*.s"


def rsync():
    tree(f"{D}/tree")
    shutil.rmtree(f"{D}/copy", ignore_errors=True)
    # The second run reads both trees again, as its sums ask for.
    return f"rsync -a {D}/tree/ {D}/copy/ && rsync -ac {D}/tree/ {D}/copy/"


def split():
    logs()
    shutil.rmtree(f"{D}/parts", ignore_errors=True)
    os.makedirs(f"{D}/parts")
    return f"cat {D}/logs/*.log | split -b 4M - {D}/parts/p && sha256sum {D}/parts/p* >{D}/parts/sums && gzip -1 {D}/parts/p*"


MAKE = {"backup": backup, "sort": sort, "gc": gc, "tar": tar, "compile": compile, "rsync": rsync, "split": split}[JOB]


def prepare():
    command = MAKE()
    evict(D, *(["/usr/include", "/usr/lib/gcc"] if JOB == "compile" else []))
    return command


def io(pid):
    with open(f"/proc/{pid}/io") as f:
        return {key: int(value) for key, value in (line.split(": ") for line in f)}


def measured(size):
    """Net I/O, read and cancelled in MiB, in a cgroup of this size; the account is that of the zombie."""
    command = prepare()
    group = f"/sys/fs/cgroup/memory/memtide-job-bench-{os.getpid()}"
    os.mkdir(group)
    with open(f"{group}/memory.limit_in_bytes", "w") as f:
        f.write(str(size << 20))
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        with open(f"{group}/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))
        os.execvp("sh", ["sh", "-c", command])
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    account = io(pid)
    _, status = os.waitpid(pid, 0)
    wall = time.monotonic() - begun
    with open(f"{group}/memory.kmem.usage_in_bytes") as f:
        kernel = int(f.read()) / 2**20
    time.sleep(0.1)
    os.rmdir(group)
    mib = {key: value / 2**20 for key, value in account.items()}
    net = mib["read_bytes"] + mib["write_bytes"] - mib["cancelled_write_bytes"]
    return net, mib["read_bytes"], mib["cancelled_write_bytes"], wall, kernel, status


def watched(own):
    """The answer of memtide for caches that are so much smaller than the limits."""
    command = prepare()
    answer = f"/tmp/memtide-job-bench-{os.getpid()}.json"
    caches = [f"--cache={max(size - own - KERNEL, 1) * 1024:.0f}K" for size in SIZES]
    words = [MEMTIDE, "job", f"--watch={METHOD}", "--format=json", f"--output={answer}", *caches]
    subprocess.run([*words, "--", "sh", "-c", command], check=True)
    with open(answer) as f:
        report = json.load(f)
    os.unlink(answer)
    return report


# Twice: how much memory of its own it has is known after the first time.
report = watched(watched(0)["seen"]["own_memory_bytes"] / 2**20)
seen, job = report["seen"], report["variants"][0]
print(f"{JOB}: coverage {seen['coverage']:.3f}, lost {seen['lost_events']}, own memory {seen['own_memory_bytes'] / 2**20:.1f} MiB, "
      f"footprint {job['curve']['footprint_bytes'] / 2**20:.1f} MiB, without a limit {seen['io']['read_bytes'] / 2**20:.0f} read")
print("limit   predicted (least..most)   measured    off   read  cancelled  wall  kernel")
within = inside = 0
for size, row in zip(SIZES, job["rows"]):
    net, read, cancelled, wall, kernel, status = measured(size)
    most = (row["read_bytes_most"] + row["written_bytes"]) / 2**20
    least = (row["read_bytes_least"] + row["written_bytes_least"]) / 2**20
    off = most / net - 1 if net > most else (least / net - 1 if net < least else 0.0)
    within += abs(off) <= 0.10
    # In the range that is printed, or below it by no more than 5 %.
    inside += least * 0.95 <= net <= most
    failed = "" if status == 0 else f"  FAILED {status}"
    print(f"{size:5}   {least:8.1f} .. {most:8.1f}   {net:8.1f}  {off:+6.1%}  {read:6.1f}  {cancelled:6.1f}  {wall:5.1f}  {kernel:5.1f}{failed}", flush=True)
print(f"within 10 %: {within} of {len(SIZES)}; in the range, or below it by 5 %: {inside} of {len(SIZES)}")
