"""RandomProgram: a static program that makes random system calls, with children, threads and signals, from a seed.

It is straight: call after call, each with its arguments by value or from an earlier call's result. Whoever clones goes
on at once, and the child somewhere further on. Before, there are descriptors of several kinds, handlers of most
signals, and an interval timer, whose signal ends what would sleep for ever.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from emulator.linux.syscalls import table
from emulator.linux.syscalls.names import syscall_name
from emulator.linux.syscalls.table import Syscall
from fuzz import contents, layout
from fuzz.arguments import MADE_BY, Argument, Arguments, Memory
from fuzz.encoding import ENCODINGS, Encoding
from perfcore.events.syscall import PerfEventOpen

MACHINES = {"aarch64": 183, "x86_64": 62}
CLONING = ("clone", "clone3", "fork", "vfork")
# These end the program, or what it needs; the others are as likely as each other.
RARE = ("exit", "exit_group", "execve", "execveat", "rt_sigreturn", "kill", "tgkill", "tkill", "setrlimit", "prlimit64")
FAVOURITES = (
    "mmap", "munmap", "mprotect", "mremap", "futex", "read", "write", "openat", "sendmsg", "recvmsg", "clone", "wait4",
)  # fmt: skip
MOST_OF_ANY_NUMBER = 600
PERF_EVENT_OPEN = Syscall("perf_event_open", PerfEventOpen.open, 241, 298, table.Support.PARTIAL, "perfcore's")
BPF = Syscall("bpf", lambda task, cmd, uattr, size: 0, 280, 321, table.Support.PARTIAL, "perfcore's")
SIGALRM = 14


@dataclass(slots=True)
class Call:
    """One system call, then the memory that is written before it."""

    name: str
    number: int
    arguments: Sequence[Argument]
    result: int | None = None  # where its result goes, an address
    child_goes_to: int | None = None  # number of the call
    written: list[tuple[int, int]] = field(default_factory=list)  # (address, 8 bytes)

    def __str__(self) -> str:
        shown = ", ".join(hex(one) if isinstance(one, int) else str(one) for one in self.arguments)
        goes = "" if self.child_goes_to is None else f" (the child goes to {self.child_goes_to})"
        return f"{self.name}({shown}){goes}"


def rows_of(isa: str) -> list[Syscall]:
    return sorted(
        (*(row for row in table.load() if row.number(isa) is not None), PERF_EVENT_OPEN), key=lambda row: row.name
    )


class RandomProgram:
    """The program of an ISA and a seed. `cwd` is where it will run, `path` what it will be."""

    def __init__(self, isa: str, seed: int, calls: int, cwd: str, path: str) -> None:
        self.isa = isa
        self._rng = rng = random.Random(f"{isa} {seed}")
        self._encoding: Encoding = ENCODINGS[isa]
        self._rows = rows_of(isa)
        self._by_name = {row.name: row for row in self._rows}
        self._structures: dict[str, list[int]] = {kind: [] for kind in contents.STRUCTURES}
        self._memory = bytearray(layout.END - layout.CODE - layout.CODE_BYTES)
        self._paths = self._write_memory(cwd, path)
        self._arguments = Arguments(rng, self._structures, self._paths)
        self._handlers: list[int] = []
        self._code = bytearray()
        self._write_handlers()
        self.calls: list[Call] = []
        self._kept = 0  # results
        self._begin()
        weights = [_weight(row.name) for row in self._rows]
        for _ in range(calls):
            self._add(rng.choices(self._rows, weights)[0])
        self._end()
        for number, call in enumerate(self.calls):
            if call.name in CLONING:
                call.child_goes_to = rng.randrange(number + 1, len(self.calls) + 1)

    # ---- memory

    def _write_memory(self, cwd: str, path: str) -> list[int]:
        """Structures of every kind, paths, and noise behind them; addresses of the paths."""
        rng = self._rng
        kinds = list(contents.STRUCTURES)
        paths = []
        for number in range(layout.MOST_STRUCTURES):
            address = layout.STRUCTURES + layout.STRIDE * number
            if number < len(contents.PATHS):
                text = contents.PATHS[number].replace("{cwd}", cwd).replace("{program}", path)
                content = text.encode("utf-8", "surrogateescape")[: 2 * layout.STRIDE] + b"\0"
                paths.append(address)
            else:
                kind = kinds[number % len(kinds)]
                content = contents.STRUCTURES[kind](rng)[: layout.STRIDE]
                self._structures[kind].append(address)
            self._put(address, content)
        self._put(layout.BUFFERS, rng.randbytes(2000) + b"a" * 3000)
        return paths

    def _put(self, address: int, content: bytes) -> None:
        start = address - layout.RESULTS
        self._memory[start : start + len(content)] = content

    # ---- calls

    def _write_handlers(self) -> None:
        """Behind the first jump: some that only return, and some that write into what they return to."""
        rng = self._rng
        self._code += bytes(16)
        self._restorer = layout.CODE + len(self._code)
        self._code += self._encoding.restorer()
        for number in range(6):
            offset = None if number < 4 else 8 * rng.randrange(0, 120)
            self._handlers.append(layout.CODE + len(self._code))
            self._code += self._encoding.handler(offset, contents.number(rng))
        self._code += bytes(-len(self._code) % 8)
        self._first = len(self._code)

    def _begin(self) -> None:
        """Handlers, a timer, descriptors."""
        rng = self._rng
        at = self._structures["zeros"][0]
        for signal in (SIGALRM, *rng.sample(range(1, 65), 40)):
            flags = 0x0400_0000 | rng.choice((0, 4, 0x1000_0000, 0x1000_0004, 0x4000_0004, 0x0800_0004, 0x8000_0004))
            action = (
                rng.choice(self._handlers),
                flags,
                self._restorer,
                rng.choice((0, 0, rng.getrandbits(64) & ~(1 << SIGALRM - 1))),
            )
            self._call("rt_sigaction", signal, at, 0, 8, written=words(at, struct.pack("<4Q", *action)))
        if rng.random() < 0.8:
            stack = struct.pack("<QQQ", layout.STACKS, 0, layout.STACK_BYTES)
            self._call("sigaltstack", at, 0, written=words(at, stack))
        period_us = rng.choice((5, 20, 100))
        timer = struct.pack("<4Q", 0, period_us, 0, period_us)
        self._call("setitimer", 0, at, 0, written=words(at, timer))
        for opening in rng.sample(_OPENING, rng.randrange(4, len(_OPENING) + 1)):
            opening(self)

    def _end(self) -> None:
        self._call("exit_group", self._rng.randrange(256))

    def _call(
        self, name: str, *arguments: Argument, written: list[tuple[int, int]] | None = None, kind: str = ""
    ) -> Memory:
        """A call as it shall be. With a `kind` its result is kept, as a descriptor."""
        row = self._by_name[name]
        number = row.number(self.isa)
        assert number is not None, name
        padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
        place = self._place()
        self.calls.append(Call(name, number, padded, place.address if kind else None, written=written or []))
        if kind:
            self._arguments.keep(kind, place)
        return place

    def _place(self) -> Memory:
        """Where a result is kept: where one was before, if there is no more room."""
        self._kept += 1
        return Memory(layout.result(self._kept % layout.MOST_RESULTS), 8)

    def open_files(self) -> None:
        flags = self._rng.choice((2, 0o102, 0o2002, 0o4002))
        self._call("openat", contents.AT_FDCWD, self._paths[contents.PATHS.index("file")], flags, 0o600, kind="file")
        self._call(
            "openat",
            contents.AT_FDCWD,
            self._rng.choice(self._paths),
            contents.open_flags(self._rng),
            0o600,
            kind="file",
        )

    def open_directories(self) -> None:
        for path in (".", self._rng.choice(("directory", "/proc/self", "/dev/shm", "/", "/proc/self/fd"))):
            address = self._paths[contents.PATHS.index(path)]
            self._call(
                "openat", contents.AT_FDCWD, address, self._rng.choice((0, 0o200000, 0o10000000)), 0, kind="directory"
            )

    def open_pipe(self) -> None:
        place = self._place().address
        self._call("pipe2", place, self._rng.choice((0, 0o4000, 0o40000)))
        self._arguments.keep("pipe", Memory(place, 4), Memory(place + 4, 4))

    def open_pair(self) -> None:
        place = self._place().address
        self._call("socketpair", 1, self._rng.choice((1, 2, 5)), 0, place)
        self._arguments.keep("socket", Memory(place, 4), Memory(place + 4, 4))

    def open_connection(self) -> None:
        """A socket that listens, one that is connected to it, and its other end."""
        rng = self._rng
        at = self._structures["address"][0]
        address = rng.choice((b"\2\0\x50\0\x7f\0\0\1" + bytes(8), b"\1\0\0name" + bytes(9), b"\1\0socket" + bytes(8)))
        family = address[0]
        listening = self._call("socket", family, 1, 0, kind="socket")
        self._call("bind", listening, at, 16, written=words(at, address))
        self._call("listen", listening, rng.choice((1, 5)))
        connecting = self._call("socket", family, rng.choice((1, 0x801)), 0, kind="socket")
        self._call("connect", connecting, at, 16)
        self._call("accept4", listening, 0, 0, 0o4000, kind="socket")

    def open_datagrams(self) -> None:
        self._call("socket", self._rng.choice((1, 2)), 2, 0, kind="socket")

    def open_polling(self) -> None:
        at = self._structures["epoll"][0]
        timer = self._call("timerfd_create", 1, 0o4000, kind="timerfd")
        event = self._call("eventfd2", 1, self._rng.choice((0, 1, 0o4000)), kind="other")
        instance = self._call("epoll_create1", 0, kind="epoll")
        for one in (timer, event):
            self._call("epoll_ctl", instance, 1, one, at)

    def open_others(self) -> None:
        self._call("memfd_create", self._paths[4], self._rng.choice((0, 1, 2, 3)), kind="file")
        self._call("signalfd4", (1 << 64) - 1, self._rng.choice(self._structures["set"]), 8, 0o4000, kind="other")
        self._call("timer_create", 1, 0, layout.result(0))
        self._call(
            "perf_event_open", self._structures["attribute"][0], 0, (1 << 64) - 1, (1 << 64) - 1, 0, kind="other"
        )

    def open_ipc(self) -> None:
        """Shared memory, semaphores and messages of System V, whose numbers begin at 0; a process; a watch."""
        self._call("shmget", 0, 0x2000, 0o1600)
        self._call("shmat", 0, 0, 0)
        self._call("semget", 1, 4, 0o1600)
        self._call("msgget", 2, 0o1600)
        self._call("pidfd_open", 1000, 0, kind="pidfd")
        watcher = self._call("inotify_init1", 0o4000, kind="inotify")
        self._call("inotify_add_watch", watcher, self._paths[contents.PATHS.index(".")], 0xFFF)

    def map_memory(self) -> None:
        address = layout.ELSEWHERE + 0x1000 * self._rng.randrange(64)
        flags = self._rng.choice((0x32, 0x31))
        self._call("mmap", address, 0x1000 * self._rng.randrange(1, 16), 3, flags, (1 << 64) - 1, 0)

    def _add(self, row: Syscall) -> None:
        rng = self._rng
        number = row.number(self.isa)
        assert number is not None, row.name
        name, arguments = row.name, self._arguments.of(row)
        if rng.random() < 0.02:
            number = rng.choice((rng.randrange(MOST_OF_ANY_NUMBER), rng.getrandbits(64)))
            name, arguments = f"{number:#x} ({syscall_name(self.isa, number)})", self._arguments.any()
        call = Call(name, number, arguments)
        if name in MADE_BY and name not in CLONING:
            place = self._place()
            call.result = place.address
            self._arguments.keep(MADE_BY[name], place)
        for _ in range(rng.choice((0, 0, 0, 1, 2))):  # a structure becomes another, or a little different
            kind = rng.choice(list(self._structures))
            address = rng.choice(self._structures[kind])
            content = contents.STRUCTURES[kind](rng)[: layout.STRIDE - 8]
            changed = words(address, content)
            call.written += changed if rng.randrange(2) else rng.sample(changed, 1)
        self.calls.append(call)

    # ---- code

    def elf(self) -> bytes:
        """The whole file: one segment, which may be read, written and executed."""
        body = self._assemble()
        assert len(body) <= layout.CODE_BYTES, f"{len(body)} bytes of code"
        body = body.ljust(layout.CODE_BYTES, b"\0") + self._memory
        ident = b"\x7fELF\2\1\1" + bytes(9)
        header = ident + struct.pack(
            "<HHIQQQIHHHHHH", 2, MACHINES[self.isa], 1, layout.CODE, 64, 0, 0, 64, 56, 1, 64, 0, 0
        )  # fmt: skip
        size = layout.CODE - layout.BASE + len(body)
        load = struct.pack("<IIQQQQQQ", 1, 7, 0, layout.BASE, layout.BASE, size, size, 0x1000)
        return (header + load).ljust(layout.CODE - layout.BASE, b"\0") + body

    def _assemble(self) -> bytes:
        encoding, code = self._encoding, bytearray(self._code)
        code[: len(encoding.jump(self._first))] = encoding.jump(self._first)
        starts, jumps = [], []
        for call in self.calls:
            starts.append(len(code))
            for address, value in call.written:
                code += encoding.store(address, value)
            # From memory first: that needs the register of the number.
            for register, one in enumerate(call.arguments, 1):
                if isinstance(one, Memory):
                    code += encoding.load_from(register, one.address, one.size)
            for register, one in enumerate(call.arguments, 1):
                if isinstance(one, int):
                    code += encoding.load(register, one)
            code += encoding.load(0, call.number) + encoding.syscall()
            if call.child_goes_to is not None:
                jumps.append((len(code), call.child_goes_to))
                code += bytes(encoding.jump_bytes)
            if call.result is not None:
                code += encoding.store_result(call.result)
        starts.append(len(code))
        code += encoding.jump(self._first - len(code)) if self._rng.random() < 0.5 else encoding.jump(0)
        for place, target in jumps:
            code[place : place + encoding.jump_bytes] = encoding.jump_if_no_result(starts[target] - place)
        return bytes(code)


def words(address: int, content: bytes) -> list[tuple[int, int]]:
    padded = content + bytes(-len(content) % 8)
    return [
        (address + place, value)
        for place, (value,) in zip(range(0, len(padded), 8), struct.iter_unpack("<Q", padded), strict=True)
    ]


def _weight(name: str) -> float:
    if name in RARE:
        return 0.15
    return 4.0 if name in FAVOURITES else 1.0


_OPENING: tuple[Callable[[RandomProgram], None], ...] = (
    RandomProgram.open_files, RandomProgram.open_directories, RandomProgram.open_pipe, RandomProgram.open_pair,
    RandomProgram.open_connection, RandomProgram.open_datagrams, RandomProgram.open_polling, RandomProgram.open_others,
    RandomProgram.open_ipc,
    RandomProgram.map_memory,
)  # fmt: skip
