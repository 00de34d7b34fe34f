#!/usr/bin/env python3
"""Starts real services one after another, explains each with `memtide explain PID`, and prints a table: what the headline
says, the largest owner, the share of RSS that has an owner, and the truth by the service's own tools.

Usage: scripts/explain-services.py [--memtide PROGRAM] [--full] [--keep] [NAME ...]      (no NAME: all; --list: the names)
Files are in a private temporary directory, servers listen on sockets there or on loopback; all end with this program.
A service that is not installed is left out and named. Exit code 1: a headline is not the right one.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

FILES = pathlib.Path(__file__).resolve().parent / "heap-services"
LIB = "/usr/lib/x86_64-linux-gnu"
MIB = 1 << 20
SERVICES = {}


def service(headline, owner=None):
    """`headline` is a pattern of the right first words, `owner` of the largest owner."""

    def add(function):
        SERVICES[function.__name__.replace("_", "-")] = (function, headline, owner)
        return function

    return add


class Missing(Exception):
    pass


class Run:
    """One service: its processes, its directory."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="memtide-explain."))
        self.directory.chmod(0o755)
        self.processes = []

    def start(self, *command, ready="ready", env=None, user=None, wait=60):
        program = shutil.which(command[0]) or command[0]
        if not os.access(program, os.X_OK):
            raise Missing(command[0])
        output = open(self.directory / f"out{len(self.processes)}", "w+b")
        process = subprocess.Popen(
            [program, *map(str, command[1:])], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            env=os.environ | (env or {}), user=user, start_new_session=True, cwd=self.directory,
        )
        self.processes.append(process)
        if ready:
            def is_ready():
                if process.poll() is not None:
                    raise RuntimeError(f"{command[0]} ended: {self.output(process)[-600:]}")
                return re.search(ready, self.output(process)) if isinstance(ready, str) else ready()
            self.until(is_ready, wait)
        return process.pid

    def output(self, process=None):
        index = self.processes.index(process) if process else len(self.processes) - 1
        return (self.directory / f"out{index}").read_text(errors="replace")

    @staticmethod
    def until(works, wait=60):
        end = time.monotonic() + wait
        while not works():
            if time.monotonic() > end:
                raise RuntimeError("not ready in time")
            time.sleep(0.1)

    def file(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def stop(self):
        for process in reversed(self.processes):
            for end in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, end)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                    break
        shutil.rmtree(self.directory, ignore_errors=True)


def sh(*command, env=None, **more):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                            env=os.environ | (env or {}), check=False, **more)
    return result.stdout + result.stderr


def mib(number):
    return f"{int(number) / MIB:.0f} MiB"


def library(name):
    path = pathlib.Path(LIB) / name
    if not path.exists():
        raise Missing(name)
    return {"LD_PRELOAD": str(path)}


# ---- programs on glibc's malloc and on others ----------------------------------------------------------------------

def ruby(run, **env):
    pid = run.start("/usr/bin/ruby", FILES / "jobs.rb", env=env)
    return pid, lambda: "25 threads; see MALLOC_ARENA_MAX, jemalloc"


@service(r"FRAGMENTED")
def ruby_jobs(run):
    return ruby(run)


@service(r"FRAGMENTED|MALLOC|LIVE|SEVERAL")
def ruby_two_arenas(run):
    return ruby(run, MALLOC_ARENA_MAX="2")


@service(r"JEMALLOC", r"jemalloc")
def ruby_jemalloc(run):
    return ruby(run, **library("libjemalloc.so.2"))


@service(r"TCMALLOC", r"tcmalloc")
def ruby_tcmalloc(run):
    return ruby(run, **library("libtcmalloc_minimal.so.4"))


@service(r"MIMALLOC", r"mimalloc")
def ruby_mimalloc(run):
    return ruby(run, **library("libmimalloc.so.2"))


