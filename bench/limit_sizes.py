#!/usr/bin/env python3
"""Is a limit that `memtide check` advises enough, and how much more than enough is it? Real loads in real cgroups.

    bench/limit_sizes.py [--memtide PATH] [CASE...]      default: all cases, target/release/memtide
    bench/limit_sizes.sh [CASE...]                       the same in a virtual machine with cgroup v2

For each case a load runs in a cgroup whose limit is too small. memtide captures 25 s of it, and `check --cgroup` says
which limit it needs. Then the least limit is sought at which the load does 85 % of the work that it does without one,
or reads a fiftieth again of what it read (at which it lives, if it was killed). The advised limit is set and judged in
the same way: right is what is enough and at most 1.5 times the least.

Needs root, and 1.5 GB of disk below --dir. Takes one or two minutes for each case; a busy machine disturbs it little,
as work is measured without waits for a CPU. Removes its cgroups and files.
"""

import json
import os
import subprocess
import time

from cgroup_loads import (IS_V1, LIMIT, MIB, ROOT, Load, end, group_path, kills, make_group, memory, refaults,
                          remove_files, remove_group, set_limit, try_cases, write)

# name: limit of the cgroup in MiB, load, and what else: `around`: the limit that is too small is that of the cgroup
# around it; `high`: it is memory.high (v2); `grows`: the load is killed and begun again.
CASES = {
    "loop": dict(limit=60, load="loop=120"),
    "loop-large": dict(limit=60, load="loop=220"),
    "loop-nearly": dict(limit=100, load="loop=110"),
    "loop-and-heap": dict(limit=100, load="anon=50,loop=100"),
    "loop-and-large-heap": dict(limit=190, load="anon=150,loop=100"),
    "two-loops": dict(limit=80, load="loop=60,loop=90"),
    "random": dict(limit=70, load="random=120"),
    "random-nearly": dict(limit=100, load="random=110"),
    "random-and-heap": dict(limit=120, load="anon=60,random=120"),
    "random-and-loop": dict(limit=100, load="random=80,loop=60"),
    "mapped": dict(limit=70, load="mapped=120"),
    "mapped-and-heap": dict(limit=110, load="anon=60,mapped=100"),
    "hot-and-stream": dict(limit=60, load="random=90,stream=400"),
    "hot-and-once": dict(limit=70, load="once=150,loop=100"),
    "heap-walks-and-loop": dict(limit=120, load="anon=70,touch=1,loop=90"),
    "nested": dict(limit=400, around=80, load="loop=140"),
    "nested-and-heap": dict(limit=400, around=110, load="anon=50,random=110"),
    "grows": dict(limit=80, load="grow=120", grows=True),
    "grows-large": dict(limit=100, load="grow=260", grows=True),
    "grows-nearly": dict(limit=120, load="grow=130", grows=True),
    "grows-and-loop": dict(limit=100, load="loop=30,grow=110", grows=True),
    "grows-nested": dict(limit=400, around=90, load="grow=140", grows=True),
    "tmpfs-and-loop": dict(limit=100, load="shm=50,loop=90"),
    "high-heap": dict(limit=80, load="anon=140,touch=1", high=True),
    "high-loop": dict(limit=80, load="loop=140", high=True),
    "high-heap-and-loop": dict(limit=100, load="anon=80,loop=80", high=True),
}
# Disks of virtual machines answer from the memory of their host.
READ_BYTES_PER_S = 40 * MIB


def judged(memtide, capture, group):
    """What is found in the cgroup: rules, and the limit that the first fix sets in MiB, if any."""
    command = [memtide, "check", capture, "--cgroup", group, "--format", "json"]
    answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    found = [finding["id"] for finding in answer["findings"]]
    for finding in answer["findings"]:
        for change in finding["fix"][0]["changes"] if finding["fix"] else ():
            # The limit of swap is raised beside that of memory.
            if change["kind"] == "limit" and "memsw" not in change["file"]:
                return found, change["to_bytes"] / MIB, change["cgroup"]
    return found, None, None


