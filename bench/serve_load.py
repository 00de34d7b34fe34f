#!/usr/bin/env python3
"""What many clients of `memtide serve` cost: memory and CPU of the server, how long an answer takes, and whether a recorder
beside it is late. Run: bench/serve_load.py MEMTIDE [CLIENTS [SECONDS]]. Everything listens on loopback, in a directory of its
own. Each client does what a page does: the page, then its data every 2 s with the name of what it has, and its text."""
import http.client, json, os, re, subprocess, sys, tempfile, threading, time

memtide = sys.argv[1]
clients = int(sys.argv[2]) if len(sys.argv) > 2 else 20
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60


def started(*arguments):
    process = subprocess.Popen([memtide, "serve", "--listen", "127.0.0.1:0", *arguments], stderr=subprocess.PIPE, text=True)
    said = ""
    while (found := re.search(r"http://127\.0\.0\.1:(\d+)/", said)) is None:
        line = process.stderr.readline()
        if not line:
            raise SystemExit(said)
        said += line
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, int(found.group(1))


def memory(pid):
    text = open(f"/proc/{pid}/status").read()
    return {key: int(re.search(rf"{key}:\s+(\d+)", text).group(1)) / 1024 for key in ("VmRSS", "VmHWM", "RssAnon")}


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client(port, until, times, counts):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    tags = {}

    def ask(path):
        headers = {"Accept-Encoding": "gzip"}
        if path in tags:
            headers["If-None-Match"] = tags[path]
        begun = time.monotonic()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        size = len(answer.read())
        times.append(time.monotonic() - begun)
        counts[answer.status] = counts.get(answer.status, 0) + 1
        counts["bytes"] = counts.get("bytes", 0) + size
        if answer.status == 200:
            tags[path] = answer.getheader("ETag")
        return answer.status

    ask("/")
    while time.monotonic() < until:
        if ask("/data") == 200:
            ask("/text")
        time.sleep(2)


def loaded(name, *arguments):
    server, port = started(*arguments)
    time.sleep(5)
    before, used = memory(server.pid), cpu(server.pid)
    times, counts, until = [], {}, time.monotonic() + seconds
    threads = [threading.Thread(target=client, args=(port, until, times, counts)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after, used = memory(server.pid), cpu(server.pid) - used
    server.terminate()
    code = server.wait(10)
    times.sort()
    sent = counts.pop("bytes")
    print(f"{name}: {clients} clients, {seconds:.0f} s: {len(times)} answers {counts}, {sent / 2**20:.0f} MiB; "
          f"median {times[len(times) // 2] * 1e3:.0f} ms, p99 {times[int(len(times) * 0.99)] * 1e3:.0f} ms, most {times[-1] * 1e3:.0f} ms; "
          f"RSS {before['VmRSS']:.0f} MiB before, {after['VmRSS']:.0f} after, peak {after['VmHWM']:.0f} (anonymous {after['RssAnon']:.0f}); "
          f"CPU {used / seconds:.1%} of one; ended with {code}")


with tempfile.TemporaryDirectory() as place:
    loaded("this host", "--live")
    recorder = subprocess.Popen([memtide, "record", "--to", f"{place}/recording"], stderr=subprocess.DEVNULL)
    time.sleep(20)
    loaded("a recording", f"{place}/recording")
    recorder.terminate()
    recorder.wait(30)
    status = json.loads(subprocess.run([memtide, "record", "--status", "--format", "json", "--to", f"{place}/recording"],
                                       capture_output=True, text=True).stdout)
    taken = status["recorder"]["samples"]
    print(f"the recorder beside it: {taken['taken']} samples, {taken['late']} late, {taken['missed']} missed, {taken['lost']} lost; "
          f"worst {taken['worst_late_s'] * 1e3:.0f} ms")
