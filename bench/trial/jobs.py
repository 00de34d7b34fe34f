"""A job runner in Python: as jobs.rb, with THREADS threads."""
import json, os, queue, random, threading, time

jobs, threads = int(os.environ.get("N", 5000)), int(os.environ.get("THREADS", 16))
memtide = os.fdopen(int(os.environ["MEMTIDE_FD"]), "r+b", buffering=0) if "MEMTIDE_FD" in os.environ else None


def announce(text):
    if memtide:
        memtide.write(text.encode() + b"\n")


def document(seed):
    chance = random.Random(seed)
    letter = lambda: chr(97 + chance.randrange(26))
    return json.dumps([{"id": i, "text": letter() * (20 + chance.randrange(700))} for i in range(30 + seed % 60)])


todo, kept, lock, done = queue.Queue(), [None] * 3000, threading.Lock(), 0
for job in range(jobs):
    todo.put(job)


def work():
    global done
    while True:
        try:
            job = todo.get_nowait()
        except queue.Empty:
            return
        begun = time.monotonic()
        rows = json.loads(document(job % 997))
        for row in rows:
            row["text"] = row["text"].upper()[::-1]
            row["key"] = f"job:{job}:{row['id']}"
        text = json.dumps(rows)
        kept[job * 7919 % 3000] = text[: 200 + job * 31 % 20000] if job % 4 == 0 else {"key": rows[0]["key"]}
        took = time.monotonic() - begun
        with lock:
            done += 1
            announce(f"latency_ms {took * 1e3:.3f}")
            if done == jobs // 5:
                announce("phase steady")
            if done % 50 == 0:
                announce(f"ops {done}")


workers = [threading.Thread(target=work) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
announce(f"ops {done}")
announce("hold")
if memtide:
    memtide.read(1)
