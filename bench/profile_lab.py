#!/usr/bin/env python3
"""How often does `memtide lab run SCENARIO --profile` name the right reason first? Each kernel, so many times.

    bench/profile_lab.py [--memtide PATH] [--times 5] [--kernel 6.1 --kernel 7.2] [--minutes 60] [CASE...]

A case is a scenario with settings. For each of its arms a reason must be the first that is hot, or nothing may be hot; for some the
largest memory work must be of a kind, hot or not. Runs take turns: all cases once for each kernel, then again, until the times or the
minutes are over. Prints a table: case, arm, kernel, how many of how many were right, and what came first otherwise. Needs
qemu-system-x86 and the kernels (`memtide lab kernel fetch`, and with a suite: sid); a run takes one to four minutes.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

SWAP = "swap-in|direct-reclaim|kswapd"
# name: scenario, settings, {arm: the first hot reason, "" for nothing}, {arm: the largest memory work}
CASES = {
    "node reclaim": ("node-reclaim", [], {"mode-1": "node-reclaim", "mode-0": ""}, {}),
    "swap on disk": ("swapdemo", ["--arm", "swappiness-60"], {"swappiness-60": SWAP}, {}),
    "swap on zram": ("swapdemo", ["--arm", "zram-random"], {"zram-random": SWAP}, {}),
    "memory.max": ("cgroup-starved", [], {"starved": "memcg-max", "room": ""}, {}),
    "memory.high": ("cgroup-high", [], {"throttled": "memcg-high", "fits": ""}, {}),
    "dirty limit": ("write-plateau", ["--arm", "dirty-bytes-32m"], {"dirty-bytes-32m": "dirty-throttle"}, {}),
    "slab": ("slab-dentries", ["--set", "names=3000000"], {"lookups": "kswapd|direct-reclaim"},
             {"lookups": "kswapd/slab-shrink|direct-reclaim/slab-shrink"}),
    "fork": ("fork-cow", [], {"written": "", "only-read": ""}, {"written": "cow/|fork|anon-fault"}),
    "healthy, idle": ("idle", [], {"idle": ""}, {}),
    "healthy, busy": ("busy", [], {"fits": ""}, {}),
}


def run(memtide, name, kernel):
    """The profile of each arm, or why there is none."""
    scenario, settings, *_ = CASES[name]
    command = [memtide, "lab", "run", scenario, *settings, "--profile", "--kernel", kernel, "--format", "json"]
    try:
        # The page that it writes is of no interest here.
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run(command, capture_output=True, text=True, timeout=1200, cwd=directory)
        arms = json.loads(done.stdout)["arms"]
    except subprocess.TimeoutExpired:
        return {}, "took longer than 20 minutes"
    except (ValueError, KeyError):
        return {}, (done.stderr.strip().splitlines() or ["no answer"])[0]
    return {arm["name"]: arm["profile"] for arm in arms if arm.get("profile")}, None


def is_right(name, arm, profile):
    _, _, hot, largest = CASES[name]
    first = (profile["hot"] or [""])[0]
    if arm in hot and first not in hot[arm].split("|"):
        return False
    work = (profile["largest"] or [""])[0]
    return arm not in largest or any(work.startswith(one) for one in largest[arm].split("|"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--memtide", default=f"{HERE}/target/release/memtide")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--kernel", action="append")
    arguments = parser.parse_args()
    kernels = arguments.kernel or ["6.1", "7.2"]
    until = time.monotonic() + arguments.minutes * 60
    right = collections.Counter()
    tried = collections.Counter()
    wrong = collections.defaultdict(list)
    for turn in range(arguments.times):
        for name in arguments.cases or CASES:
            for kernel in kernels:
                if time.monotonic() > until:
                    break
                begun = time.monotonic()
                profiles, failure = run(arguments.memtide, name, kernel)
                took = time.monotonic() - begun
                if failure:
                    wrong[name, "-", kernel].append(failure)
                    tried[name, "-", kernel] += 1
                for arm, profile in profiles.items():
                    if arm not in CASES[name][2]:
                        continue
                    key = (name, arm, kernel)
                    tried[key] += 1
                    if is_right(name, arm, profile):
                        right[key] += 1
                    else:
                        wrong[key].append(f"hot {profile['hot']}, largest {profile['largest']}")
                    print(f"{turn + 1} {name}, {arm}, {kernel}, {took:.0f} s: {profile['headline']}", flush=True)
    print(f"\n{'case':<16}{'arm':<18}{'kernel':<10}right")
    for (name, arm, kernel), count in tried.items():
        key = (name, arm, kernel)
        others = f"   otherwise: {'; '.join(wrong[key])}" if wrong[key] else ""
        print(f"{name:<16}{arm:<18}{kernel:<10}{right[key]} of {count}{others}")
    return 0 if sum(right.values()) == sum(tried.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
