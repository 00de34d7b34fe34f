#!/usr/bin/env python3
"""Does `memtide headroom --cgroup` say how much more fits? Real loads in real cgroups, against what really fits.

    bench/headroom_cgroup.py [--memtide PATH] [CASE...]      default: all cases, target/release/memtide

For each case a load runs in a cgroup with a limit. memtide captures 15 s of it and says how much process memory fits
(worst moment). Then a hog of ever other size runs beside the load, and the largest one is sought that neither gets
anything killed nor costs the load more than 15 % of its work. The table compares both.

Needs root, the memory controller of cgroup v1, 1.5 GB of disk below --dir. Takes a minute for each case; a busy
machine disturbs it little, as work is measured without waits for a CPU. Removes its cgroups and files.
"""

import json
import subprocess
import time

from cgroup_loads import (MIB, ROOT, Load, end, hits, kills, make_group, remove_files, remove_group, start,
                          try_cases)

# name: limit of the cgroup in MiB, load, and what else: `around`: limit of the cgroup around it, `beside`: a load in a
# cgroup beside it, `sick`: it is short already, so nothing may be said to fit.
CASES = {
    "heap-half": dict(limit=200, load="anon=100"),
    "heap-most": dict(limit=200, load="anon=170"),
    "heap-idle": dict(limit=300, load="anon=20"),
    "heap-near-limit": dict(limit=200, load="anon=182"),
    "heap-walks": dict(limit=256, load="anon=120,touch=1"),
    "tmpfs": dict(limit=200, load="shm=90"),
    "tmpfs-and-heap": dict(limit=300, load="shm=80,anon=100"),
    "loop-fits": dict(limit=256, load="loop=100"),
    "loop-small": dict(limit=256, load="loop=30"),
    "loop-and-heap": dict(limit=256, load="anon=80,loop=80"),
    "loop-nearly-full": dict(limit=256, load="anon=60,loop=170"),
    "random-fits": dict(limit=256, load="random=90"),
    "random-and-heap": dict(limit=300, load="anon=100,random=80"),
    "mapped": dict(limit=256, load="mapped=90"),
    "mapped-and-heap": dict(limit=256, load="anon=90,mapped=50"),
    "stream": dict(limit=128, load="stream=600"),
    "stream-and-heap": dict(limit=200, load="anon=90,stream=600"),
    "hot-and-stream": dict(limit=256, load="random=60,stream=600"),
    "hot-and-once": dict(limit=300, load="once=150,loop=50"),
    "hot-and-was-hot": dict(limit=300, load="washot=100,loop=60"),
    "writer": dict(limit=200, load="write=40,anon=60"),
    "nested": dict(limit=300, around=200, load="anon=60"),
    "nested-beside": dict(limit=200, around=300, load="anon=40", beside="anon=160"),
    "nested-cache-beside": dict(limit=200, around=256, load="anon=40", beside="loop=90"),
    "sick-loop": dict(limit=128, load="anon=40,loop=160", sick=True),
    "sick-random": dict(limit=200, load="anon=120,random=140", sick=True),
    "sick-mapped": dict(limit=160, load="anon=80,mapped=120", sick=True),
    "sick-killed": dict(limit=100, load="anon=40", killed=140, sick=True),
}


def fits(load, inner, names, size, usual):
    """Whether a hog of this size costs neither a process nor 15 % of the work."""
    before, hits_before = sum(map(kills, names)), sum(map(hits, names))
    process = start(inner, "--hog", size, adj=1000, stdout=subprocess.PIPE)
    try:
        held = process.stdout.readline() == b"held\n"
        time.sleep(1.5)
        rate = load.rate(3) if held else 0.0
        if held and rate < 0.85 * usual:
            # What disturbed the machine once is not the load's own.
            rate = max(rate, load.rate(3))
        is_killed = sum(map(kills, names)) > before or load.process.poll() is not None
        # Where no limit was hit nothing was evicted, and the machine is slow for another reason.
        is_slow = rate < 0.85 * usual and sum(map(hits, names)) > hits_before
    finally:
        end(process)
    return held and not is_killed and not (load.works and is_slow)


