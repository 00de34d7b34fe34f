"""Takes kernel memory of one kind, prints how many bytes, and keeps it until its standard input ends."""

import ctypes
import fcntl
import mmap
import os
import resource
import socket
import struct
import subprocess
import sys
import threading

MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


def fill(write, block):
    """Writes until nothing more is taken. Returns the bytes."""
    total = 0
    try:
        while True:
            total += write(block)
    except BlockingIOError:
        return total


def pipes(keep):
    total = 0
    for _ in range(64):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, 1031, MIB)  # F_SETPIPE_SZ
        os.set_blocking(writer, False)
        keep.append((reader, writer))
        total += fill(lambda block, writer=writer: os.write(writer, block), b"x" * 65536)
    return total


def unix_sockets(keep):
    total = 0
    for _ in range(200):
        writer, reader = socket.socketpair()
        writer.setblocking(False)
        keep.append((writer, reader))
        total += fill(writer.send, b"x" * 65536)
    return total


def tcp_sockets(keep):
    listener = socket.create_server(("127.0.0.1", 0))
    keep.append(listener)
    total = 0
    while total < 64 * MIB:
        client = socket.create_connection(listener.getsockname())
        keep.append((client, listener.accept()))
        client.setblocking(False)
        total += fill(client.send, b"x" * 65536)
    return total


def packet_rings(keep):
    ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    keep.append(ring)
    block, blocks = 4 * MIB, 16
    request = struct.pack("IIII", block, blocks, 2048, block * blocks // 2048)
    ring.setsockopt(263, 5, request)  # SOL_PACKET, PACKET_RX_RING
    return block * blocks


def io_rings(keep):
    for _ in range(16):
        # io_uring_setup(2): 32,768 entries of 64 bytes; 65,536 completions and 32,768 indexes take 2 MiB.
        made = LIBC.syscall(425, 32768, (ctypes.c_ubyte * 120)())
        if made < 0:
            raise OSError(ctypes.get_errno(), "io_uring_setup")
        keep.append(made)
    return 16 * 4 * MIB


def page_tables(keep):
    area = mmap.mmap(-1, 32 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    keep.append(area)
    # One page of each table is read: that is the zero page, which takes nothing.
    for offset in range(0, 32 << 30, 2 * MIB):
        area[offset]
    return (32 << 30) // (2 * MIB) * 4096


def kernel_stacks(keep):
    threading.stack_size(65536)
    end = threading.Event()
    for _ in range(1500):
        threading.Thread(target=end.wait, daemon=True).start()
    keep.append(end)
    return 1500 * 16384


def locked(keep):
    area = mmap.mmap(-1, 80 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    if LIBC.mlock(ctypes.c_void_p(address), ctypes.c_size_t(80 * MIB)) != 0:
        raise OSError(ctypes.get_errno(), "mlock")
    keep.append(area)
    return 80 * MIB


def removed_cgroups(keep):
    """Returns how many cgroups it made and removed; each has a file in a tmpfs charged to it."""
    top = f"/sys/fs/cgroup/memory/memtide-dying-{os.getpid()}"
    script = 'echo $$ > "$0/cgroup.procs" && head -c 4096 /dev/zero > "$1"'
    os.mkdir(top)
    for number in range(200):
        group, file = f"{top}/{number}", f"/dev/shm/memtide-dying-{os.getpid()}-{number}"
        os.mkdir(group)
        subprocess.run(["sh", "-c", script, group, file], check=True)
        os.rmdir(group)
        keep.append(lambda file=file: os.remove(file))
    keep.append(lambda: os.rmdir(top))
    return 200


def main():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    keep = []
    try:
        print(globals()[sys.argv[1]](keep), flush=True)
        sys.stdin.read()
    finally:
        for kept in keep:
            if callable(kept):
                kept()


main()
