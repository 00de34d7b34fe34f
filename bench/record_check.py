#!/usr/bin/env python3
"""Does a recorder that checks itself find a disease of five minutes in an hour, once, and what does checking cost?

    sudo bench/record_check.py [--memtide PATH] [--minutes 60] [--check 1m] [--at MINUTE] [--lasts MINUTES]

At a minute that memtide does not know (at random unless --at says it), processes in a cgroup of 60 MiB read here and there in a file
of 120 MiB. Printed: the events that checks kept of this cgroup, the calls of the command of --on-finding, and the CPU time in % of
one CPU: of the checks, by the children's own clocks, before the disease and in all; of the recorder with all of its children, by
/proc/PID/stat. Others that use the machine delay checks, and do not add to these clocks.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time

from cgroup_loads import ROOT, Load, end, make_group, remove_files, remove_group

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def cpu_s(pid):
    """Of the process, and of it with the children that it waited for."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = [int(field) for field in stat.read().rsplit(")", 1)[1].split()[11:15]]
    ticks = os.sysconf("SC_CLK_TCK")
    return sum(fields[:2]) / ticks, sum(fields) / ticks


def status(arguments, recording):
    answer = subprocess.run([arguments.memtide, "record", "--status", "--json", "--to", recording],
                            capture_output=True, text=True, check=False)
    return json.loads(answer.stdout)["recorder"]


def events(arguments, recording):
    answer = subprocess.run([arguments.memtide, "events", recording, "--json"],
                            capture_output=True, text=True, check=True)
    all_of_them = json.loads(answer.stdout)["events"]
    return [event for event in all_of_them if event["kind"].startswith("finding-")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--memtide", default=f"{HERE}/target/release/memtide")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--check", default="1m")
    parser.add_argument("--at", type=float, help="minute of the disease [default: at random]")
    parser.add_argument("--lasts", type=float, default=5, help="minutes of the disease")
    parser.add_argument("--dir", default=f"/var/tmp/{ROOT}")
    arguments = parser.parse_args()
    left = max(1.0, arguments.minutes - arguments.lasts - 5)
    at = arguments.at if arguments.at is not None else random.uniform(0.2, 1.0) * left
    os.makedirs(arguments.dir, exist_ok=True)
    recording, notices = f"{arguments.dir}/recording", f"{arguments.dir}/notices"
    make_group("", 60)
    # The file is written and evicted before anybody waits.
    end(Load("", "random=120", arguments.dir).process)
    log = f"{arguments.dir}/log"
    with open(log, "w") as errors:
        recorder = subprocess.Popen([arguments.memtide, "record", "--to", recording, "--check", arguments.check,
                                     "--on-finding", f"cat >> {notices}"], stderr=errors)
    try:
        begun = time.time()
        time.sleep(30)
        own, whole = cpu_s(recorder.pid)
        since = time.time()
        time.sleep(max(0.0, at * 60 - (time.time() - begun)))
        calm = status(arguments, recording)["checks"] or {"done": 0, "cpu_s": 0.0}
        calm_s, sick = time.time() - begun, time.time()
        loads = [Load("", "random=120", arguments.dir) for _ in range(2)]
        time.sleep(arguments.lasts * 60)
        for load in loads:
            end(load.process)
        well = time.time()
        time.sleep(max(60.0, arguments.minutes * 60 - (time.time() - begun)))
        took = time.time() - since
        own, whole = (now - then for now, then in zip(cpu_s(recorder.pid), (own, whole)))
        last = status(arguments, recording)
        recorder.terminate()
        recorder.wait(timeout=120)
        with open(log) as file:
            said = file.read()
        kept = events(arguments, recording)
        with open(notices) as lines:
            noticed = [json.loads(line) for line in lines]
    finally:
        end(recorder)
        shutil.rmtree(recording, ignore_errors=True)
        remove_files(arguments.dir)
        remove_group("")
    subject = f"/{ROOT}"
    checks = last["checks"]
    print(f"{took / 60:.0f} minutes of record --check {arguments.check}; the disease from minute {(sick - begun) / 60:.1f} "
          f"to {(well - begun) / 60:.1f}")
    for event in kept:
        print(f"  event at {event['at']}, {'here' if event['subject'] == subject else event['subject']}: {event['text']}")
    of_it = [notice for notice in noticed if notice["subject"] == subject]
    print(f"command run {checks['commands_run']} times, failed {checks['commands_failed']}; "
          f"of the disease: {[notice['state'] for notice in of_it]}")
    if calm["done"]:
        print(f"checks before the disease: {calm['done']}, {1000 * calm['cpu_s'] / calm['done']:.0f} ms each, "
              f"{100 * calm['cpu_s'] / calm_s:.3f} % of one CPU")
    print(f"all checks: {checks['done']}, {checks['failed']} failed, {1000 * checks['cpu_s'] / checks['done']:.0f} ms each, "
          f"{100 * checks['cpu_s'] / took:.3f} % of one CPU")
    print(f"recorder: {100 * own / took:.3f} % of one CPU itself, {100 * whole / took:.3f} % with children (checks, sealing)")
    samples = last["samples"]
    print(f"samples: {samples['taken']}, late {samples['late']}, missed {samples['missed']}, "
          f"the worst {1000 * samples['worst_late_s']:.0f} ms late")
    print(f"its log: {said.strip() or 'nothing'}")
    kinds = [event["kind"] for event in kept if event["subject"] == subject and event["kind"] != "finding-changed"]
    is_right = kinds == ["finding-found", "finding-cleared"] and len(of_it) == len(
        [event for event in kept if event["subject"] == subject])
    print("one found, one cleared" if is_right else "NOT ONE FOUND AND ONE CLEARED")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
