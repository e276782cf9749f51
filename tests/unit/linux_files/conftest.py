"""A guest's file tree over small host directories, and a task that has memory and descriptors but no CPU."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from calls import read_of, result_of
from emulator.clock import Clock
from emulator.linux.arch import architecture
from emulator.linux.configuration import LinuxConfig
from emulator.linux.errors import EFAULT, LinuxError
from emulator.linux.fs.beneath import OpenBeneath
from emulator.linux.fs.destination import KernelBuffer
from emulator.linux.fs.file import FileTable
from emulator.linux.fs.file_tree import FileTree
from emulator.linux.mm.mapping import FileContent, MappedFile
from emulator.linux.process.credentials import Credentials
from emulator.linux.random import Random
from emulator.linux.sched.waiting import Sleep, Wake
from emulator.linux.signals.signal import SignalInfo, SignalState
from emulator.linux.syscalls import table
from emulator.linux.syscalls.failures import fail


class NoPages:
    """A page cache in which nothing is mapped, and which remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[MappedFile, int, bytes]] = []

    def reserve(self, count: int) -> bool:
        return True

    def written(self, identity: MappedFile, offset: int, data: bytes) -> None:
        self.told.append((identity, offset, data))

    def truncated(self, identity: MappedFile, size: int) -> None:
        self.told.append((identity, size, b""))

    def read(self, content: FileContent, offset: int, size: int) -> bytes:
        raise AssertionError("no page is dirty")

    def file(self, content: FileContent) -> SimpleNamespace:
        return SimpleNamespace(dirty=set())


class Memory:
    """64 KiB of user memory from 0x1000 on."""

    BASE = 0x1000
    layout = SimpleNamespace(task_size=1 << 47)

    def __init__(self) -> None:
        self.data = bytearray(1 << 16)

    def _offset(self, address: int, size: int) -> int:
        if not self.BASE <= address <= self.BASE + len(self.data) - size:
            raise LinuxError(EFAULT, f"{address:#x}")
        return address - self.BASE

    def read(self, address: int, size: int) -> bytes:
        offset = self._offset(address, size)
        return bytes(self.data[offset : offset + size])

    def read_some(self, address: int, size: int) -> bytes:
        end = self.BASE + len(self.data)
        return self.read(address, min(size, end - address)) if self.BASE <= address < end else b""

    def write(self, address: int, data: bytes) -> None:
        offset = self._offset(address, len(data))
        self.data[offset : offset + len(data)] = data

    def copy_out(self, address: int, data: bytes) -> int:
        arrives = data[: max(self.BASE + len(self.data) - address, 0)] if address >= self.BASE else b""
        if arrives:
            self.write(address, arrives)
        return len(arrives)


@dataclass
class Kernel:
    """What the file half asks of a kernel."""

    messages: list[str]
    clock: Clock
    signals: list[SignalInfo] = field(default_factory=list)
    cycles: int = 0  # ns
    terminals: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(told_of=lambda process: (0, -1)))

    def name_once(self, message: str) -> None:
        if message not in self.messages:
            self.messages.append(message)

    def send_signal(self, task: object, info: SignalInfo) -> None:
        self.signals.append(info)

    def sleep(self, sleep: Sleep) -> Wake:
        """Nobody else is there: a timeout passes, and where there is none the task is ended."""
        if sleep.until_ns is None:
            self.name_once(f"{sleep.what} waits for what nobody can bring")
            return Wake.SIGNAL
        self.cycles = sleep.until_ns
        return Wake.TIMEOUT


