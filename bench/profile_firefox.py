#!/usr/bin/env python3
"""Does the Firefox Profiler read what `memtide profile -o x.json.gz` writes, with the same numbers?

    bench/profile_firefox.py [--memtide PATH] FILE...        a profile of any form; without one, 3 s of this host

Each file is written for profiler.firefox.com and opened with the reader of that project (@firefox-devtools/profiler-cli of npm, 1.4 MB,
put into a directory of its own for the run; it needs node). Samples and categories of every thread, added up, must be those that
memtide shows itself.
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
PACKAGE = "@firefox-devtools/profiler-cli@0.10.0"
GROUPS = {"trouble": "trouble", "price-of-a-setting": "price of a setting", "ordinary": "ordinary memory work",
          "not-memory": "not memory"}


class Reader:
    def __init__(self, directory):
        install = ["npm", "install", "--prefix", directory, "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE]
        subprocess.run(install, check=True, capture_output=True)
        self.program = f"{directory}/node_modules/.bin/profiler-cli"
        # Its daemon keeps its state below $HOME.
        self.environment = {**os.environ, "HOME": directory}

    def run(self, *arguments):
        command = ["node", self.program, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=self.environment, timeout=120).stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    def load(self, file):
        """Its daemon must be ready within 500 ms, which a busy machine does not always grant."""
        for _ in range(20):
            try:
                return self.run("load", file)
            except subprocess.CalledProcessError as error:
                failed = error
                self.run("stop", "--all")
                time.sleep(0.5)
        raise SystemExit(failed.stderr)

    def categories(self, file):
        """Samples of each category, of all threads, and how many threads there are."""
        self.load(file)
        try:
            threads = self.json("profile", "info", "--all")["processes"][0]["threads"]
            sums = collections.Counter()
            for thread in threads:
                samples = self.json("thread", "samples", "--thread", thread["threadHandle"], "--include-idle")
                for category in samples["categoryBreakdown"]["categories"]:
                    sums[category["name"]] += category["samples"]
            return sums, len(threads)
        finally:
            self.run("stop", "--all")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--memtide", default=f"{HERE}/target/release/memtide")
    arguments = parser.parse_args()
    is_right = True
    with tempfile.TemporaryDirectory() as directory:
        reader = Reader(directory)
        for file in arguments.files or [None]:
            written = f"{directory}/profile.json.gz"
            source = ["--from", file] if file else ["--for", "3s"]
            command = [arguments.memtide, "profile", *source, "--min", "0%", "-o", written, "--force", "--json"]
            report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
            expected = collections.Counter()
            for row in report["reasons"]:
                expected[GROUPS[row["group"]]] += round(row["samples"] or 0)
            found, threads = reader.categories(written)
            idle = sum(count for name, count in found.items() if name not in expected)
            same = all(found[name] == count for name, count in expected.items() if count)
            is_right &= same
            shown = ", ".join(f"{name} {found[name]} of {count}" for name, count in sorted(expected.items()) if count)
            print(f"{'same' if same else 'DIFFERS'}: {file or 'this host'}: {threads} threads; {shown}; other {idle}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
