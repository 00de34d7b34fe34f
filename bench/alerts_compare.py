#!/usr/bin/env python3
"""How many alerts are false and how many are missed: memtide's, and node_exporter's stock ones, on the same series?

    bench/alerts_compare.py [--memtide PATH] [--calm-hours 12] [--sick-hours 2] [--more CAPTURE …]

Each labelled capture of corpus/captures becomes a host of a real Prometheus, scraped every 15 s: a calm one is repeated for
--calm-hours, of a sick one the stretch in which memtide finds what the label says, for --sick-hours. Counters go on over the seams.
--more adds captures of calm hosts that have other names. The stock alerts are those of node_exporter's mixin that are about memory
(github.com/prometheus/node_exporter, docs/node-mixin/alerts, defaults of config.libsonnet), in words of our own. Needs prometheus,
promtool and Python with PyYAML. Printed: for each set the false and the missed ones, and which.
"""

import argparse
import bisect
import concurrent.futures
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.parse
import urllib.request

import yaml

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGIN = 1_767_225_600  # 2026-01-01
SCRAPE = 15
CHUNK = 7200
STOCK = [
    ("NodeMemoryMajorPagesFaults", "rate(node_vmstat_pgmajfault[5m]) > 500", 900),
    ("NodeMemoryHighUtilization", "100 - 100 * node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes > 90", 900),
    ("NodeSystemSaturation", "node_load1 / on (instance) bench_cpus > 2", 900),
]
# Classes of rules of which work suffers: of the others nobody needs to hear within minutes.
SUFFERS = {"shortage", "stall", "limit", "kill", "scarcity", "hardware"}


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def seconds(text):
    return float(text.rstrip("s"))


def our_alerts(memtide, metrics):
    """Name, expression with its parts written out, duration, severity."""
    document = yaml.safe_load(run(memtide, "rules", "--prometheus", "--metrics", metrics).stdout)
    parts, alerts = {}, []
    for rule in (rule for group in document["groups"] for rule in group["rules"]):
        expr = rule["expr"]
        for name in sorted(parts, key=len, reverse=True):
            expr = re.sub(rf"{name}\b", lambda _, name=name: f"({parts[name]})", expr)
        if "record" in rule:
            parts[rule["record"]] = expr
        else:
            alerts.append((rule["alert"], expr, seconds(rule["for"]), rule["labels"]["severity"]))
    return alerts


def with_times(path):
    """The lines of a capture with a wall clock, and the load of each sample."""
    with gzip.open(path, "rt") as file:
        lines = file.read().splitlines()
    out, loads, first = [lines[0]], [], None
    for line in lines[1:]:
        sample = json.loads(line)
        if "t" in sample:
            first = sample["t"] if first is None else first
            sample["wall_ns"] = int((BEGIN + sample["t"] - first) * 1e9)
            load = sample.get("files", {}).get("/proc/loadavg")
            if load:
                loads.append((sample["t"] - first, float(load.split()[0])))
        out.append(json.dumps(sample))
    return "\n".join(out) + "\n", loads


