"""What random structures and paths look like: so near to what Linux takes that calls get beyond their first check."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

from fuzz import layout

WORD = (1 << 64) - 1
AT_FDCWD = (1 << 64) - 100

# `{cwd}`: the guest's directory on the host; beside it lies `outside`, into which two links in it lead.
PATHS = (
    ".", "..", "/", "", "file", "file2", "new", "directory", "directory/x", "directory/y/z", "link", "loop", "out",
    "out/secret", "out/new", "escape", "../outside/secret", "../outside/new", "{cwd}/file", "{cwd}/../outside/secret",
    "directory/../../outside/new", "script", "{program}", "fifo", "socket", "/tmp/a", "/tmp/b", "/tmp/d", "/tmp/d/x",
    "/tmp/../etc/passwd", "/etc/passwd", "/etc/new", "/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/tty",
    "/dev/shm", "/dev/shm/a", "/dev/fd/3", "/dev/ptmx", "/dev/sda", "/dev/mem", "/proc", "/proc/self", "/proc/self/exe",
    "/proc/self/cwd/../outside/new", "/proc/self/root/etc/new", "/proc/self/fd", "/proc/self/fd/0", "/proc/self/fd/4",
    "/proc/self/fd/7", "/proc/self/maps", "/proc/self/mem", "/proc/self/status", "/proc/self/stat", "/proc/self/smaps",
    "/proc/self/environ", "/proc/self/comm", "/proc/self/task/1000/fd/5", "/proc/1001/mem", "/proc/1001/cwd/x",
    "/proc/1001/exe", "/proc/1/root", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/mounts", "/proc/net/tcp",
    "/proc/sys/kernel/pid_max", "/sys/devices/system/cpu/online", "/sys/bus/event_source/devices", "/bin", "/usr/bin/x",
    "a" * 255, "a" * 256, "a/" * 2047, "a" * 5000, "\udcff\udcfe", "new\n", "file/", "file/x", "link/", "./././file",
)  # fmt: skip


def small(rng: random.Random) -> int:
    return rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 63, 64, 100, 128, 255, 256, 1000))


def number(rng: random.Random) -> int:
    """Of 64 bits: small ones, sizes, powers of two and their neighbours, negative ones, any."""
    kind = rng.randrange(8)
    if kind < 4:
        return small(rng)
    if kind == 4:
        return rng.choice((4095, 4096, 4097, 8192, 65535, 65536, 1 << 20, (1 << 20) + 1, 16 << 20, 1 << 30))
    if kind == 5:
        return (1 << rng.randrange(64)) + rng.choice((-1, 0, 0, 1)) & WORD
    if kind == 6:
        return -rng.choice((1, 2, 3, 4, 8, 100, 4096, 1 << 31)) & WORD
    return rng.getrandbits(64)


def some_of(flags: Sequence[int], chance: float, rng: random.Random) -> int:
    """Each of them with that chance."""
    chosen = 0
    for flag in flags:
        chosen |= flag * (rng.random() < chance)
    return chosen


def pointer(rng: random.Random) -> int:
    kind = rng.randrange(16)
    if kind < 7:
        return layout.STRUCTURES + layout.STRIDE * rng.randrange(layout.MOST_STRUCTURES)
    if kind < 12:
        return layout.BUFFERS + rng.choice((0, 0x1000, 0x2000, 0x3000, 0x7000)) + rng.choice((0, 0, 0, 1, 8, 0xFFC))
    if kind < 14:
        return layout.ELSEWHERE + 0x1000 * rng.randrange(64)
    return rng.choice(layout.BAD_ADDRESSES)


def descriptor(rng: random.Random) -> int:
    return rng.choice((*range(3, 24), 0, 1, 2, -1, -100, 63, 1023))


def nanoseconds(rng: random.Random) -> int:
    return rng.choice((0, 1, 100, 5_000, 100_000, 999_999_999, 10**9, -1))


def _timespec(rng: random.Random) -> bytes:
    seconds = rng.choice((0, 0, 0, 0, 0, 1, 10, 1_700_000_000, -1, (1 << 62), (1 << 63) - 1))
    return struct.pack("<qq", seconds, nanoseconds(rng))


def _vector(rng: random.Random) -> bytes:
    sizes = (0, 1, 8, 100, 4096, 5000, 65536, 1 << 20, 1 << 31, (1 << 63) - 1, WORD)
    return b"".join(struct.pack("<QQ", pointer(rng), rng.choice(sizes)) for _ in range(8))


def _address(rng: random.Random) -> bytes:
    """sockaddr_un, with a name, an abstract one or none; sockaddr_in of loopback, of any, of somebody else."""
    kind = rng.randrange(4)
    if kind == 0:
        return struct.pack("<H", 1) + rng.choice((b"socket", b"out/s", b"/tmp/s", b"\0abstract", b"\0", b"x" * 108))
    if kind < 3:
        host = rng.choice((0x7F000001, 0x7F000002, 0, 0x08080808, 0xFFFFFFFF, 0xE0000001))
        return struct.pack(
            "<HHI8x", 2, rng.choice((0, 0x5000, 0x901F, 0xFFFF)), int.from_bytes(host.to_bytes(4), "little")
        )
    return struct.pack("<HH", rng.choice((0, 10, 16, 17, 40)), 0x5000) + rng.randbytes(24)


def _message(rng: random.Random) -> bytes:
    """msghdr: name, vector, control, flags; control messages of descriptors and credentials are _control's."""
    name = rng.choice((0, pointer(rng))), rng.choice((0, 2, 16, 110, 128))
    vector = pointer(rng), rng.choice((0, 1, 2, 8, 1024))
    control = rng.choice((0, pointer(rng))), rng.choice((0, 16, 20, 24, 40, 4096))
    return struct.pack("<QQQQQQQ", *name, *vector, *control, small(rng))


