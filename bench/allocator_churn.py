#!/usr/bin/env python3
"""Does `memtide check` find programs that give memory back to the kernel and take it again, and no others?

Starts each program for some seconds, lets `memtide check --for 15s` watch this host meanwhile, and prints whether it found
`allocator-churn` of that process, with the rate of its minor faults and its CPU time in the kernel. Programs that have it come with
their remedy: it must be gone with that, and the table shows how much faster the program runs.

Usage: bench/allocator_churn.py [--memtide PROGRAM] [--seconds N] [NAME ...]     (no NAME: all)
Needs cc, python3 with numpy, and where they are tried libjemalloc.so.2, libtcmalloc_minimal.so.4, go, java, redis, node, perl.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIB = "/usr/lib/x86_64-linux-gnu/"
NUMPY = """
import numpy as np, sys, time
a = np.random.rand(300_000); n = 0
while True:
    b = a * 1.5 + 2; c = b * b; n += 1
    if n % 64 == 0: sys.stdout.write(f'{n}\\n'); sys.stdout.flush()
"""
# Allocates a block of a size, touches it, frees it; argument 2: at the top of the heap below a small block.
BLOCKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    size_t size = strtoul(argv[1], 0, 10);
    for (unsigned long n = 1;; n++) {
        char *block = malloc(size);
        memset(block, (int)n, size);
        if (block[size / 2] == 77 && n == 0) return 1;
        free(block);
        if (n % 256 == 0) { printf("%lu\n", n); fflush(stdout); }
    }
}
"""
GROW = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    for (unsigned long n = 1;; n++) {
        char *block = malloc(1 << 20);
        memset(block, 1, 1 << 20);
        if (n == 6000) pause();
        usleep(2000);
    }
}
"""
FORK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    size_t size = 64 << 20;
    char *data = malloc(size);
    memset(data, 1, size);
    for (;;) {
        int child = fork();
        if (child == 0) { usleep(200000); _exit(0); }
        for (size_t i = 0; i < size; i += 4096) data[i]++;
        waitpid(child, 0, 0);
    }
}
"""
MAPS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int file = open(argv[1], O_RDONLY);
    struct stat stat;
    fstat(file, &stat);
    volatile long sum = 0;
    for (;;) {
        char *data = mmap(0, stat.st_size, PROT_READ, MAP_SHARED, file, 0);
        madvise(data, stat.st_size, MADV_RANDOM);
        for (long i = 0; i < stat.st_size; i += 4096) sum += data[i];
        munmap(data, stat.st_size);
    }
}
"""
GO = """
package main
import ("os"; "fmt"; "runtime/debug")
var kept [][]byte
func main() {
    always := len(os.Args) > 1
    for n := 1; ; n++ {
        kept = nil
        for i := 0; i < 64; i++ { b := make([]byte, 1<<20); for j := 0; j < len(b); j += 4096 { b[j] = 1 }; kept = append(kept, b) }
        if always { kept = nil; debug.FreeOSMemory() }
        fmt.Println(n)
    }
}
"""
JAVA = """
public class Garbage { public static void main(String[] a) { Object[] kept = new Object[1000]; long n = 0;
    for (;;) { kept[(int) (n % 1000)] = new byte[20000 + (int) (n % 7) * 1000]; n++; if (n % 100000 == 0) System.out.println(n); } } }