class Host:
    """A capture: its labels, and the readings of each series."""

    def __init__(self, memtide, path, labels, classes, wanted, place):
        is_case = path.endswith("/capture.jsonl.gz")
        self.name = os.path.basename(os.path.dirname(path)) if is_case else os.path.basename(path).removesuffix(".jsonl.gz")
        self.is_calm = labels["calm"]
        text, loads = with_times(path)
        plain = f"{place}/{self.name}.jsonl"
        with open(plain, "w") as file:
            file.write(text)
        check = json.loads(run(memtide, "check", plain, "--json").stdout)
        named = {id for ids in labels.get("must_find", []) for id in ids.split("|")}
        self.suffers = any(classes.get(id) in SUFFERS for id in named)
        self.must_find = sorted(named)
        self.series, self.types = {}, {}
        for line in run(memtide, "export", plain, "--format", "openmetrics", "--all", "--names", "node-exporter").stdout.splitlines():
            if line.startswith("# TYPE"):
                _, _, family, kind = line.split(" ")
                self.types[family] = kind
            elif not line.startswith("#"):
                key, value, at = line.rsplit(" ", 2)
                if re.split(r"[{ ]", key)[0] in wanted:
                    self.series.setdefault(key, []).append((float(at) - BEGIN, float(value)))
        if loads:
            self.series["node_load1"] = loads
        self.series["bench_cpus"] = [(0.0, float(check["host"]["cpus"] or 1))]
        self.first, self.last = 0.0, max(at for points in self.series.values() for at, _ in points)
        found = [stretch for finding in check["findings"] if finding["id"] in named for stretch in finding["stretches"]]
        if not self.is_calm and found:
            longest = max(found, key=lambda stretch: stretch["to_s"] - stretch["from_s"])
            if longest["to_s"] - longest["from_s"] >= 4:
                self.first, self.last = longest["from_s"], longest["to_s"]
        self.ready = {key: Looped(key, points, self.first, self.last, self.is_counter(key)) for key, points in self.series.items()}

    def is_counter(self, key):
        name = re.split(r"[{ ]", key)[0]
        family = name.removesuffix("_total")
        return self.types.get(family) == "counter" or name.startswith("node_vmstat_")

    def lines(self, since, until):
        for key, looped in self.ready.items():
            name, _, rest = key.partition("{")
            labels = f'{{instance="{self.name}",job="bench"' + (f",{rest}" if rest else "}")
            for at in range(since, until, SCRAPE):
                value = looped.at(at)
                if value is not None:
                    yield name, f"{name}{labels} {value!r} {BEGIN + at}\n"


class Looped:
    """Readings that are repeated; a counter goes on where it was."""

    def __init__(self, _key, points, first, last, is_counter):
        self.length = max(last - first, 1.0)
        inside = [(at - first, value) for at, value in points if first <= at <= last]
        before = [value for at, value in points if at < first]
        if before and (not inside or inside[0][0] > 0):
            inside.insert(0, (0.0, before[-1]))
        self.times = [at for at, _ in inside]
        self.values = [value for _, value in inside]
        self.step = max(0.0, self.values[-1] - self.values[0]) if is_counter and inside else 0.0

    def at(self, at):
        if not self.times:
            return None
        turn, phase = divmod(at, self.length)
        index = bisect.bisect_right(self.times, phase) - 1
        return self.values[max(index, 0)] + turn * self.step


def fill(hosts, hours, place, database):
    """Blocks of two hours, as promtool reads all of its text for each."""
    jobs = []
    for since in range(0, int(hours * 3600), CHUNK):
        families = {}
        for host in hosts:
            for name, line in host.lines(since, since + CHUNK):
                families.setdefault(name, []).append(line)
        path = f"{place}/chunk"
        with open(path, "w") as file:
            for name, lines in families.items():
                file.write(f"# TYPE {name} unknown\n")
                file.writelines(lines)
            file.write("# EOF\n")
        made = run("promtool", "tsdb", "create-blocks-from", "openmetrics", path, database)
        if made.returncode != 0:
            sys.exit(f"promtool: {made.stderr or made.stdout}")
        jobs.append(sum(map(len, families.values())))
    return sum(jobs)


