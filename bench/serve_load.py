#!/usr/bin/env python3
"""What many clients of `memtide serve` cost: memory and CPU of the server, how long an answer takes, and whether a recorder
beside it is late. Run: bench/serve_load.py MEMTIDE [CLIENTS [SECONDS [ROUNDS]]]. Everything listens on loopback, in a directory
of its own. Each client does what a page does: the page, then its data with the name of what it has, and its text; it asks when an
event says so, or every 2 s as a page does without events. Both are measured in turn, ROUNDS times. `lag` is how long after a sample
was there a client has data of it."""
import http.client, json, os, re, socket, subprocess, sys, tempfile, threading, time

memtide = sys.argv[1]
clients = int(sys.argv[2]) if len(sys.argv) > 2 else 20
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 1


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


class Clients:
    """What all clients of a server have counted."""

    def __init__(self, port):
        self.port, self.until = port, time.monotonic() + seconds
        self.times, self.lags, self.counts, self.sent, self.newest = [], [], {}, 0, time.monotonic()

    def watch(self):
        """Notes when a new sample is there."""
        connection, last = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60), None
        while time.monotonic() < self.until:
            connection.request("GET", "/healthz")
            age = json.loads(connection.getresponse().read())["last_sample_age_s"]
            taken = time.monotonic() - age
            if last is None or taken - last > 0.1:
                self.newest = time.monotonic()
                last = taken
            time.sleep(0.05)

    def one(self, by_events):
        connection, tags = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60), {}

        def ask(path):
            headers = {"Accept-Encoding": "gzip"}
            if path in tags:
                headers["If-None-Match"] = tags[path]
            begun = time.monotonic()
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body, now = answer.read(), time.monotonic()
            self.times.append(now - begun)
            self.counts[answer.status] = self.counts.get(answer.status, 0) + 1
            self.sent += len(body)
            if answer.status == 200:
                tags[path] = answer.getheader("ETag")
                if path == "/data":
                    self.lags.append(now - self.newest)
            return answer.status

        def look():
            if ask("/data") == 200:
                ask("/text")

        ask("/")
        look()
        if by_events:
            stream = socket.create_connection(("127.0.0.1", self.port), timeout=1)
            stream.sendall(b"GET /changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            said = b""
        while time.monotonic() < self.until:
            if not by_events:
                time.sleep(2)
            else:
                try:
                    said += (got := stream.recv(4096))
                    self.sent += len(got)
                except TimeoutError:
                    continue
                self.counts["events"] = self.counts.get("events", 0) + said.count(b"\ndata: ")
                if b"\ndata: " not in said:
                    continue
                said = b""
            look()
        if by_events:
            stream.close()


def loaded(name, by_events, *arguments):
    server, port = started(*arguments)
    time.sleep(5)
    before, used, all = memory(server.pid), cpu(server.pid), Clients(port)
    threads = [threading.Thread(target=all.one, args=(by_events,)) for _ in range(clients)]
    threads.append(threading.Thread(target=all.watch))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after, used = memory(server.pid), cpu(server.pid) - used
    server.terminate()
    code = server.wait(10)
    times, lags = sorted(all.times), sorted(all.lags)
    print(f"{name}, by {'events' if by_events else 'questions every 2 s'}: {clients} clients, {seconds:.0f} s: {len(times)} answers {all.counts}, "
          f"{all.sent / 2**20:.1f} MiB; median {times[len(times) // 2] * 1e3:.0f} ms, p99 {times[int(len(times) * 0.99)] * 1e3:.0f} ms, "
          f"most {times[-1] * 1e3:.0f} ms; lag: median {lags[len(lags) // 2]:.2f} s, p90 {lags[int(len(lags) * 0.9)]:.2f} s; "
          f"RSS {before['VmRSS']:.0f} MiB before, {after['VmRSS']:.0f} after, peak {after['VmHWM']:.0f} (anonymous {after['RssAnon']:.0f}); "
          f"CPU {used / seconds:.1%} of one; ended with {code}", flush=True)


with tempfile.TemporaryDirectory() as place:
    for by_events in [True, False] * rounds:
        loaded("this host", by_events, "--live")
    recorder = subprocess.Popen([memtide, "record", "--to", f"{place}/recording"], stderr=subprocess.DEVNULL)
    time.sleep(20)
    for by_events in [True, False] * rounds:
        loaded("a recording", by_events, f"{place}/recording")
    recorder.terminate()
    recorder.wait(30)
    status = json.loads(subprocess.run([memtide, "record", "--status", "--format", "json", "--to", f"{place}/recording"],
                                       capture_output=True, text=True).stdout)
    taken = status["recorder"]["samples"]
    print(f"the recorder beside it: {taken['taken']} samples, {taken['late']} late, {taken['missed']} missed, {taken['lost']} lost; "
          f"worst {taken['worst_late_s'] * 1e3:.0f} ms")
