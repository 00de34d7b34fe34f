"""300,000 small lists: nearly all memory is pymalloc's, which takes arenas by mmap and bypasses malloc."""
import sys
import threading

kept = [[i, str(i), [i]] for i in range(300_000)]
print("ready", flush=True)
i = 0
while "--load" in sys.argv:
    kept[i % len(kept)] = [i, str(i), [i]]
    i += 1
threading.Event().wait()
