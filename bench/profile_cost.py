#!/usr/bin/env python3
"""What does `memtide profile` cost those that it profiles, and itself? `perf record` beside it, in the same run.

    sudo bench/profile_cost.py [--memtide PATH] [--rounds 30] [--seconds 3]

Two processes per CPU map, touch and give back memory without end, and count rounds and their own CPU time. Profilers take turns in
random order, each for a few seconds of a round; CPU time for a round of work is compared with that of the same turn without a
profiler. As the effect of 99 Hz is below the noise of a machine that others use, the same is measured at 4,999 Hz, and the cost of a
sample and so of 99 Hz is computed from it. Printed: the median of ratios and its 95 % interval by bootstrap; the CPU time of the
profiler itself while it samples, and before and after. `waits` also traces tasks in state D where tracefs is mounted.
"""

import argparse
import mmap
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CPUS = os.cpu_count() or 1
PAGES = 1024
HIGH_HZ = 4999


def work(counter):
    """Rounds, and the CPU time that they took, where the parent can read them."""
    shared = mmap.mmap(os.open(counter, os.O_RDWR), 16)
    marks = b"1" * PAGES
    done = 0
    while True:
        with mmap.mmap(-1, PAGES * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory[::4096] = marks
        done += 1
        shared[:16] = done.to_bytes(8, "little") + time.thread_time_ns().to_bytes(8, "little")


def profilers(memtide, directory):
    def own(*options):
        return [memtide, "profile", "--for", "1h", "--json", *options]

    data = f"{directory}/perf.data"
    return {
        "none": None,
        "cpu 99 Hz": own("--off-cpu", "no"),
        "all 99 Hz": own(),
        "poll 99 Hz": own("--off-cpu", "poll"),
        f"cpu {HIGH_HZ} Hz": own("--off-cpu", "no", "-F", str(HIGH_HZ)),
        "perf 99 Hz": ["perf", "record", "-q", "-F", "99", "-a", "-g", "-e", "cpu-clock", "-o", data],
        f"perf {HIGH_HZ} Hz": ["perf", "record", "-q", "-F", str(HIGH_HZ), "-a", "-g", "-e", "cpu-clock", "-o", data],
    }


def own_cpu_s(pid):
    """CPU time of a process so far, of all its threads, to the nanosecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def one_turn(command, counters, seconds):
    """CPU time for a round of work, CPU seconds of the profiler in a second while it samples, and its other CPU seconds."""
    def read():
        values = []
        for counter in counters:
            with open(counter, "rb") as file:
                both = file.read(16)
            values.append((int.from_bytes(both[:8], "little"), int.from_bytes(both[8:], "little")))
        return values

    process = command and subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.2)
    first, own = read(), process and own_cpu_s(process.pid)
    begun = time.monotonic()
    time.sleep(seconds)
    last, took = read(), time.monotonic() - begun
    during = before_and_after = 0.0
    if process:
        during = own_cpu_s(process.pid) - own
        process.send_signal(signal.SIGINT)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        before_and_after = usage.ru_utime + usage.ru_stime - during
    rounds = sum(after[0] - before[0] for before, after in zip(first, last))
    nanos = sum(after[1] - before[1] for before, after in zip(first, last))
    return nanos / max(rounds, 1), during / took, before_and_after


def interval(values):
    """The median and its 95 % interval."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), medians[50], medians[1949]


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--memtide", default=f"{HERE}/target/release/memtide")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as directory:
        counters = [f"{directory}/counter-{number}" for number in range(2 * CPUS)]
        for counter in counters:
            with open(counter, "wb") as file:
                file.write(bytes(16))
        loads = [subprocess.Popen([sys.executable, __file__, "--work", counter]) for counter in counters]
        kinds = profilers(arguments.memtide, directory)
        ratios = {name: [] for name in kinds}
        during = {name: [] for name in kinds}
        rest = {name: [] for name in kinds}
        try:
            time.sleep(2)
            for _ in range(arguments.rounds):
                order = random.sample(list(kinds), len(kinds))
                turns = {name: one_turn(kinds[name], counters, arguments.seconds) for name in order}
                for name, (cost, own, other) in turns.items():
                    ratios[name].append(cost / turns["none"][0])
                    during[name].append(own)
                    rest[name].append(other)
        finally:
            for load in loads:
                load.kill()
                load.wait()
    print(f"{'profiler':<14}{'load, CPU time':>24}{'own, of a CPU':>16}{'before and after':>18}   n={arguments.rounds}")
    for name in kinds:
        middle, low, high = interval(ratios[name])
        shown = f"{(middle - 1) * 100:+.2f} % ({(low - 1) * 100:+.2f} to {(high - 1) * 100:+.2f})"
        own, other = statistics.median(during[name]), statistics.median(rest[name])
        print(f"{name:<14}{shown:>28}{own * 100:>11.2f} %{other:>13.2f} s")
    for who in ("cpu", "perf"):
        middle, low, high = interval(ratios[f"{who} {HIGH_HZ} Hz"])
        # All CPUs are busy, so a CPU second has so many samples.
        a_sample = [(value - 1) / HIGH_HZ * 1e6 for value in (middle, low, high)]
        at_99 = [value * 99 / 1e4 for value in a_sample]
        print(f"{who}: a sample costs {a_sample[0]:.1f} us ({a_sample[1]:.1f} to {a_sample[2]:.1f}), "
              f"so 99 Hz {at_99[0]:.2f} % of a busy CPU ({at_99[1]:.2f} to {at_99[2]:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