"""

CHURN = {  # name: (command, environment, environment of the remedy)
    "numpy-trim-threshold": (["py", NUMPY], {"MALLOC_TRIM_THRESHOLD_": "268435456"},
                             {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}),
    "c-mmap-threshold": (["c", BLOCKS, "1000000"], {"MALLOC_MMAP_THRESHOLD_": "131072"},
                         {"MALLOC_MMAP_THRESHOLD_": "33554432", "MALLOC_TRIM_THRESHOLD_": "268435456"}),
    "c-trim-at-once": (["c", BLOCKS, "100000"], {"MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0"},
                       {"MALLOC_TRIM_THRESHOLD_": "268435456"}),
    "jemalloc-decay-0": (["c", BLOCKS, "1000000"], {"LD_PRELOAD": LIB + "libjemalloc.so.2", "MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"},
                         {"LD_PRELOAD": LIB + "libjemalloc.so.2", "MALLOC_CONF": "dirty_decay_ms:10000"}),
    "tcmalloc-decommit": (["c", BLOCKS, "1000000"], {"LD_PRELOAD": LIB + "libtcmalloc_minimal.so.4", "TCMALLOC_AGGRESSIVE_DECOMMIT": "1"},
                          {"LD_PRELOAD": LIB + "libtcmalloc_minimal.so.4"}),
    "go-free-os-memory": (["go", GO, "always"], {}, None),
}
LOOKALIKES = {
    "numpy-default": (["py", NUMPY], {}),
    "c-grows": (["c", GROW], {}),
    "c-forks": (["c", FORK], {}),
    "c-maps-a-file": (["c", MAPS, "FILE"], {}),
    "go-collects": (["go", GO], {}),
    "java-g1": (["java", JAVA], {"JAVA_TOOL_OPTIONS": "-Xmx256m -XX:+UseG1GC"}),
    "java-serial": (["java", JAVA], {"JAVA_TOOL_OPTIONS": "-Xmx256m -XX:+UseSerialGC"}),
    "java-zgc": (["java", JAVA], {"JAVA_TOOL_OPTIONS": "-Xmx512m -XX:+UseZGC"}),
    "node-garbage": (["node", "let k=[];for(let n=0;;n++){k[n%1000]={n,s:'x'.repeat(100)+n};if(n%5e6==0)console.log(n)}"], {}),
    "python-lists": (["py", "k=[None]*1000\nn=0\nwhile True:\n    k[n%1000]=[n]*200; n+=1"], {}),
    "perl-strings": (["perl", "while(1){$n++;$k[$n%1000]='x'x(5000+$n%7000)}"], {}),
    "shell-forks": (["sh", "while :; do /bin/true; done"], {}),
    "c-small-blocks": (["c", BLOCKS, "20000"], {}),
}


def command(directory, spec):
    kind, text, *rest = spec
    if kind == "c":
        program = directory / f"p{abs(hash(text)) % 10**6}"
        if not program.exists():
            (directory / "p.c").write_text(text)
            subprocess.run(["cc", "-O1", "-o", program, directory / "p.c"], check=True)
        data = directory / "data"
        if "FILE" in rest and not data.exists():
            data.write_bytes(os.urandom(64 << 20))
        return [str(program), *(str(data) if one == "FILE" else one for one in rest)]
    if kind == "go":
        program = directory / "churn-go"
        if not program.exists():
            (directory / "p.go").write_text(text)
            subprocess.run(["go", "build", "-o", program, directory / "p.go"], check=True, env=os.environ | {"GO111MODULE": "off"})
        return [str(program), *rest]
    if kind == "java":
        (directory / "Garbage.java").write_text(text)
        return ["java", str(directory / "Garbage.java")]
    return {"py": ["/usr/bin/python3", "-c"], "node": ["node", "-e"], "perl": ["perl", "-e"], "sh": ["sh", "-c"]}[kind] + [text]


def usage(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[7]), int(fields[11]), int(fields[12])


def run(memtide, directory, spec, env, seconds):
    output = open(directory / "out", "w+")
    process = subprocess.Popen(command(directory, spec), stdout=output, stderr=subprocess.DEVNULL, start_new_session=True,
                               env={k: v for k, v in os.environ.items() if not k.startswith("MALLOC")} | env)
    try:
        time.sleep(1.5 if spec[0] != "java" else 4)
        before, start = usage(process.pid), time.monotonic()
        answer = subprocess.run([memtide, "check", "--for", f"{seconds}s", "--no-history", "--format", "json"],
                                capture_output=True, text=True, check=False).stdout
        after, took = usage(process.pid), time.monotonic() - start
        findings = [one for one in json.loads(answer)["findings"] if one["id"] == "allocator-churn"]
        mine = [one for one in findings if str(process.pid) in one["title"]]
        lines = (directory / "out").read_text().split()
        work = int(lines[-1]) / (took + 1.5) if lines and lines[-1].isdigit() else 0
        rates = [(b - a) / took for a, b in zip(before, after)]
        return bool(mine), rates, work, (mine or [{"title": ""}])[0]["title"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memtide", default="target/debug/memtide")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="memtide-churn."))
    wrong = 0
    print(f"{'program':24} {'found':6} {'faults/s':>9} {'kernel':>7} {'user':>6} {'work/s':>9}")

    def show(name, spec, env, expected):
        nonlocal wrong
        found, (faults, user, system), work, title = run(args.memtide, directory, spec, env, args.seconds)
        wrong += found != expected
        print(f"{name:24} {'yes' if found else 'no':6} {faults:9,.0f} {system:6.0f}% {user:5.0f}% {work:9,.0f}"
              f"{'' if found == expected else '  <-- WRONG'}  {title}", flush=True)
        return work
    try:
        for name, (spec, env, remedy) in CHURN.items():
            if args.names and name not in args.names:
                continue
            slow = show(name, spec, env, True)
            if remedy is not None:
                fast = show("  with the remedy", spec, remedy, False)
                print(f"  {fast / slow:.1f} times the work" if slow else "", flush=True)
        for name, (spec, env) in LOOKALIKES.items():
            if not args.names or name in args.names:
                show(name, spec, env, False)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("all as expected" if not wrong else f"{wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
