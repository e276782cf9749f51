"""Random arguments of system calls: what rows say that parameters are, what the tables here say of names, or any."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emulator.linux.syscalls.table import Syscall
from fuzz import contents, layout
from fuzz.contents import WORD, number, pointer, some_of


@dataclass(frozen=True, slots=True)
class Memory:
    """An argument that stands in memory: the result of an earlier call, or what one has written."""

    address: int
    size: int  # 4 or 8 bytes

    def __str__(self) -> str:
        return f"[{self.address:#x}]"


Argument = int | Memory
Choose = Callable[[random.Random], int]

FD, SIZE, PID = "fd", "size", "pid"
PIDS = (0, 0, 1000, 1000, 1001, 1002, 1003, 1005, 1016, 999, 1, -1, -1000, -1001, 1 << 22, 1 << 31)
SIGNALS = (0, 1, 2, 5, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 23, 28, 32, 33, 34, 40, 64, 65, 128, -1)
CLOCKS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, -1, -2, -6, -8002, -8006)


def _bits(*bits: int) -> Choose:
    """Some of these, or none."""
    return lambda rng: some_of(bits, 1.5 / (len(bits) + 1), rng)


def _one(*values: int) -> Choose:
    return lambda rng: rng.choice(values)


def _below(limit: int) -> Choose:
    return lambda rng: rng.choice((rng.randrange(limit), rng.randrange(limit), rng.randrange(limit), limit, -1))


def _protection(rng: random.Random) -> int:
    return rng.choice((0, 1, 3, 3, 3, 3, 5, 7, 7, 0x0100_0001, 0x0200_0003, number(rng)))


def _map_flags(rng: random.Random) -> int:
    kind = rng.choice((0x22, 0x22, 0x22, 0x21, 0x02, 0x01, 0x03, 0x20))
    return kind | some_of((0x10, 0x0010_0000, 0x100, 0x4000, 0x8000, 0x2000, 0x2_0000, 0x4_0000, 0x40), 0.12, rng)


def _page(rng: random.Random) -> int:
    """For what changes mappings: mostly not the program itself, which would end it."""
    if rng.random() < 0.04:
        return layout.CODE + 0x1000 * rng.randrange((layout.END - layout.CODE) >> 12)
    if rng.random() < 0.1:
        return rng.choice(layout.BAD_ADDRESSES)
    return layout.ELSEWHERE + 0x1000 * rng.randrange(96)


def _length(rng: random.Random) -> int:
    return rng.choice((*_LENGTHS, number(rng)))


_LENGTHS = (
    0, 1, 0x1000, 0x1000, 0x2000, 0x5000, 0x8000, 0x1_0001, 1 << 20, 1 << 24, 1 << 30, 1 << 40, (1 << 47) - 0x1000,
)  # fmt: skip
_OPERATIONS = tuple(operation | flag for operation in range(14) for flag in (0, 128, 256, 384))
_IOCTLS = (
    0x5401, 0x5402, 0x5403, 0x540E, 0x540F, 0x5410, 0x5413, 0x5414, 0x5421, 0x541B, 0x5411, 0x5450, 0x5451, 0x5452,
    0x5412, 0x5429, 0x5422, 0x8901, 0x8902, 0x8905, 0x8910, 0x8912, 0x8913, 0x8927, 0x2400, 0x2401, 0x2403, 0x2405,
    0x40082404, 0x80082407, 0x40042406, 0x40042409, 0xC008240A, 0x4008240B, 0x40049409, 0x1, 0xB701, 0x80045430,
    0x40045431, 0x5441, 0x660B, 0xC020660B, 0x80086601,
)  # fmt: skip


def _for(calls: str, parameter: str, choose: Choose) -> dict[tuple[str, str], Choose]:
    """The same for several calls."""
    return {(call, parameter): choose for call in calls.split()}


_MAPPED = "munmap mprotect madvise msync mlock mlock2 munlock mincore mbind"
_SIGNAL_SETS = "rt_sigaction rt_sigprocmask rt_sigpending rt_sigsuspend rt_sigtimedwait signalfd signalfd4"
_OPENERS = "pipe2 eventfd2 timerfd_create accept4 signalfd4 memfd_create epoll_create1 dup3"
_MESSAGES = "sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg"
_AT = "newfstatat statx fchownat linkat unlinkat utimensat faccessat2 fchmodat2 execveat"
_TIMERS = "timer_settime timer_gettime timer_delete timer_getoverrun"
_MODES = (0, 0o600, 0o644, 0o700, 0o777, 0o4755, 0o10600, 0o20600, 0o60600, 0o140600, 0o177777)

# By (call, parameter), or parameter alone.
CHOICES: dict[tuple[str, str], Choose] = {
    ("mmap", "address"): lambda rng: rng.choice((0, 0, _page(rng))),
    ("mmap", "length"): _length,
    ("mmap", "flags"): _map_flags,
    ("mmap", "offset"): _one(0, 0, 0x1000, 0x2000, 1, 1 << 40, (1 << 63) - 0x1000, WORD & -0x1000),
    **_for(_MAPPED, "address", _page),
    **_for(_MAPPED, "length", _length),
    ("mremap", "old"): _page,
    ("mremap", "new"): _page,
    ("mremap", "old_length"): _length,
    ("mremap", "new_length"): _length,
    ("mremap", "flags"): _one(0, 1, 1, 3, 3, 5, 7, 8),
    ("brk", "address"): lambda rng: rng.choice((0, 1 << 30, layout.END + 0x10000 * rng.randrange(64), number(rng))),
    ("", "protection"): _protection,
    ("", "advice"): _below(26),
    ("msync", "flags"): _below(8),
    ("mlockall", "flags"): _below(8),
    ("futex", "operation"): lambda rng: rng.choice(_OPERATIONS),
    ("futex", "value"): _one(0, 1, 2, 1000, 1 << 31, (1 << 31) - 1),
    ("futex", "v3"): _one(0, 1, (1 << 32) - 1, 0x1234_5678),
    ("ioctl", "request"): lambda rng: rng.choice(_IOCTLS),
    ("fcntl", "command"): lambda rng: rng.choice((*range(18), *range(36, 40), *range(1024, 1044))),
    ("prctl", "option"): _below(75),
    ("arch_prctl", "code"): _one(0x1001, 0x1002, 0x1003, 0x1004, 0x1011, 0x1012, 0x2001, 0x3001),
    ("clone", "flags"): contents.clone_flags,
    ("clone", "stack"): lambda rng: rng.choice((0, layout.stack_top(rng.randrange(layout.MOST_STACKS)), pointer(rng))),
    ("clone3", "size"): _one(64, 80, 88, 88, 96, 4096),
    **_for(_TIMERS, "number", _one(0, 0, 1, 2, 100, -1)),
    ("socket", "family"): _one(1, 1, 1, 2, 2, 2, 10, 16, 17, 0),
    ("socketpair", "family"): _one(1, 1, 1, 2, 0),
    ("", "kind"): lambda rng: rng.choice((1, 1, 2, 5, 3, 0)) | rng.choice((0, 0, 0x800, 0x80000)),
    ("", "protocol"): _one(0, 0, 0, 6, 17, 1),
    ("waitid", "kind"): _one(0, 1, 2, 3),
    ("waitid", "options"): lambda rng: 4 | rng.choice((0, 1, 1, 2, 8, 0x0100_0000)),
    ("", "level"): _one(1, 1, 1, 6, 0, 41, 17, 0x10E),
    ("", "option"): _below(64),
    ("", "how"): _below(4),
    ("", "backlog"): _one(0, 1, 5, 4096, -1),
    ("", "clock"): lambda rng: rng.choice(CLOCKS),
    ("", "signal"): lambda rng: rng.choice(SIGNALS),
    ("rt_sigaction", "signal"): lambda rng: rng.randrange(1, 65),
    ("epoll_ctl", "operation"): _one(1, 1, 1, 2, 3, 0, 4),
    ("flock", "operation"): _one(1, 2, 4, 5, 6, 8, 0),
    ("", "limit"): _one(1, 2, 16, 100, 1 << 20, (1 << 31) - 1, 0, -1),
    ("", "timeout_ms"): _one(0, 0, 1, 5, -1, 1000, (1 << 31) - 1),
    ("", "whence"): _below(6),
    ("", "resource"): _below(17),
    ("", "which"): _below(4),
    ("", "policy"): _below(7),
    ("", "who"): lambda rng: rng.choice((0, *PIDS)),
    ("", "nice"): _one(-21, -20, 0, 1, 10, 19, 20),
    ("openat2", "size"): _one(24, 24, 24, 0, 32, 4096),
    ("", "mask_size"): _one(8, 8, 8, 0, 16),
    **_for(_SIGNAL_SETS, "size", _one(8, 8, 8, 4, 16)),
    **_for("open openat", "flags", contents.open_flags),
    **_for(_OPENERS, "flags", _bits(0x800, 0x80000, 1, 2, 0x4000)),
    **_for(_MESSAGES, "flags", _bits(1, 2, 4, 0x20, 0x40, 0x100, 0x1000, 0x4000, 0x10000, 0x4000_0000)),
    **_for(_AT, "flags", _bits(0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000)),
    ("", "flags"): _bits(1, 2, 4, 8, 16, 0x80000),
    ("close_range", "first"): _one(3, 10, 20, 100, 0),
    ("close_range", "last"): _one(5, 12, 22, 200, (1 << 32) - 1),
    ("", "mode"): _one(*_MODES),
    ("fallocate", "mode"): _one(0, 1, 3, 2, 8, 0x10, 0x20, 0x40),
    ("", "options"): _bits(1, 2, 4, 8, 0x0100_0000, 0x2000_0000, 0x4000_0000, 0x8000_0000),
    ("", "seconds"): _one(0, 1, 100),
    ("", "count"): _one(0, 1, 2, 8, 16, 64, 1023, 1024, 1025, 1 << 20, (1 << 31) - 1, -1),
    ("", "offset"): lambda rng: rng.choice((0, 0, 1, 100, 4095, 4096, 65536, 1 << 30, (1 << 63) - 1, -1, number(rng))),
    ("", "value"): lambda rng: rng.choice((0, 1, 2, WORD, pointer(rng))),
    ("membarrier", "command"): _one(0, 1, 2, 4, 8, 16, 32, 64, 128, 256),
    ("", "cpu"): _one(0, 1, 3, 64, -1),
    ("", "group_fd"): lambda rng: rng.choice((-1, -1, -1, contents.descriptor(rng))),
    ("exit", "status"): _below(256),
    ("", "key"): _one(0, 0, 1, 2, 0x1234, -1),
    **_for("shmget semget msgget", "flags", lambda rng: 0o600 | rng.choice((0, 0o1000, 0o1000, 0o3000))),
    **_for("shmat shmctl semctl semop semtimedop msgctl msgsnd msgrcv", "number", _one(0, 0, 0, 1, 2, 32768, -1)),
    **_for("shmctl semctl msgctl", "command", lambda rng: rng.choice((*range(20), 256, 257))),
    ("shmat", "address"): lambda rng: rng.choice((0, 0, 0, _page(rng))),
    ("shmat", "flags"): _one(0, 0, 0o10000, 0o20000, 0o40000, 0o100000),
    ("shmdt", "address"): _page,
    **_for("semop semtimedop", "count", _one(1, 1, 1, 2, 500, 501)),
    **_for("semget", "count", _one(0, 1, 2, 32, 32000, 32001)),
    ("semctl", "index"): _one(0, 0, 1, 5, -1),
    **_for("semop semtimedop msgsnd msgrcv", "flags", _one(0, 0o4000, 0o4000, 0o10000, 0o40000)),
    ("msgrcv", "kind"): _one(0, 0, 1, -1, -5, 1 << 62),
    ("", "watch"): _one(1, 1, 2, 3, 0, -1),
    ("inotify_add_watch", "mask"): lambda rng: rng.choice((0xFFF, 0xFFF, rng.getrandbits(32), 0x2000_0100, 0)),
    ("inotify_init1", "flags"): _one(0, 0x800, 0x80800),
    ("kcmp", "kind"): _below(9),
    **_for("process_vm_readv process_vm_writev", "local_count", _one(0, 1, 8, 1024, 1025)),
    **_for("process_vm_readv process_vm_writev", "remote_count", _one(0, 1, 8, 1024, 1025)),
    **_for("process_vm_readv process_vm_writev pidfd_open pidfd_send_signal", "flags", _one(0, 0, 0, 0x800, 1)),
    ("futex_waitv", "count"): _one(1, 2, 4, 128, 129),
}

KINDS = {
    FD: ("descriptor", "source", "target", "instance", "directory", "wanted", "source_descriptor", "target_descriptor"),
    SIZE: ("size", "length", "old_length", "new_length", "address_size"),
    PID: ("pid", "tid", "number", "group", "parent", "pid1", "pid2"),
}  # fmt: skip
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}

# Which structure a pointer of that name points to.
STRUCTURES: dict[tuple[str, str], Sequence[str]] = {
    ("", "vector"): ("vector",), ("", "argv"): ("strings", "zeros", "zeros"), ("", "environment"): ("strings", "zeros"),
    ("", "request"): ("timespec",), ("", "timeout"): ("timespec", "zeros"), ("", "times"): ("timespec",),
    ("", "tp"): ("timespec",), ("", "tv"): ("timespec",), ("", "mask"): ("set", "zeros"), ("", "wanted"): ("set",),
    ("", "new"): ("timespec", "limit", "longs"), ("", "header"): ("message", "capabilities"),
    ("", "headers"): ("message",), ("", "descriptors"): ("polled", "zeros"), ("", "reading"): ("set", "words"),
    ("", "writing"): ("set", "words"), ("", "exceptional"): ("set", "words"), ("", "attr"): ("attribute",),
    ("", "attribute"): ("words", "longs"), ("", "size_at"): ("size",), ("", "how"): ("how",),
    ("", "arguments"): ("cloning",),
    ("epoll_ctl", "event"): ("epoll",), ("timer_create", "event"): ("event",), ("fcntl", "argument"): ("lock", "words"),
    ("bind", "address"): ("address",), ("connect", "address"): ("address",),
    ("sendto", "address"): ("address", "zeros"),
    ("futex", "address"): ("words", "zeros"), ("futex", "other"): ("words", "zeros"), ("", "limit"): ("limit",),
    ("rt_sigaction", "new"): ("action",), ("sigaltstack", "new"): ("stack",), ("rt_sigprocmask", "new"): ("set",),
    ("", "head"): ("longs", "zeros"), ("", "parameters"): ("words",), ("", "data"): ("noise", "control", "zeros"),
    ("", "operations"): ("operations",), ("", "message"): ("longs", "words"), ("", "waiters"): ("waiters",),
    ("", "local"): ("vector",), ("", "remote"): ("vector",),
    ("", "info"): ("words", "noise"), ("", "offset"): ("zeros", "longs"), ("", "area"): ("zeros",),
}  # fmt: skip


# Which kind of descriptor a call is for; the others take any.
SOCKETS = (
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
    "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
)  # fmt: skip
FILES = (
    "lseek", "pread64", "preadv", "pwrite64", "pwritev", "fallocate", "ftruncate", "copy_file_range", "mmap",
    "readahead",
)  # fmt: skip
WANTED = {
    **dict.fromkeys(SOCKETS, "socket"),
    **dict.fromkeys(FILES, "file"),
    **dict.fromkeys(("epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2"), "epoll"),
    **dict.fromkeys(("timerfd_settime", "timerfd_gettime"), "timerfd"),
    **dict.fromkeys(("inotify_add_watch", "inotify_rm_watch"), "inotify"),
    **dict.fromkeys(("pidfd_send_signal", "pidfd_getfd"), "pidfd"),
    **dict.fromkeys(("splice", "tee", "vmsplice"), "pipe"),
    **dict.fromkeys(("getdents", "getdents64", "fchdir"), "directory"),
}
MADE_BY = {  # kinds of the descriptors that calls return
    **dict.fromkeys(("open", "openat", "openat2", "creat", "memfd_create"), "file"),
    **dict.fromkeys(("epoll_create", "epoll_create1"), "epoll"),
    **dict.fromkeys(("socket", "accept", "accept4"), "socket"),
    **dict.fromkeys(("eventfd", "eventfd2", "signalfd", "signalfd4", "perf_event_open"), "other"),
    **dict.fromkeys(("dup", "dup2", "dup3", "fcntl"), "other"),
    "timerfd_create": "timerfd",
    **dict.fromkeys(("inotify_init", "inotify_init1"), "inotify"),
    "pidfd_open": "pidfd",
}


class Arguments:
    """Makes the arguments of calls, from one generator."""

    def __init__(self, rng: random.Random, structures: dict[str, list[int]], paths: list[int]) -> None:
        self._rng = rng
        self._structures = structures  # addresses, by kind
        self._paths = paths
        self._descriptors: dict[str, list[Memory]] = {}  # results of earlier calls, by kind
        self._all: list[Memory] = []

    def keep(self, kind: str, *results: Memory) -> None:
        """These may be descriptors of that kind."""
        self._descriptors.setdefault(kind, []).extend(results)
        self._all.extend(results)

    def of(self, row: Syscall) -> list[Argument]:
        """Six: what the row takes, and something in the registers that it does not look at."""
        parameters = list(inspect.signature(row.handler).parameters.values())
        named = [one for one in parameters if one.name not in ("self", "task")][:6]
        values = [self._one(row.name, one.name, str(one.annotation)) for one in named]
        return values + [number(self._rng) for _ in range(6 - len(values))]

    def any(self) -> list[Argument]:
        return [self._rng.choice((pointer, number))(self._rng) for _ in range(6)]

    def _one(self, call: str, name: str, annotation: str) -> Argument:
        rng = self._rng
        if rng.random() < 0.04:
            return rng.choice((pointer, number))(rng)
        is_pointer = annotation.startswith(("Address", "In", "Out", "Optional"))
        choose = CHOICES.get((call, name)) or (None if is_pointer else CHOICES.get(("", name)))
        if choose is not None:
            return choose(rng) & WORD
        if "Path" in annotation:
            return rng.choice(self._paths) if rng.random() < 0.95 else pointer(rng)
        if is_pointer:
            return self._pointer(call, name)
        kind = KIND_OF.get(name)
        if kind is FD:
            return self._descriptor(call)
        if kind is PID:
            return rng.choice(PIDS) & WORD
        if kind is SIZE:
            return rng.choice((0, 1, 4, 8, 16, 64, 100, 128, 4096, 5000, 65536, number(rng)))
        return self._pointer(call, name) if name == "argument" and rng.randrange(2) else number(rng)

    def _descriptor(self, call: str) -> Argument:
        rng = self._rng
        kind = rng.random()
        wanted = self._descriptors.get(WANTED.get(call, "directory" if call.endswith(("at", "at2")) else ""))
        if wanted and kind < 0.6:
            return rng.choice(wanted)
        if call.endswith(("at", "at2", "statx")) and kind < 0.8:
            return contents.AT_FDCWD
        if self._all and kind < 0.85:
            return rng.choice(self._all)
        return contents.descriptor(rng) & WORD

    def _pointer(self, call: str, name: str) -> int:
        rng = self._rng
        kinds = STRUCTURES.get((call, name)) or STRUCTURES.get(("", name))
        chance = rng.random()
        if kinds is not None and chance < 0.75:
            return rng.choice(self._structures[rng.choice(kinds)])
        return 0 if chance > 0.85 else pointer(rng)