class Case:
    def __init__(self, name, case, memtide, directory):
        self.memtide, self.directory, self.capture = memtide, directory, f"{directory}/{name}.jsonl.gz"
        self.name, self.spec, self.grows = name, case["load"], case.get("grows")
        self.outer, self.inner = f"/{name}", f"/{name}/app"
        self.small = case.get("around", case["limit"])
        self.tight = self.outer if "around" in case else self.inner
        self.file = "memory.high" if case.get("high") else LIMIT
        make_group(self.outer, None)
        make_group(self.inner, case["limit"] if "around" in case else None)
        set_limit(self.tight, self.small, self.file)
        if not IS_V1:
            disk = os.stat(directory).st_dev
            write(f"{group_path(self.inner)}/io.max", f"{os.major(disk)}:{os.minor(disk)} rbps={READ_BYTES_PER_S}")
        self.load = None

    def begin(self):
        self.stop()
        self.load = Load(self.inner, self.spec, self.directory)

    def stop(self):
        if self.load:
            end(self.load.process)
            self.load = None

    def lives(self, limit):
        """Whether the load, begun anew, comes to have all that it wants below this limit."""
        self.stop()
        set_limit(self.tight, limit, self.file)
        before = kills(self.inner)
        self.begin()
        until = time.monotonic() + 60
        while time.monotonic() < until and self.load.process.poll() is None and not self.load.has_grown():
            time.sleep(0.1)
        time.sleep(1)
        return self.load.process.poll() is None and kills(self.inner) == before

    def rate(self, limit):
        """The work below this limit, once the load has had the time to read all that it reads."""
        try:
            set_limit(self.tight, limit, self.file)
        except OSError:  # cgroup v1 refuses a limit below what cannot be dropped
            self.reread = self.reread_before
            return 0.0
        best, calm = 0.0, 0
        for _ in range(25):
            rate = self.load.rate(1)
            calm = calm + 1 if rate < 1.05 * best else 0
            best = max(best, rate)
            if calm >= 4:
                break
        began, before = time.monotonic(), refaults(self.tight)
        rate = max(self.load.rate(2), self.load.rate(2))
        self.reread = (refaults(self.tight) - before) / (time.monotonic() - began)
        return rate

    def is_enough(self, limit):
        if self.grows:
            return self.lives(limit)
        # A busy machine makes work slow, and no page refault.
        return self.rate(limit) >= 0.85 * self.usual or self.reread <= 0.02 * self.reread_before

    def seek(self):
        """The least limit that is enough, and the work without a limit."""
        if not self.grows:
            self.usual = self.rate(None)
        low, high = self.small, self.small * 5
        while high - low > max(2, high // 50):
            middle = (low + high) // 2
            low, high = (low, middle) if self.is_enough(middle) else (middle, high)
        return high

    def run(self):
        self.begin()
        began = time.monotonic()
        while not self.grows and self.load.done() < 10 and time.monotonic() - began < 60:
            time.sleep(0.2)
        before = refaults(self.tight)
        recorder = subprocess.Popen([self.memtide, "capture", "-f", "--for", "25s", "-o", self.capture],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while recorder.poll() is None:
            time.sleep(0.3)
            if self.load.process.poll() is not None:
                self.begin()
        self.reread_before = (refaults(self.tight) - before) / 25
        found, advised, where = judged(self.memtide, self.capture, f"/{ROOT}{self.inner}")
        if self.load.process.poll() is not None:
            self.begin()
        least = self.seek()
        if not self.grows and self.rate(self.small) >= 0.85 * self.usual:
            verdict, least = "no case: it was not short", None
        elif advised is None:
            verdict = "no size" if found else "NOT FOUND"
        elif where != f"/{ROOT}{self.tight}":
            verdict = f"WRONG cgroup: {where}"
        elif not any(self.is_enough(advised) for _ in range(3)):  # the first time may be spent on reading all of it
            verdict = "TOO SMALL"
        elif advised <= 1.5 * least:
            verdict = "right"
        else:
            # Where the need is not known, the advice is to set the limit to a little more than what is there then.
            then = 1.05 * memory(self.tight)
            is_right = then <= 1.5 * least and self.is_enough(then)
            verdict = f"then {then:.0f}: right" if is_right else "TOO LARGE"
        show = lambda mib: f"{mib:.0f}" if mib else "-"
        ratio = f"{advised / least:.2f}" if advised and least else ""
        print(f"{self.name:20} {self.small:5} {show(advised):>7} {show(least):>5} {ratio:>5}  {verdict:18} "
              f"{', '.join(found)}", flush=True)

    def clean(self):
        self.stop()
        remove_files(self.directory)
        remove_group(self.inner)
        remove_group(self.outer)


def run(name, case, memtide, directory):
    if IS_V1 and case.get("high"):
        return
    one = Case(name, case, memtide, directory)
    try:
        one.run()
    finally:
        one.clean()


if __name__ == "__main__":
    HEAD = (f"cgroup v{1 if IS_V1 else 2}, Linux {os.uname().release}\n"
            f"{'case':20} {'limit':>5} {'advised':>7} {'least':>5} {'ratio':>5}  {'verdict':18} found  (MiB)")
    try_cases(__doc__, CASES, HEAD, run)
