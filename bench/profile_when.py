#!/usr/bin/env python3
"""Does `memtide profile --when` catch ten seconds of trouble in an hour, and what does it cost to wait?

    sudo bench/profile_when.py [--memtide PATH] [--minutes 60] [--at MINUTE] [--when reclaim]

At a minute that memtide does not know (at random unless --at says it), processes in a cgroup of 60 MiB read here and there in a file
of 120 MiB for ten seconds. Some profile must begin within these. Printed: how late each profile began, its first sentence, and the CPU
time and the memory that waiting took, from /proc/PID. Other reclaim on the machine gives other profiles; they are listed too.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time

from cgroup_loads import ROOT, Load, end, make_group, remove_files, remove_group

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EPISODE_S = 10


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(status.read().split("VmHWM:")[1].split()[0]) / 1024


def episode(directory):
    """Returns when it began and ended."""
    begun = time.time()
    loads = [Load("", "random=120", directory) for _ in range(2)]
    time.sleep(EPISODE_S)
    for load in loads:
        end(load.process)
    return begun, time.time()


def profiles(text):
    """All JSON values of a text."""
    decoder = json.JSONDecoder()
    while text := text.strip():
        value, at = decoder.raw_decode(text)
        yield value
        text = text[at:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--memtide", default=f"{HERE}/target/release/memtide")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--at", type=float, help="minute of the episode [default: at random]")
    parser.add_argument("--when", default="reclaim")
    parser.add_argument("--dir", default=f"/var/tmp/{ROOT}")
    arguments = parser.parse_args()
    at = arguments.at if arguments.at is not None else random.uniform(0.3, 0.95) * arguments.minutes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.makedirs(arguments.dir, exist_ok=True)
    make_group("", 60)
    # The file is written and evicted before anybody waits.
    end(Load("", "random=120", arguments.dir).process)
    command = [arguments.memtide, "profile", "--when", arguments.when, "--for", "5s", "--times", "50", "--json",
               "--for-at-most", f"{arguments.minutes * 60:.0f}s"]
    answer = f"{arguments.dir}/answer"
    with open(answer, "w") as out:
        memtide = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
    try:
        begun = time.time()
        time.sleep(2)
        before, since = cpu_s(memtide.pid), time.time()
        time.sleep(max(0.0, at * 60 - (time.time() - begun)))
        waited, cpu = time.time() - since, cpu_s(memtide.pid) - before
        peak = peak_mib(memtide.pid)
        first, last = episode(arguments.dir)
        time.sleep(max(10.0, arguments.minutes * 60 - (time.time() - begun) - 10))
        memtide.send_signal(signal.SIGINT)
        memtide.wait(timeout=60)
        with open(answer) as file:
            taken = list(profiles(file.read()))
    finally:
        end(memtide)
        remove_files(arguments.dir)
        remove_group("")
    print(f"waited {waited:.0f} s: {cpu:.2f} s of CPU, {100 * cpu / waited:.3f} % of one; at most {peak:.1f} MiB")
    print(f"episode of {last - first:.1f} s at minute {(first - begun) / 60:.1f} of {arguments.minutes:.0f}")
    caught = False
    for one in taken:
        late = one["origin"]["unix_time_s"] - first
        caught |= -1 <= late <= last - first
        print(f"  a profile {late:+.0f} s after its begin: {one['headline']}")
    print("caught" if caught else "NOT CAUGHT")
    return 0 if caught else 1


if __name__ == "__main__":
    sys.exit(main())
