#!/usr/bin/env python3
"""Asks memtide about a made day what an engineer on call would ask, and counts whose first line is right.

    scripts/made-day-questions.py DIR [MEMTIDE] [-v]      DIR as scripts/made-day.py left it

What the first line must say was written from the log of truth before memtide was asked. With -v each answer is shown.
"""

import csv
import datetime
import re
import subprocess
import sys


class Day:
    """The log of truth."""

    def __init__(self, place):
        self.recording = f"{place}/recording"
        with open(f"{place}/truth.tsv", encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file, delimiter="\t"))

    def of(self, name, number=1):
        rows = [row for row in self.rows if row["cgroup"] == f"/day/{name}"]
        return sorted(rows, key=lambda row: row["from"])[number - 1]

    def begin(self, name, number=1, later=0):
        return moved(self.of(name, number)["from"], later)

    def end(self, name, number=1, later=0):
        return moved(self.of(name, number)["to"], later)

    def pid(self, name, number=1):
        return self.of(name, number)["pid"]

    def within(self, name, number=1):
        return ["--since", self.begin(name, number, -5), "--until", self.end(name, number, 15)]


def moved(time, seconds):
    at = datetime.datetime.strptime(time, "%H:%M:%S") + datetime.timedelta(seconds=seconds)
    return at.strftime("%H:%M:%S")


def questions(day):
    """A command, and what its first line must say."""
    check, at = ["check", day.recording], "--at"
    group = lambda name, number=1: [*check, "--cgroup", f"/day/{name}", *day.within(name, number)]
    calm = r"^OK"
    return [
        ("What is wrong?", check, r"/day/api meets its limit of 400 MiB in"),
        ("first kill", [*check, at, day.end("shop")], r"At \S+ Cgroup /day/shop hit .* killed shop \(PID"),
        ("slow search", [*check, at, day.begin("search", later=20)], r"/day/search re-reads its files"),
        ("upload died", [*check, at, day.end("upload")], r"/day/upload hit .* tmpfs"),
        ("workers died", [*check, at, day.end("workers")], r"/day/workers hit .* killed workers"),
        ("leak to its end", [*check, at, day.end("ledger")], r"/day/ledger hit its memory limit of 200 MiB.* in a line"),
        ("slow writer", [*check, at, day.begin("writer", later=15)], r"/day/writer"),
        ("limit of the parent", [*check, at, day.end("tenant/a")], r"/day/tenant hit its memory limit of 160 MiB"),
        ("limit too low", [*check, at, day.begin("index", later=10)], r"/day/index re-reads"),
        ("limit lowered", [*check, at, day.begin("report", later=40)], r"/day/report re-reads"),
        ("locked memory", [*check, at, day.end("locked")], r"/day/locked hit .* killed locked"),
        ("memfd", [*check, at, day.end("queue")], r"/day/queue hit .* shared memory"),
        ("stands still", [*check, at, day.begin("stopped", later=20)], r"/day/stopped"),
        ("page faults", [*check, at, day.begin("faults", later=20)], r"faults"),
        ("crash loop", [*check, at, day.begin("loop", later=10)], r"/day/loop hit .* 5 kills"),
        ("second leak", [*check, at, day.end("ledger", 2)], r"/day/ledger hit its memory limit of 250 MiB"),
        ("removed cgroup", [*check, at, day.end("gone")], r"/day/gone hit"),
        ("second kill", [*check, at, day.end("shop", 2)], r"At \S+ Cgroup /day/shop hit"),
        ("third kill", [*check, at, day.end("shop", 3)], r"At \S+ Cgroup /day/shop hit"),
        ("second slow search", [*check, at, day.begin("search", 2, 20)], r"/day/search re-reads"),
        ("before it all", [*check, "--since", day.begin("ci"), "--until", day.begin("shop", later=5)], calm),
        ("shop alone", [*check, "--cgroup", "/day/shop"], r"/day/shop hit .* killed shop"),
        ("builds harmless?", group("ci"), calm),
        ("backup harmless?", group("backup"), calm),
        ("scan harmless?", group("scan"), calm),
        ("fits?", group("fits"), calm),
        ("spike harmless?", group("spike"), calm),
        ("batch harmless?", group("batch"), calm),
        ("forks harmless?", group("cron"), calm),
        ("refused limit harmless?", group("squeeze"), calm),
        ("index after the raise", group("index"), r"/day/index re-reads .* over since the limit was raised to 256 MiB"),
        ("api alone", [*check, "--cgroup", "/day/api"], r"/day/api meets its limit of 400 MiB"),
        ("writer alone", group("writer", 2), r"/day/writer"),
        ("stopped alone", group("stopped"), r"/day/stopped"),
        ("What grows?", ["growth", day.recording], r"^api .*leak"),
        ("ledger leaks?", ["growth", day.recording, "--service", day.pid("ledger")], r"^LEAK +ledger"),
        ("shop leaks?", ["growth", day.recording, "--service", "shop"], r"^LEAK +shop"),
        ("batch leaks?", ["growth", day.recording, "--service", "batch"], r"^(?!LEAK)\w"),
        ("sessions leaks?", ["growth", day.recording, "--service", day.pid("sessions")], r"sessions"),
        ("events of a kill", ["events", day.recording, "--since", day.end("shop", later=-1), "--until", day.end("shop", later=1)],
            r"OOM kill.* shop"),
        ("events of a raise", ["events", day.recording, "--cgroup", "/day/index", "--since", day.begin("index", later=25),
            "--until", day.begin("index", later=40)], r"limit.*256 MiB"),
        ("compare the raise", ["compare", day.recording, day.recording, "--before-since", day.begin("index"), "--before-until",
            day.begin("index", later=25), "--after-since", day.begin("index", later=35), "--after-until", day.end("index")],
            r"(?i)better.* limit"),
        ("a time just ahead", [*check, "--since", day.begin("api"), "--until", moved(datetime.datetime.now().strftime("%H:%M:%S"), 20)],
            r"/day/api meets its limit"),
        ("before the end", [*check, at, "-5s"], r"/day/api meets its limit"),
    ]


def first_line(answer):
    """The first sentence of an answer: of a table its first row; of `check` and `compare` the verdict behind the lines about
    the host."""
    blocks = [block for block in answer.strip().split("\n\n") if block]
    verdict = [block for block in blocks if re.match(r"[A-Z]{2,}( [A-Z]+)*  ", block) and not block.startswith("NAME")]
    if verdict:
        return " ".join(verdict[0].split())
    lines = blocks[0].split("\n") if blocks else [""]
    return lines[1] if lines[0].startswith("NAME") else " ".join(blocks[0].split()) if blocks else ""


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "-v"]
    day, memtide, right = Day(arguments[0]), (arguments[1:] or ["memtide"])[0], 0
    asked = questions(day)
    for title, command, expected in asked:
        run = subprocess.run([memtide, *command], capture_output=True, text=True, check=False)
        first = first_line(run.stdout or run.stderr)
        is_right = re.search(expected, first) is not None
        right += is_right
        if not is_right or "-v" in sys.argv:
            print(f"{'right' if is_right else 'WRONG'}  {title}: memtide {' '.join(command)}\n       {first[:300]}")
    print(f"{right} of {len(asked)} first lines are right")


main()
