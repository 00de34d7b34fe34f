"""The log of truth beside a recorder: clocks and memory in a program of its own, with no code of memtide's.

Each line: the boot clock before and after the reading and the wall clock, in nanoseconds; MemTotal and MemFree in KiB; and
the page faults since boot. The recording must agree with it.
"""
import sys
import time


def field(path, name):
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == name:
                return int(words[1])
    return 0


def boot():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


while True:
    before = boot()
    readings = [
        field("/proc/meminfo", "MemTotal:"),
        field("/proc/meminfo", "MemFree:"),
        field("/proc/vmstat", "pgfault"),
    ]
    print(before, boot(), time.clock_gettime_ns(time.CLOCK_REALTIME), *readings, flush=True)
    time.sleep(float(sys.argv[1]))
