#!/usr/bin/env python3
"""CPU time of memtide top beside htop, btop, atop and below, each on a terminal of 80 x 24 with a frame each second.

Usage: bench/top_cost.py MEMTIDE [PROCESSES...]

Those that are not on the path are left out. BELOW_CONFIG is a configuration of below, for its cgroup_root.

They run at the same time, so that each sees the same machine, for SECONDS after a warm-up. CPU time is that of the process and its
threads, from /proc/PID/stat. For memtide also: how long a key waits for the frame that it asks for (KEYS keys), and memory.
"""
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import fcntl
import sys
import termios
import time

SECONDS = 20
WARM_UP = 5
KEYS = 1000


class Program:
    def __init__(self, name, command):
        self.name = name
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.bytes = 0

    def drain(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                try:
                    self.bytes += len(os.read(self.fd, 65536))
                except OSError:
                    return

    def cpu(self):
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self):
        for line in open(f"/proc/{self.pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024

    def key(self, key):
        """Presses a key and returns the seconds until something is drawn."""
        self.drain(0.01)
        begun = time.monotonic()
        os.write(self.fd, key)
        select.select([self.fd], [], [], 5)
        took = time.monotonic() - begun
        os.read(self.fd, 65536)
        return took

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def main():
    memtide = sys.argv[1]
    counts = [int(count) for count in sys.argv[2:]] or [60, 500, 2000]
    commands = {"memtide top": [memtide, "top", "--no-history", "--panel", "processes"]}
    below = ["live", "--interval-s", "1"]
    if config := os.environ.get("BELOW_CONFIG"):
        below = ["--config", config, *below]
    for name, more in (("htop", ["-d", "10"]), ("btop", []), ("atop", ["1"]), ("below", below)):
        if shutil.which(name):
            commands[name] = [name, *more]
    print(f"{'processes':>9}  {'program':<12} {'CPU':>8} {'PSS':>9}")
    for count in counts:
        sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(count)]
        programs = [Program(name, command) for name, command in commands.items()]
        drain(programs, WARM_UP)
        before = [program.cpu() for program in programs]
        begun = time.monotonic()
        drain(programs, SECONDS)
        lasted = time.monotonic() - begun
        for program, at_first in zip(programs, before):
            share = (program.cpu() - at_first) / lasted
            print(f"{count:>9}  {program.name:<12} {share:>7.2%} {program.rss_mib():>5.1f} MiB")
        waits = sorted(programs[0].key(b"jk"[i % 2:i % 2 + 1]) for i in range(KEYS))
        print(f"{'':>9}  a key: median {waits[KEYS // 2] * 1e3:.1f} ms, 99th of 100 (of {KEYS}) {waits[KEYS * 99 // 100] * 1e3:.1f} ms")
        for program in programs:
            program.end()
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def drain(programs, seconds):
    end = time.monotonic() + seconds
    by_fd = {program.fd: program for program in programs}
    while (left := end - time.monotonic()) > 0:
        for fd in select.select(list(by_fd), [], [], left)[0]:
            by_fd[fd].bytes += len(os.read(fd, 65536))


if __name__ == "__main__":
    main()