def truth(load, inner, names, limit):
    first = load.rate(4)
    low, high = 0, limit
    while high - low > max(2, limit // 64) and load.process.poll() is None:
        # The load gets its cache back, and its speed of now is what counts.
        for _ in range(8):
            usual = load.rate(1)
            if usual >= 0.93 * first:
                break
        size = (low + high) // 2
        if fits(load, inner, names, size, usual):
            low = size
        else:
            high = size
    return low


def said(memtide, capture, group):
    command = [memtide, "headroom", capture, "--cgroup", group, "--cycle", "10s", "--format", "json"]
    answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    room = answer["room"]["least"]
    bounds = [room[f"{name}_bytes"] for name in ("lower", "likely", "upper")]
    for limit in answer["limits"]:
        if limit["holds"] and limit["room_bytes"] is not None:
            bounds = [None if b is None else min(b, limit["room_bytes"]) for b in bounds]
    return answer, [None if b is None else max(b, 0) / MIB for b in bounds]


def judge(case, answer, bounds, really):
    lower, likely, upper = bounds
    if case.get("sick"):
        return "right" if answer["answer"] == "does-not-fit" else "WRONG: it is short"
    slack = 0.1 * min(case["limit"], case.get("around", case["limit"]))
    if likely is not None:
        if abs(likely - really) <= slack:
            return "right"
        if lower - slack <= really <= upper + slack:
            return "within bounds" if likely < really else "TOO MUCH, within bounds"
        return "WRONG"
    return "range" if (lower or 0) - slack <= really <= upper + slack else "WRONG range"


def run(name, case, memtide, directory):
    outer, inner = f"/{name}", f"/{name}/app"
    make_group(outer, case.get("around"))
    make_group(inner, case["limit"])
    names, loads = [outer, inner], []
    try:
        if "beside" in case:
            make_group(f"{outer}/beside", None)
            names.append(f"{outer}/beside")
            loads.append(Load(f"{outer}/beside", case["beside"], directory))
        load = Load(inner, case["load"], directory)
        loads.append(load)
        began = time.monotonic()
        while load.done() < 20 and time.monotonic() - began < 60:
            time.sleep(0.2)
        time.sleep(8)
        capture = f"{directory}/{name}.jsonl.gz"
        recorder = subprocess.Popen([memtide, "capture", "-f", "--for", "15s", "-o", capture],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if "killed" in case:
            time.sleep(5)
            end_hog = start(inner, "--hog", case["killed"], adj=1000, stdout=subprocess.DEVNULL)
            end_hog.wait()
        recorder.wait()
        answer, bounds = said(memtide, capture, f"/{ROOT}{inner}")
        smallest = min(case["limit"], case.get("around", case["limit"]))
        really = None if case.get("sick") else truth(load, inner, names, smallest)
        report(name, smallest, answer, bounds, really, judge(case, answer, bounds, really or 0))
    finally:
        for load in loads:
            end(load.process)
        remove_files(directory)
        for group in reversed(names):
            remove_group(group)


def report(name, limit, answer, bounds, really, verdict):
    show = lambda mib: "-" if mib is None else f"{mib:.0f}"
    lower, likely, upper = map(show, bounds)
    told = likely if likely != "-" else f"{lower}..{upper}"
    ratio = f"{float(bounds[1]) / really:.2f}" if really and bounds[1] is not None else ""
    how = answer["terms"]["read_cache"]["how"] if answer["terms"] else ""
    print(f"{name:22} {limit:5} {answer['answer']:13} {told:>9} {lower + '..' + upper:>10} "
          f"{show(really):>6} {ratio:>5}  {how:13} {verdict}", flush=True)


if __name__ == "__main__":
    HEAD = (f"{'case':22} {'limit':>5} {'answer':13} {'said':>9} {'bounds':>10} {'truth':>6} {'ratio':>5}  "
            f"{'how':13} verdict  (MiB)")
    try_cases(__doc__, CASES, HEAD, run)