def mariadb(run, *options):
    if not shutil.which("mariadb-install-db"):
        raise Missing("mariadb-install-db")
    data, sock = run.directory / "data", run.directory / "socket"
    sh("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}",
       "--auth-root-authentication-method=normal", "--skip-test-db")

    def sql(text):
        return sh("mariadb", "--no-defaults", "-uroot", f"--socket={sock}", "-N", input=text)
    pid = run.start("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={sock}",
                    "--skip-networking", *options, ready=lambda: sql("SELECT 1").strip() == "1")
    sql((FILES / "rows.sql").read_text())
    return pid, sql


def sort_with_8_clients(run):
    clients = [subprocess.Popen(["mariadb", "--no-defaults", "-uroot", f"--socket={run.directory}/socket"],
                                stdin=open(FILES / "sort.sql"), stdout=subprocess.DEVNULL) for _ in range(8)]
    for client in clients:
        client.wait()


@service(r"FRAGMENTED|BUFFER POOL|SEVERAL")
def mariadb_sorted(run):
    pid, sql = mariadb(run, "--innodb-buffer-pool-size=32M", "--thread-cache-size=16")
    sort_with_8_clients(run)
    return pid, lambda: "pool 32 MiB; " + sql("SHOW STATUS LIKE 'Memory_used'").strip().replace("\t", " ")


@service(r"PERFORMANCE_SCHEMA|BUFFER POOL|SEVERAL|MALLOC")
def mariadb_schema(run):
    pid, sql = mariadb(run, "--innodb-buffer-pool-size=256M", "--performance-schema=ON")
    sql("CREATE TABLE test.many (id INT PRIMARY KEY, text VARCHAR(255)); INSERT INTO test.many SELECT seq, "
        "REPEAT(MD5(seq), 7) FROM test.seq_1_to_900000;")

    def truth():
        schema = sql("SHOW ENGINE PERFORMANCE_SCHEMA STATUS").strip().splitlines()[-1].split()[-1]
        pages = sql("SHOW STATUS LIKE 'Innodb_buffer_pool_bytes_data'").split()[-1]
        return f"pool {mib(pages)} of 256, performance_schema {mib(schema)}"
    return pid, truth


def redis(run, *more):
    program = run.directory / "redis-server"
    program.symlink_to(shutil.which("redis-server") or shutil.which("redis-check-rdb") or "/nowhere")
    sock = run.directory / "socket"

    def cli(*words):
        return sh("redis-cli", "-s", sock, *words)
    pid = run.start(program, "--port", "0", "--unixsocket", sock, "--dir", run.directory, "--save", "", *more,
                    ready=lambda: "PONG" in cli("ping"))
    cli("eval", 'for i = 1, 1200000 do redis.call("set", "key:" .. i, string.rep("x", 100 + i % 100)) end', "0")

    def truth():
        info = dict(line.split(":", 1) for line in cli("info", "memory").split() if ":" in line)
        return f"used {mib(info['used_memory'])}, allocated/resident {mib(info['allocator_allocated'])}/" \
               f"{mib(info['allocator_resident'])}, fragmentation {info['allocator_frag_ratio']}"
    return pid, cli, truth


@service(r"JEMALLOC", r"jemalloc")
def redis_full(run):
    pid, _, truth = redis(run)
    return pid, truth


@service(r"JEMALLOC", r"jemalloc")
def redis_deleted(run):
    pid, cli, truth = redis(run)
    cli("eval", 'for i = 1, 1200000 do if i % 4 ~= 0 then redis.call("del", "key:" .. i) end end', "0")
    return pid, truth


