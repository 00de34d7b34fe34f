"""Takes memory of one kind, prints how many bytes, and keeps it until its standard input ends."""

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


def tmpfs(keep):
    place = f"/tmp/memtide-take-{os.getpid()}"
    os.mkdir(place)
    keep.append(lambda: os.rmdir(place))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256M", "none", place], check=True)
    keep.append(lambda: subprocess.run(["umount", place], check=True))
    with open(f"{place}/file", "wb") as file:
        file.write(b"x" * (200 * MIB))
    return 200 * MIB


def memfd(keep):
    file = os.memfd_create(f"take-{os.getpid()}")
    os.write(file, b"x" * (96 * MIB))
    keep.append(file)
    return 96 * MIB


def system_v(keep):
    LIBC.shmat.restype = ctypes.c_void_p
    segment = LIBC.shmget(0, ctypes.c_size_t(80 * MIB), 0o1600)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    keep.append(lambda: LIBC.shmctl(segment, 0, None))  # IPC_RMID
    address = LIBC.shmat(segment, None, 0)
    ctypes.memset(address, 1, 80 * MIB)
    LIBC.shmdt(ctypes.c_void_p(address))
    return 80 * MIB


def huge_pages(keep, page, count):
    """Pages that are added to a pool, mapped and written."""
    pool = f"/sys/kernel/mm/hugepages/hugepages-{page >> 10}kB/nr_hugepages"
    with open(pool) as file:
        before = int(file.read())
    write(pool, before + count)
    keep.append(lambda: write(pool, before))
    size = page.bit_length() - 1
    # MAP_HUGETLB, and the size of a page in the bits from 26 on.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000 | size << 26
    area = mmap.mmap(-1, page * count, flags=flags)
    keep.append(area.close)
    for offset in range(0, page * count, page):
        area[offset] = 1
    return page * count


def write(path, number):
    with open(path, "w") as file:
        file.write(str(number))


def huge_2m(keep):
    return huge_pages(keep, 2 * MIB, 32)


def huge_1g(keep):
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    if available >> 20 < 8:
        raise OSError("less than 8 GiB are available")
    return huge_pages(keep, 1024 * MIB, 1)


def bpf_map(keep):
    # bpf(BPF_MAP_CREATE): an array of 16,384 values of 4 KiB, which the kernel takes by vmalloc.
    attributes = struct.pack("IIIII", 2, 4, 4096, 16384, 0) + bytes(52)
    made = LIBC.syscall(321, 0, attributes, len(attributes))
    if made < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    keep.append(made)
    return 64 * MIB


def main():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    keep = []
    try:
        print(globals()[sys.argv[1]](keep), flush=True)
        sys.stdin.read()
    finally:
        for kept in reversed(keep):
            if callable(kept):
                kept()


main()
