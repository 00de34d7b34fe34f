#!/usr/bin/env python3
"""A program that needs a mapped file always, and most of its data once: what the kernel can tell apart with swap only.

    swapdemo.py LIBRARY_MIB DATA_MIB SECONDS [random]

It maps a file of LIBRARY_MIB in its temporary directory (the library), fills DATA_MIB of memory, and then moves a window
through the data for SECONDS while it reads random pages of the library. It announces pages that it touched, in thousands.
"""

import mmap
import os
import random
import sys
import tempfile
import time

PAGE = mmap.PAGESIZE
MIB = 1 << 20


def main():
    library_size, data_size = (int(word) * MIB for word in sys.argv[1:3])
    seconds = float(sys.argv[3])
    noise = os.urandom(MIB) if sys.argv[4:] == ["random"] else bytes([1]) * MIB
    announce = os.fdopen(int(os.environ["MEMTIDE_FD"]), "w", buffering=1) if "MEMTIDE_FD" in os.environ else sys.stdout
    with tempfile.TemporaryFile() as file:
        for _ in range(library_size // MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        library = mmap.mmap(file.fileno(), library_size, prot=mmap.PROT_READ)
        random.seed(1)
        data = mmap.mmap(-1, data_size)
        for at in range(0, data_size, MIB):
            data[at:at + MIB] = noise
        print("phase steady", file=announce)
        until = time.monotonic() + seconds
        pages, window, touched = library_size // PAGE, data_size // 11, 0
        step = total = 0
        while time.monotonic() < until:
            start = step % 10 * window
            for page in range(window // PAGE):
                total += library[random.randrange(pages) * PAGE] + data[start + page * PAGE]
                touched += 1
                if touched % 250 == 0:
                    print(f"ops {touched / 1000}", file=announce)
                    if time.monotonic() > until:
                        break
            step += 1
        print(f"ops {touched / 1000}", file=announce)


main()