def postgres(run, *settings):
    binaries = next(iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))), None)
    if not binaries:
        raise Missing("postgresql")
    import pwd
    user = pwd.getpwnam("postgres")
    os.chown(run.directory, user.pw_uid, user.pw_gid)
    data = run.directory / "data"
    print(sh(binaries / "initdb", "-D", data, "-A", "trust", "--no-sync", user="postgres", cwd="/")[-300:],
          file=open(run.directory / "initdb", "w"))

    def sql(text):
        return sh("psql", "-h", run.directory, "-U", "postgres", "-At", "-c", text)
    pid = run.start(binaries / "postgres", "-D", data, "-k", run.directory, "-c", "listen_addresses=",
                    "-c", "shared_buffers=256MB", *settings, user="postgres",
                    ready=lambda: sql("select 1").strip() == "1")
    sql("create table t as select i, md5(i::text) || md5(i::text) as x from generate_series(1, 1500000) i")
    return pid, sql


@service(r"POSTGRESQL SHARED MEMORY", r"shared")
def postgres_backend(run):
    pid, sql = postgres(run)
    client = subprocess.Popen(["psql", "-h", str(run.directory), "-U", "postgres", "-At"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    client.stdin.write("create extension pg_prewarm; select pg_backend_pid(); select count(*), max(x) from t; select pg_prewarm('t');\n")
    client.stdin.flush()
    client.stdout.readline()
    backend = int(client.stdout.readline())
    client.stdout.readline()
    client.stdout.readline()
    run.processes.append(client)
    return backend, lambda: "shared " + mib(sql(
        "select sum(allocated_size) from pg_shmem_allocations").strip()) + f", table {mib(sql('select pg_relation_size(chr(116))').strip())}"


# ---- runtimes --------------------------------------------------------------------------------------------------------

def java(run, *options, source="Keep"):
    text = (FILES / "Keep.java").read_text()
    path = run.file("Keep.java", text)
    if not shutil.which("java"):
        raise Missing("java")
    pid = run.start("java", *options, "-Xmx384m", path)

    def truth():
        heap = sh("jcmd", pid, "GC.heap_info")
        return " ".join(heap.split()[1:]).split(" Metaspace")[0][:110]
    return pid, truth


@service(r"JAVA HEAP", r"Java heap")
def java_g1(run):
    return java(run, "-XX:+UseG1GC")


@service(r"JAVA HEAP", r"Java heap")
def java_zgc(run):
    return java(run, "-XX:+UseZGC")


@service(r"JAVA HEAP", r"Java heap")
def java_shenandoah(run):
    return java(run, "-XX:+UseShenandoahGC")


@service(r"JAVA HEAP", r"Java heap")
def java_serial(run):
    return java(run, "-XX:+UseSerialGC")


@service(r"LIVE DATA|MALLOC", r"malloc")
def java_direct(run):
    path = run.file("Direct.java", (FILES / "Direct.java").read_text())
    pid = run.start("java", "-Xmx128m", "-XX:MaxDirectMemorySize=300m", path)
    return pid, lambda: "200 direct buffers of 1 MiB"


@service(r"V8 HEAP", r"V8 heap")
def node_heap(run):
    path = run.file("n.js", "const k=Array.from({length:900000},(_,i)=>({id:i,n:`name ${i} `.repeat(3)}));"
                    "const m=process.memoryUsage();console.log('ready',JSON.stringify(m));setInterval(()=>k.length,1000)")
    pid = run.start("node", path)
    return pid, lambda: run.output().split("ready", 1)[1].strip()


@service(r"LIVE DATA|MALLOC|SEVERAL", r"malloc")
def node_buffers(run):
    path = run.file("n.js", "const b=Array.from({length:100},(_,i)=>Buffer.alloc(1<<20,i+1));"
                    "const m=process.memoryUsage();console.log('ready',JSON.stringify(m));setInterval(()=>b.length,1000)")
    pid = run.start("node", path)
    return pid, lambda: run.output().split("ready", 1)[1].strip()


@service(r"PYMALLOC", r"pymalloc")
def python_lists(run):
    return run.start("/usr/bin/python3", FILES / "lists.py"), lambda: "300,000 lists, pymalloc"


def numpy(run, text):
    if "1" not in sh("/usr/bin/python3", "-c", "import numpy; print(1)"):
        raise Missing("python3-numpy")
    return run.start("/usr/bin/python3", "-c", f"import numpy as np, time\n{text}\nprint('ready', flush=True)\ntime.sleep(9999)")


@service(r"LIVE DATA|MALLOC", r"malloc")
def numpy_ones(run):
    return numpy(run, "a = np.ones((20,1000,1000))"), lambda: "one array of 153 MiB"


@service(r"LIVE DATA|MALLOC", r"malloc")
def numpy_many(run):
    return numpy(run, "a = [np.full(300_000, i) for i in range(80)]"), lambda: "80 arrays of 2.3 MiB = 183 MiB"


@service(r"GO HEAP", r"Go heap")
def go_hold(run):
    if not shutil.which("go"):
        raise Missing("go")
    built = run.directory / "hold"
    print(sh("go", "build", "-o", built, FILES / "hold.go", env={"GO111MODULE": "off"}), end="")
    return run.start(built), lambda: "50 MB live"


@service(r"ERLANG", r"Erlang")
def erlang(run):
    text = ("L = [binary:copy(list_to_binary(integer_to_list(I)), 30) || I <- lists:seq(1, 500000)], "
            "M = maps:from_list([{I, {I, [I]}} || I <- lists:seq(1, 300000)]), "
            "io:format(\"ready ~p~n\", [erlang:memory()]), timer:sleep(infinity), io:format(\"~p~p\", [L, M]).")
    pid = run.start("erl", "-noshell", "-eval", text)
    return pid, lambda: " ".join(run.output().split("ready", 1)[1].split())[:110]


@service(r"PHP", r"PHP")
def php_fpm(run):
    program = next(iter(sorted(pathlib.Path("/usr/sbin").glob("php-fpm*"))), None)
    if not program:
        raise Missing("php-fpm")
    run.file("i.php", "<?php $a = []; for ($i = 0; $i < 500000; $i++) $a[] = \"row $i of the table\"; "
             "echo memory_get_usage(), ' ', memory_get_usage(true); flush(); sleep(600);")
    run.file("f.conf", f"[global]\nerror_log={run.directory}/log\ndaemonize=no\n[www]\nuser=root\ngroup=root\nlisten={run.directory}/s\n"
             "pm=static\npm.max_children=2\nphp_admin_value[memory_limit]=512M\n")
    run.start(program, "-R", "-F", "-y", run.directory / "f.conf", ready=lambda: (run.directory / "s").exists())
    fcgi(run.directory / "s", run.directory / "i.php")
    time.sleep(3)
    children = [int(pid) for pid in sh("pgrep", "-P", run.processes[0].pid).split()]
    largest = max(children, key=rss)
    return largest, lambda: "a table of 500,000 strings"


def fcgi(path, script):
    """One request of FastCGI, which is not waited for."""
    def pair(name, value):
        return bytes([len(name), len(value)]) + name + value
    params = b"".join(pair(k.encode(), str(v).encode()) for k, v in {
        "SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET", "SCRIPT_NAME": "/i.php"}.items())
    def record(kind, content):
        return bytes([1, kind, 0, 1]) + len(content).to_bytes(2, "big") + bytes([0, 0]) + content
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    client.sendall(record(1, b"\0\1\0\0\0\0\0\0") + record(4, params) + record(4, b"") + record(5, b""))
    KEPT.append(client)


KEPT = []


def rss(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


@service(r"MALLOC|LIVE", r"malloc")
def memcached(run):
    sock = run.directory / "s"
    pid = run.start("memcached", "-u", "root", "-s", sock, "-m", "256", ready=sock.exists)
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(sock))
    for i in range(0, 200_000, 1000):
        client.sendall(b"".join(b"set k%d 0 0 700 noreply\r\n%s\r\n" % (n, b"x" * 700) for n in range(i, i + 1000)))
    client.sendall(b"stats\r\n")
    time.sleep(1)
    text = client.recv(1 << 16).decode()
    return pid, lambda: " ".join(line[5:] for line in text.split("\r\n") if " bytes " in line or "curr_items" in line)


@service(r"SMALL")
def nginx(run):
    conf = run.file("n.conf", f"daemon off; pid {run.directory}/p; error_log {run.directory}/e; events {{}} http {{ access_log off; "
                    f"server {{ listen unix:{run.directory}/s; }} }}")
    return run.start("nginx", "-c", conf, "-e", run.directory / "e", ready=(run.directory / "s").exists), lambda: "nothing to explain"


@service(r"SHARED", r"memfd|shared")
def memfd(run):
    pid = run.start("/usr/bin/python3", "-c", "import os, mmap, time\nf = os.memfd_create('frames')\nos.ftruncate(f, 200 << 20)\n"
                    "m = mmap.mmap(f, 200 << 20)\nfor i in range(0, 200 << 20, 4096): m[i] = 1\nprint('ready', flush=True)\ntime.sleep(9999)")
    return pid, lambda: "memfd:frames 200 MiB"


@service(r"LIVE|MALLOC", r"malloc")
def perl_hash(run):
    pid = run.start("perl", "-e", "$|=1; $h{$_} = \"value $_\" for 1..800000; print \"ready\\n\"; sleep 9999")
    return pid, lambda: "a hash of 800,000 keys: all live"


# ---- the table -------------------------------------------------------------------------------------------------------

def leaves(part):
    if not part.get("parts"):
        yield part
    for each in part.get("parts", []):
        yield from leaves(each)


def owners(report):
    """The parts, the largest first, and how much of RSS has an owner."""
    whole = report["memory"]
    parts = sorted(whole["parts"], key=lambda one: -one["rss_bytes"])
    unknown = sum(leaf["rss_bytes"] for leaf in leaves(whole) if leaf["certainty"] == "unknown")
    return parts[0], 1 - unknown / max(1, whole["rss_bytes"])


def explain(memtide, name, full, keep):
    function, headline, owner = SERVICES[name]
    run = Run()
    try:
        pid, truth = function(run)
        time.sleep(1)
        answer = json.loads(sh(memtide, "explain", pid, "--format", "json"))
        largest, owned = owners(answer)
        label = largest["parts"][0]["label"] if len(largest.get("parts", [])) == 1 else largest["label"]
        word = answer["verdict_text"].upper()
        right = bool(re.search(headline, word)) and bool(not owner or re.search(owner, label))
        mark = "" if right else "  <-- expected " + headline + (f", {owner}" if owner else "")
        print(f"{name:18} {word:34.34} {label.rsplit('/', 1)[-1]:28.28} {mib(largest['rss_bytes']):>8} of "
              f"{mib(answer['sizes']['rss_bytes']):>8} {owned:5.0%}  {truth()[:150]}{mark}", flush=True)
        if full:
            print(sh(memtide, "explain", pid), flush=True)
        if keep:
            input(f"  PID {pid}; Enter ends it: ")
        return right
    except Missing as missing:
        print(f"{name:18} not installed: {missing}", flush=True)
        return True
    finally:
        run.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memtide", default="target/debug/memtide")
    parser.add_argument("--full", action="store_true", help="also print the whole answer")
    parser.add_argument("--keep", action="store_true", help="wait for Enter before a service is ended")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        return print("\n".join(SERVICES))
    print(f"{'service':18} {'headline':34} {'largest owner':28} {'its size of RSS':>20} owned  truth")
    results = []
    for name in args.names or SERVICES:
        try:
            results.append(explain(args.memtide, name, args.full, args.keep))
        except (RuntimeError, ValueError, OSError) as error:
            print(f"{name:18} FAILED: {error!r}", flush=True)
            results.append(False)
    print(f"{sum(results)} of {len(results)} as expected")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