def _control(rng: random.Random) -> bytes:
    many = rng.choice((0, 1, 2, 10))
    header = struct.pack("<QII", rng.choice((16 + 4 * many, small(rng), WORD)), 1, rng.choice((1, 2, 3)))
    return header + struct.pack(f"<{many}i", *(descriptor(rng) for _ in range(many)))


def _polled(rng: random.Random) -> bytes:
    return b"".join(struct.pack("<ihh", descriptor(rng), rng.randrange(64), 0) for _ in range(16))


def _action(rng: random.Random) -> bytes:
    """struct sigaction of the kernel; handlers are the program's own, of which this knows nothing, or none."""
    flags = rng.choice((0, 4)) | rng.choice((0, 0x1000_0000, 0x4000_0000, 0x0800_0000, 0x8000_0000, 2, 1)) | 0x0400_0000
    return struct.pack("<QQQQ", rng.choice((0, 1, 0, 1, pointer(rng))), flags, layout.CODE, rng.getrandbits(64))


def _cloning(rng: random.Random) -> bytes:
    """struct clone_args: flags that go together, and others."""
    tids = pointer(rng), pointer(rng), pointer(rng)  # pidfd, child_tid, parent_tid
    stack = rng.choice((0, layout.STACKS, pointer(rng))), rng.choice((0, layout.STACK_BYTES, number(rng)))
    signal = rng.choice((17, 0, 10, 64, 65))
    return struct.pack("<11Q", clone_flags(rng) & ~0xFF, *tids, signal, *stack, pointer(rng), 0, 0, 0)


def clone_flags(rng: random.Random) -> int:
    """Of a process, a thread, vfork, or any."""
    bits = (
        0x0010_0000, 0x0020_0000, 0x0100_0000, 0x0008_0000, 0x4000, 0x8000, 0x400, 0x200, 0x100, 0x800, 0x1_0000,
        0x1000,
    )  # fmt: skip
    kind = rng.choice((17, 17, 0x0001_0F00, 0x0001_0F00, 0x003D_0F00, 0x4111, 0x411, 0x900, rng.getrandbits(33)))
    for _ in range(rng.choice((0, 0, 1, 2))):
        kind ^= rng.choice(bits)
    return kind


def _perf_attribute(rng: random.Random) -> bytes:
    """struct perf_event_attr: type, size, config, period, sample_type, read_format, flags, wakeup ..."""
    kind, size = rng.choice((0, 0, 1, 1, 2, 3, 4, 8, 9)), rng.choice((0, 64, 112, 120, 128, 136, 200))
    period = rng.choice((0, 1, 7, 1000, 100_000, number(rng)))
    sampled, flags = rng.choice((0, 0x107, 0x1FF, number(rng))), rng.choice((0, 1, 0x20, 0x60, 0x61, number(rng)))
    head = struct.pack("<IIQQQQQ", kind, size, rng.randrange(16), period, sampled, rng.randrange(32), flags)
    return head + rng.choice((b"", rng.randbytes(80)))