class Prometheus:
    """A server with a database."""

    def __init__(self, database, place):
        self.port = 19_000 + os.getpid() % 10_000
        config = f"{place}/prometheus.yml"
        with open(config, "w") as file:
            file.write("global: {}\n")
        self.child = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={database}", "--storage.tsdb.retention.time=100y",
             f"--web.listen-address=127.0.0.1:{self.port}", "--query.timeout=10m"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=1)
                return
            except OSError:
                time.sleep(0.2)
        sys.exit("prometheus does not start")

    def fires(self, expr, lasts, hours):
        """Seconds for which it fires, by host."""
        step = 15
        form = urllib.parse.urlencode({"query": expr, "start": BEGIN, "end": BEGIN + int(hours * 3600), "step": step}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query_range", form, timeout=600) as answer:
            result = json.load(answer)["data"]["result"]
        fired = {}
        for series in result:
            since = before = None
            for at, _ in series["values"]:
                if before is None or at - before > step * 1.5:
                    since = at
                before = at
                if at - since >= lasts:
                    host = series["metric"].get("instance", "?")
                    fired[host] = fired.get(host, 0) + step
        return fired


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--memtide", default=f"{HERE}/target/release/memtide")
    parser.add_argument("--calm-hours", type=float, default=12)
    parser.add_argument("--sick-hours", type=float, default=2)
    parser.add_argument("--more", nargs="*", default=[], help="captures of more calm hosts")
    arguments = parser.parse_args()
    memtide = arguments.memtide
    classes = {rule["id"]: rule["class"] for rule in json.loads(run(memtide, "rules", "--json").stdout)}
    sets = {
        "node_exporter's mixin": [(name, expr, lasts, "warning") for name, expr, lasts in STOCK],
        "memtide, node_exporter's metrics": our_alerts(memtide, "node-exporter"),
        "memtide, all metrics": our_alerts(memtide, "memtide"),
    }
    words = {word for alerts in sets.values() for _, expr, _, _ in alerts for word in re.findall(r"\b(?:node|memtide)_\w+", expr)}
    wanted = {word for word in words if not word.startswith(("memtide_process_", "memtide_finding", "memtide_headroom"))}
    sources = []
    captures = f"{HERE}/corpus/captures"
    for name in sorted(os.listdir(captures)):
        with open(f"{captures}/{name}/case.toml", "rb") as file:
            labels = tomllib.load(file).get("labels")
        if labels and os.path.exists(f"{captures}/{name}/capture.jsonl.gz"):
            sources.append((f"{captures}/{name}/capture.jsonl.gz", labels))
    known = {os.path.basename(os.path.dirname(path)) for path, _ in sources}
    more = [path for path in arguments.more if os.path.basename(path).removesuffix(".jsonl.gz") not in known]
    sources += [(path, {"calm": True}) for path in more]
    with tempfile.TemporaryDirectory() as place:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            hosts = list(pool.map(lambda it: Host(memtide, it[0], it[1], classes, wanted, place), sources))
        answers = {}
        for kind, hours in ((True, arguments.calm_hours), (False, arguments.sick_hours)):
            some = [host for host in hosts if host.is_calm == kind]
            database = f"{place}/database-{kind}"
            lines = fill(some, hours, place, database)
            print(f"{len(some)} {'calm' if kind else 'sick'} hosts, {hours:g} h each, {len(some) * hours / 24:.1f} days: {lines} readings", flush=True)
            prometheus = Prometheus(database, place)
            try:
                for title, alerts in sets.items():
                    for alert in alerts:
                        answers[title, kind, alert[0]] = prometheus.fires(alert[1], alert[2], hours)
            finally:
                prometheus.child.terminate()
                prometheus.child.wait()
    report(sets, hosts, answers)
    return 0


def report(sets, hosts, answers):
    calm, sick = [host for host in hosts if host.is_calm], [host for host in hosts if not host.is_calm]
    for title, alerts in sets.items():
        loud = [alert for alert in alerts if alert[3] != "info"]
        print(f"\n{title}: {len(alerts)} alerts, {len(loud)} of them a warning or critical")
        of = {host.name: [] for host in hosts}
        for name, _, _, severity in alerts:
            false = answers[title, True, name]
            true = answers[title, False, name]
            for fired in (false, true):
                for host in fired:
                    of[host].append((name, severity))
            if false or true:
                print(f"  {name:<28} {severity:<8} sick hosts {len(true):>2}, calm hosts {len(false):>2} {' '.join(sorted(false))}")
        is_loud = {name: any(severity != "info" for _, severity in fired) for name, fired in of.items()}
        false = [host.name for host in calm if is_loud[host.name]]
        suffering = [host for host in sick if host.suffers]
        missed = [host for host in suffering if not is_loud[host.name]]
        print(f"  FALSE: {len(false)} of {len(calm)} calm hosts; MISSED: {len(missed)} of {len(suffering)} on which work suffers; "
              f"of {len(sick) - len(suffering)} others {sum(is_loud[host.name] for host in sick if not host.suffers)} had one")
        for host in missed:
            print(f"    missed {host.name}: {', '.join(host.must_find)}")


if __name__ == "__main__":
    sys.exit(main())
