#!/usr/bin/env python3
"""Scores `memtide check` on labelled pastes: does it read them, find what is there, and stay silent on what is not?

usage: score.py [--memtide BIN] [--jobs N] [--quiet] DIR...

DIR holds one folder for each case: paste.txt, case.toml. memtide gets a copy of paste.txt under a neutral name only.
  found      disease cases of which every must_find was reported, at any severity; `a|b` is either
  wrong      findings at warning or worse in must_not_find, or anything at warning or worse in a calm case
  unread     cases in which no block was recognised
  unknown    cases with nothing but figures in a layout that memtide does not know
A finding counts under its id and its aliases. Cases without [labels] are only read. `not_yet` ids count as missing here.
Exit status: 0, or 1 if memtide failed in any way other than "nothing that memtide reads".
"""
import argparse, json, os, subprocess, sys, tempfile, tomllib
from concurrent.futures import ThreadPoolExecutor

LOUD = ("warning", "critical")

def ids(items):
    return {i for item in items or [] for i in [item.get("id", ""), *(item.get("aliases") or [])]}

def run(binary, folder):
    case = tomllib.load(open(os.path.join(folder, "case.toml"), "rb"))
    labels = case.get("labels")
    with tempfile.TemporaryDirectory() as scratch:
        data = os.path.join(scratch, "input.txt")
        with open(os.path.join(folder, "paste.txt"), "rb") as source, open(data, "wb") as copy:
            copy.write(source.read())
        p = subprocess.run([binary, "check", data, "--format", "json"], capture_output=True, timeout=120)
    row = {"name": os.path.basename(folder), "labels": labels, "unread": False, "unknown": False, "failed": "", "missing": [], "wrong": [], "all": [], "loud": []}
    try:
        report = json.loads(p.stdout)
    except ValueError:
        error = p.stderr.decode(errors="replace")
        row["unread"] = "nothing that memtide reads" in error or "was searched for kernel reports" in error
        if not row["unread"]:
            row["failed"] = error.strip()[-200:] or f"exit status {p.returncode}"
        report = {}
    row["unknown"] = [i["form"] for i in report.get("source", {}).get("inputs", [])] == ["unknown layout"]
    loud = ids(f for f in report.get("findings", []) if f.get("severity") in LOUD)
    said = ids(report.get("findings")) | ids(report.get("notes"))
    row["all"], row["loud"] = sorted(said), sorted(loud)
    if labels is not None:
        row["missing"] = [w for w in labels.get("must_find", []) if not set(w.split("|")) & said]
        allowed = set() if labels.get("calm") else loud - set(labels.get("must_not_find", []))
        row["wrong"] = sorted(loud - allowed)
    return row

def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--memtide", default="target/debug/memtide")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--quiet", action="store_true", help="no line for each miss")
    a.add_argument("dirs", nargs="+")
    a = a.parse_args()
    folders = [os.path.join(d, n) for d in a.dirs for n in sorted(os.listdir(d)) if os.path.isfile(os.path.join(d, n, "case.toml"))]
    with ThreadPoolExecutor(a.jobs) as pool:
        rows = list(pool.map(lambda f: run(a.memtide, f), folders))
    disease = [r for r in rows if r["labels"] and r["labels"].get("must_find")]
    calm = [r for r in rows if r["labels"] and r["labels"].get("calm")]
    wanted = sum(len(r["labels"]["must_find"]) for r in disease)
    hit = wanted - sum(len(r["missing"]) for r in disease)
    wrong = sum(len(r["wrong"]) for r in rows)
    if not a.quiet:
        for r in rows:
            if r["failed"]: print(f"FAILED  {r['name']:46} {r['failed']}")
            if r["wrong"]: print(f"WRONG   {r['name']:46} {r['wrong']}")
            if r["missing"]: print(f"{'UNREAD' if r['unread'] else 'MISS':7} {r['name']:46} missing {r['missing']}; said {r['all']}")
            elif r["unread"]: print(f"UNREAD  {r['name']:46} ({'calm' if r in calm else 'no labels'})")
    found = sum(not r["missing"] for r in disease)
    print(f"{len(rows)} cases | disease found {found} of {len(disease)} | labels found {hit} of {wanted} | "
          f"precision {hit / max(1, hit + wrong):.3f} (wrong {wrong}) | calm and silent {sum(not r['wrong'] for r in calm)} of {len(calm)} | "
          f"not recognised {sum(r['unread'] for r in rows)}, layout unknown {sum(r['unknown'] for r in rows)} | failed {sum(bool(r['failed']) for r in rows)}")
    sys.exit(any(r["failed"] for r in rows))

main()