def _strings(rng: random.Random) -> bytes:
    """argv or an environment: pointers and, mostly, their end."""
    return struct.pack("<4Q", *(pointer(rng) for _ in range(4))) + rng.choice((bytes(8), bytes(8), b"\xff" * 8))


def _lock(rng: random.Random) -> bytes:
    start, length = (rng.choice((0, 1, 100, -1, number(rng) >> 1)) for _ in range(2))
    return struct.pack("<hhxxxxqqi", rng.randrange(4), rng.randrange(4), start, length, 0)


def _words(rng: random.Random) -> bytes:
    return struct.pack("<8I", *(number(rng) & 0xFFFFFFFF for _ in range(8)))


def _longs(rng: random.Random) -> bytes:
    return struct.pack("<8Q", *(number(rng) for _ in range(8)))


def _epoll(rng: random.Random) -> bytes:
    events = rng.getrandbits(6) | rng.choice((0, 1 << 31, 1 << 30, 1 << 29, 1 << 28))
    return struct.pack("<IQQ", events, number(rng), 0)


def _event(rng: random.Random) -> bytes:
    """struct sigevent"""
    how = rng.choice((0, 1, 2, 4, 5))
    return struct.pack("<Qiii", number(rng), rng.choice((0, 14, 10, 34, 64, 65)), how, 1000)


def _how(rng: random.Random) -> bytes:
    """struct open_how"""
    resolve = rng.choice((0, 1, 2, 4, 8, 16, 31, 64))
    return struct.pack("<QQQ", open_flags(rng), rng.choice((0, 0o600, 0o7777)), resolve)


def _set(rng: random.Random) -> bytes:
    """Of signals or descriptors; all, none, that of the interval timer."""
    return rng.choice((bytes(8), b"\xff" * 8, rng.randbytes(8), bytes([0, 32]) + bytes(6))) * 16


def _stack(rng: random.Random) -> bytes:
    """stack_t"""
    return struct.pack(
        "<QiiQ", layout.STACKS, rng.choice((0, 0, 2, 1, 5)), 0, rng.choice((layout.STACK_BYTES, small(rng)))
    )


def _operations(rng: random.Random) -> bytes:
    """struct sembuf: some of them undone at the end, some that do not wait."""
    flags = (0, 0x800, 0x1000, 0x1800)
    return b"".join(struct.pack("<Hhh", rng.randrange(3), rng.randrange(-2, 4), rng.choice(flags)) for _ in range(4))


def _waiters(rng: random.Random) -> bytes:
    """struct futex_waitv"""
    return b"".join(struct.pack("<QQII", 0, pointer(rng) & -4, rng.choice((2, 2, 0x82)), 0) for _ in range(4))


def _capabilities(rng: random.Random) -> bytes:
    version = rng.choice((0x1998_0330, 0x2007_1026, 0x2008_0522, 0))
    return struct.pack("<Ii", version, rng.choice((0, 1000, -1)))


def open_flags(rng: random.Random) -> int:
    how = rng.randrange(4) | rng.choice((0, 0o100, 0o100, 0o300, 0o1100))
    bits = (0o2000, 0o4000, 0o200000, 0o400000, 0o40000, 0o10000000, 0o20000000, 0o2000000, 0o4010000)
    return how | some_of(bits, 0.06, rng)


STRUCTURES: dict[str, Callable[[random.Random], bytes]] = {
    "timespec": lambda rng: _timespec(rng) + _timespec(rng),
    "vector": _vector,
    "address": _address,
    "message": _message,
    "control": _control,
    "polled": _polled,
    "action": _action,
    "cloning": _cloning,
    "attribute": _perf_attribute,
    "strings": _strings,
    "lock": _lock,
    "epoll": _epoll,
    "event": _event,
    "how": _how,
    "limit": lambda rng: struct.pack("<QQ", number(rng), number(rng)),
    "set": _set,
    "stack": _stack,
    "size": lambda rng: struct.pack("<I", rng.choice((0, 2, 4, 16, 110, 128, 1 << 31))),
    "capabilities": _capabilities,
    "operations": _operations,
    "waiters": _waiters,
    "words": _words,
    "longs": _longs,
    "zeros": lambda rng: bytes(layout.STRIDE),
    "noise": lambda rng: rng.randbytes(rng.choice((8, 64, 200))),
}
