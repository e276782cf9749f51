"""GuestKernel: a Linux kernel that executes: its memory, and where its structures have their members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from emulator.cpu import Level
from perfemu.booted_image import BootedImage
from perfemu.guest_linux.btf import Btf, Member
from perfemu.guest_linux.memory import PageTables, Ram, Regime, Unreadable

KERNEL_HALF = 1 << 63
TEXT = "_stext"


class CpuCore(Protocol):
    @property
    def pc(self) -> int: ...
    def read_kernel_register(self, number: int) -> int: ...


class GuestCpu(Protocol):
    """What is asked of a CPU."""

    @property
    def number(self) -> int: ...
    @property
    def core(self) -> CpuCore: ...
    @property
    def level(self) -> Level: ...


@dataclass(frozen=True, slots=True)
class Extent:
    """Of the image in RAM: physical addresses."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Located:
    """Where a kernel is that has mapped itself, and its symbols: name -> address of those in its own memory."""

    image: Extent
    symbols: Mapping[str, int]


class Running(Protocol):
    """Which task a CPU executes, whatever it is in the midst of."""

    def task(self, cpu: GuestCpu) -> int | None:
        """The address of its struct task_struct; None while it has yet to execute one. Raises Unreadable and
        BtfProblem."""


class Architecture(Protocol):
    """What depends on the instruction set: which registers lead to tables and tasks."""

    def locate(self, booted: BootedImage, cpu: GuestCpu) -> Located | None:
        """None while the kernel has yet to map itself. Raises Unreadable."""

    def root(self, cpu: GuestCpu) -> int:
        """What changes with the kernel's tables."""

    def tables(self, ram: Ram, cpu: GuestCpu) -> Iterator[PageTables]:
        """What the kernel's may be. While a program executes it may hide behind tables that map an entry alone."""

    def user_regime(self, cpu: GuestCpu) -> Regime: ...

    def maps_all(self, kernel: GuestKernel, tables: PageTables, cpu: GuestCpu) -> bool:
        """Whether tables that map the kernel's text map the rest of it, too. Raises Unreadable for no."""

    def running(self, kernel: GuestKernel) -> Running: ...


class GuestKernel:
    """Raises BtfProblem, Unreadable."""

    def __init__(self, ram: Ram, located: Located, architecture: Architecture, cpu: GuestCpu) -> None:
        image = located.image
        btf = Btf.find(ram.read(image.start, image.end - image.start))
        if btf is None:
            raise Unreadable("it carries no types of its own (CONFIG_DEBUG_INFO_BTF)")
        if TEXT not in located.symbols:
            raise Unreadable(f"its symbols (CONFIG_KALLSYMS) have no {TEXT}")
        self.ram = ram
        self.btf = btf
        self.symbols = located.symbols
        self.architecture = architecture
        self.user_regime = architecture.user_regime(cpu)
        self._image = image
        self._members: dict[tuple[str, str], Member] = {}
        self.tables = PageTables(ram, 0, self.user_regime)  # where nothing is found
        self._seen_root: int | None = None

    def look(self, cpu: GuestCpu) -> None:
        """Before anything is read as `cpu` is now. Raises Unreadable while it has no tables."""
        root = self.architecture.root(cpu)
        if root != self._seen_root or not self.tables.root:
            self._seen_root = root
            self.tables = self._found_tables(cpu) or self.tables
            self.user_regime = self.architecture.user_regime(cpu)
        if not self.tables.root:
            raise Unreadable("its page tables are not found")

    def _found_tables(self, cpu: GuestCpu) -> PageTables | None:
        for tables in self.architecture.tables(self.ram, cpu):
            try:
                text = tables.physical(self.symbols[TEXT])
                if self._image.start <= text < self._image.end and self.architecture.maps_all(self, tables, cpu):
                    return tables
            except Unreadable:
                continue
        return None

    def runs_on(self, task: int, cpu: GuestCpu) -> bool:
        """Whether the task at that address is one of that CPU's."""
        try:
            return self.value(task, "task_struct", "thread_info.cpu") == cpu.number
        except Unreadable:
            return False

    @property
    def image(self) -> range:
        """Where it sees its own image."""
        text = self.symbols[TEXT]
        start = text - (self.tables.physical(text) - self._image.start)
        return range(start, start + self._image.end - self._image.start)

    def image_bytes(self) -> bytes:
        return self.ram.read(self._image.start, self._image.end - self._image.start)

    def member(self, structure: str, path: str) -> Member:
        found = self._members.get((structure, path))
        if found is None:
            found = self._members[structure, path] = self.btf.member(structure, path)
        return found

    def raw(self, address: int, structure: str, path: str) -> bytes:
        """A member of the structure there. Raises Unreadable and BtfProblem."""
        offset, size = self.member(structure, path)
        if address < KERNEL_HALF:
            raise Unreadable(f"{address:#x} is no address of the kernel's")
        return self.tables.read(address + offset, size)

    def value(self, address: int, structure: str, path: str) -> int:
        """The same as a number."""
        return int.from_bytes(self.raw(address, structure, path), "little")

    def text(self, address: int, structure: str, path: str) -> str:
        """The same, of characters."""
        return self.raw(address, structure, path).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")

    def word(self, address: int) -> int:
        if address < KERNEL_HALF:
            raise Unreadable(f"{address:#x} is no address of the kernel's")
        return int.from_bytes(self.tables.read(address, 8), "little")
