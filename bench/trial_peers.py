#!/usr/bin/env python3
"""False verdicts of memtide trial, hyperfine and a shell loop with time(1) on two equal commands, while a neighbour comes and goes.

    bench/trial_peers.py MEMTIDE [TRIALS]

Each of TRIALS (30) trials compares a command with itself. hyperfine runs it ten times and then ten times again; it is wrong where the
means differ by Welch's test at 95 %, and where it prints a ratio whose interval excludes 1. The loop does the same with wall time and
peak memory of /usr/bin/time; memtide is wrong where it calls memory or CPU time less or more. The neighbour is a spinner for each CPU
that is on for 2 to 12 s and off as long, from a fixed seed. Needs hyperfine and time(1), and root for cgroups.
"""
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

WORK = "/usr/bin/python3 -c \"x = [str(i) * 3 for i in range(150000)]; y = sorted(x)\""
RUNS = 10


def neighbour(stop):
    chance = random.Random(7)
    while not stop.is_set():
        spinners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() or 1)]
        stop.wait(chance.uniform(2, 12))
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
        stop.wait(chance.uniform(2, 12))


def differs(one, other):
    """Welch's test at 95 %, with the limit of 18 degrees of freedom or fewer."""
    spread = statistics.variance(one) / len(one) + statistics.variance(other) / len(other)
    return abs(statistics.mean(one) - statistics.mean(other)) > 2.101 * math.sqrt(spread) if spread else False


def hyperfine():
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = ["hyperfine", "-N", "--style", "none", "--runs", str(RUNS), "--export-json", file.name, WORK, WORK]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        one, other = (result["times"] for result in json.load(open(file.name))["results"])
    return differs(one, other)


def loop():
    wall, peak = [], []
    for _ in range(2 * RUNS):
        command = f"/usr/bin/time -f '%e %M' {WORK}"
        printed = subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stderr.split()
        wall.append(float(printed[0]))
        peak.append(float(printed[1]))
    return differs(wall[:RUNS], wall[RUNS:]), differs(peak[:RUNS], peak[RUNS:])


def memtide(program):
    with tempfile.TemporaryDirectory() as place:
        command = [program, "trial", "--directory", f"{place}/trial", "--format", "json", WORK, WORK]
        report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    wrong = {}
    for metric in report["analysis"]["metrics"]:
        verdicts = {effect["verdict"] for effect in metric["effects"]}
        wrong[metric["metric"]] = bool(verdicts & {"less", "more", "less_under_margin", "more_under_margin"})
    return wrong, report["analysis"]["blocks"]


def main():
    program, trials = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30
    stop = threading.Event()
    thread = threading.Thread(target=neighbour, args=(stop,))
    thread.start()
    false, blocks, took = {}, [], {}
    try:
        for _ in range(trials):
            begun = time.monotonic()
            false["hyperfine, time"] = false.get("hyperfine, time", 0) + hyperfine()
            after_hyperfine = time.monotonic()
            wall, peak = loop()
            false["time(1), wall"] = false.get("time(1), wall", 0) + wall
            false["time(1), peak memory"] = false.get("time(1), peak memory", 0) + peak
            after_loop = time.monotonic()
            wrong, some = memtide(program)
            blocks.append(some)
            for metric in ("memory", "cpu", "time"):
                name = f"memtide trial, {metric}"
                false[name] = false.get(name, 0) + wrong.get(metric, False)
            took["hyperfine"] = took.get("hyperfine", 0) + after_hyperfine - begun
            took["time(1)"] = took.get("time(1)", 0) + after_loop - after_hyperfine
            took["memtide"] = took.get("memtide", 0) + time.monotonic() - after_loop
    finally:
        stop.set()
        thread.join()
    for name, count in false.items():
        print(f"{name:<28} {count:>3} of {trials} trials of equal commands called different")
    print("blocks of memtide:", sorted(blocks), {name: f"{seconds / trials:.1f} s a trial" for name, seconds in took.items()})


if __name__ == "__main__":
    main()