@dataclass(slots=True)
class Guest:
    """A host with directories cwd, tmp and elsewhere, and a guest for which the first two are cwd and /tmp."""

    host: Path
    tree: FileTree
    task: SimpleNamespace
    messages: list[str]

    @property
    def cwd(self) -> Path:
        return self.host / "cwd"

    @property
    def tmp(self) -> Path:
        return self.host / "tmp"

    @property
    def elsewhere(self) -> Path:
        return self.host / "elsewhere"

    def open(self, path: object, flags: int = 0, mode: int = 0o644) -> int:
        return self.task.files.install(self.tree.open(self.task, str(path), flags, mode, str(self.cwd)))

    def read(self, path: object) -> bytes:
        return read_of(self.tree.open(self.task, str(path), 0, 0, str(self.cwd)), self.task, 1 << 20)

    def write(self, path: object, data: bytes, flags: int = 0o1101) -> None:
        """O_WRONLY | O_CREAT | O_TRUNC, unless said otherwise."""
        self.tree.open(self.task, str(path), flags, 0o644, str(self.cwd)).write(self.task, data)

    def start(self):
        return self.tree.directory(str(self.cwd))

    def names(self, path: object) -> list[str]:
        """The names in a directory, in getdents64's order, without . and .."""
        buffer = KernelBuffer(1 << 16)
        self.tree.open(self.task, str(path), 0, 0, str(self.cwd)).next_entries(buffer)
        records = buffer.data
        names = []
        while records:
            (length,) = struct.unpack_from("<H", records, 16)
            names.append(records[19:length].split(b"\0")[0].decode())
            records = records[length:]
        assert names[:2] == [".", ".."]
        return names[2:]

    def stat(self, path: object, *, follow: bool = True):
        return self.tree.find(self.start(), str(path), follow=follow).node.attributes()


@pytest.fixture
def make_guest(tmp_path):
    """Make a guest; keyword arguments go to its LinuxConfig."""

    def make(isa: str = "aarch64", open_beneath: OpenBeneath | None = None, **options) -> Guest:
        for name in ("cwd", "tmp", "elsewhere"):
            (tmp_path / name).mkdir(exist_ok=True)
        messages: list[str] = []
        clock = Clock(lambda: kernel.cycles, 1_000_000_000)
        kernel = Kernel(messages, clock)
        arch = architecture(isa)
        tree = FileTree(
            now=clock.realtime_ns,
            random=Random(1),
            message=kernel.name_once,
            pages=NoPages(),
            open_flags=arch.open_flags,
            overlay_path=str(tmp_path / "tmp"),
            config=LinuxConfig(**options),
            open_beneath=open_beneath,
        )
        tree.allow_writing(str(tmp_path / "cwd"))
        task = SimpleNamespace(
            pid=1000,
            tid=1000,
            mm=Memory(),
            files=FileTable(),
            fs=SimpleNamespace(system=tree, cwd=str(tmp_path / "cwd"), umask=0o022),
            kernel=kernel,
            clock=clock,
            architecture=arch,
            signals=SignalState(),
            credentials=Credentials(),
            nice=0,
            slack_ns=50_000,
            sleeper=lambda *asked: None,
        )
        return Guest(tmp_path, tree, task, messages)

    return make


@pytest.fixture
def guest(make_guest) -> Guest:
    return make_guest()


class Program:
    """Makes syscalls of one guest by name."""

    def __init__(self, guest) -> None:
        self.guest = guest
        self.memory = guest.task.mm
        self.memory.read_string = self._read_string
        self._calls = {row.name: row.compile() for row in table.load()}

    def _read_string(self, address: int, limit: int) -> bytes:
        return self.memory.read(address, limit).split(b"\0")[0]

    def __call__(self, name: str, *arguments: int) -> int:
        """The result, or a negative errno."""
        padded = tuple(argument & (1 << 64) - 1 for argument in arguments) + (0,) * (6 - len(arguments))
        try:
            return result_of(self._calls[name](self.guest.task, padded), self.guest.task.kernel.sleep)
        except LinuxError as error:
            return fail(self.guest.task, error)

    def path(self, text: str, at: int = 0x2000) -> int:
        self.memory.write(at, os.fsencode(text) + b"\0")
        return at

    def data(self, data: bytes, at: int = 0x4000) -> int:
        self.memory.write(at, data)
        return at


@pytest.fixture
def program(guest) -> Program:
    return Program(guest)
