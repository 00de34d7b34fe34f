"""Runs a program in a memory cgroup, and prints what it cost as JSON.

The kernel counts the parent's pages as a child's peak until it runs its own program: this parent is small.
"""

import json
import os
import resource
import signal
import sys
import time

group, seconds, out, err = sys.argv[1:5]
program = sys.argv[5:]
FILE_BYTES_MAX = 2 << 30

began = time.monotonic()
child = os.fork()
if child == 0:
    with open(os.path.join(group, "cgroup.procs"), "w") as tasks:
        tasks.write(str(os.getpid()))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    os.execv(program[0], program)

late = []


def end(*_):
    late.append(True)
    os.kill(child, signal.SIGKILL)


signal.signal(signal.SIGALRM, end)
signal.alarm(int(seconds))
_, status, usage = os.wait4(child, 0)
print(json.dumps({
    "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
    "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
    "is_late": bool(late),
    "peak_kib": usage.ru_maxrss,
    "cpu_s": usage.ru_utime + usage.ru_stime,
    "wall_s": time.monotonic() - began,
}))
