"""GuestKernel: a Linux kernel that executes: its memory, and where its structures have their members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from emulator.cpu import Level
from emulator.sysregs import SysReg
from perfemu.guest_linux.btf import Btf, Member
from perfemu.guest_linux.memory import PageTables, Ram, Regime, Unreadable

TTBR0_EL1, TTBR1_EL1, TCR_EL1 = (SysReg(3, 0, 2, 0, number).encoding for number in range(3))
TABLES_AT = (1 << 48) - 2  # BADDR of a TTBR: without the ASID, and CnP
KERNEL_HALF = 1 << 63
TEXT = "_stext"
# While a program executes, kernels may hide behind tables that map an entry alone (KPTI); their own lie a few pages on.
_MOST_PAGES_BEHIND = 4


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


class GuestKernel:
    """`symbols`: name -> address of those in its own memory. Raises BtfProblem, Unreadable."""

    def __init__(self, ram: Ram, image: Extent, symbols: Mapping[str, int]) -> None:
        btf = Btf.find(ram.read(image.start, image.end - image.start))
        if btf is None:
            raise Unreadable("it carries no types of its own (CONFIG_DEBUG_INFO_BTF)")
        if TEXT not in symbols:
            raise Unreadable(f"its symbols (CONFIG_KALLSYMS) have no {TEXT}")
        self.ram = ram
        self.btf = btf
        self.symbols = symbols
        self.user_regime = Regime(12, 48)
        self._image = image
        self._members: dict[tuple[str, str], Member] = {}
        self.tables = PageTables(ram, 0, Regime(12, 48))  # where nothing is found
        self._seen_root: int | None = None

    def look(self, cpu: GuestCpu) -> None:
        """Before anything is read as `cpu` is now. Raises Unreadable while it has no tables."""
        root = cpu.core.read_kernel_register(TTBR1_EL1) & TABLES_AT
        if root != self._seen_root:
            tcr = cpu.core.read_kernel_register(TCR_EL1)
            self._seen_root = root
            self.tables = self._found_tables(root, Regime.of_kernel(tcr)) or self.tables
            self.user_regime = Regime.of_user(tcr)
        if not self.tables.root:
            raise Unreadable("its page tables are not found")

    def _found_tables(self, root: int, regime: Regime) -> PageTables | None:
        for behind in range(_MOST_PAGES_BEHIND + 1):
            tables = PageTables(self.ram, root + (behind << regime.page_shift), regime)
            try:
                text = tables.physical(self.symbols[TEXT])
            except Unreadable:
                continue
            if self._image.start <= text < self._image.end:
                return tables
        return None

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
