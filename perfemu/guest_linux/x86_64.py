"""X8664: a kernel of x86-64, as its CPUs' registers lead to it.

Intel SDM vol. 3, "4-Level Paging and 5-Level Paging"; Documentation/arch/x86/pti.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from emulator.cpu import Level
from emulator.x86_64_system import SystemRegister
from perfemu.booted_image import BootedImage
from perfemu.guest_linux.btf import BtfProblem
from perfemu.guest_linux.kernel import KERNEL_HALF, TEXT, Extent, GuestCpu, GuestKernel, Located
from perfemu.guest_linux.memory import Descriptors, PageTables, Ram, Regime, Unreadable
from perfemu.symbols.kallsyms import addresses_by_name

KERNEL_TEXT = 0xFFFF_FFFF_8000_0000  # to the end: its code, then modules; Documentation/arch/x86/x86_64/mm.rst
_DESCRIPTORS = Descriptors(output=(1 << 52) - 1, block_mask=1 << 7, block=1 << 7)
_PAGE_SHIFT, _BITS, _BITS_OF_5_LEVELS = 12, 48, 57
_TABLES_AT = (1 << 52) - (1 << 12)  # of CR3: without PCID and caching
_LA57 = 1 << 12  # CR4
# With page table isolation a program executes with tables that map little of the kernel: those behind the kernel's own
_USER_TABLES = 1 << 12
_PER_CPU = ".data..percpu"  # which begins at address 0: GS is where a CPU has its own


class X8664:
    """perfemu.guest_linux.kernel.Architecture."""

    def __init__(self) -> None:
        self._task_at: int | None = None

    def locate(self, booted: BootedImage, cpu: GuestCpu) -> Located | None:
        """It unpacks itself, and goes where KASLR has it; then it has an entry for system calls, in its own code."""
        code = cpu.core.read_kernel_register(SystemRegister.LSTAR)
        if code < KERNEL_TEXT:
            return None
        ram = Ram(booted.ram, booted.ram_base)
        tables = next(self.tables(ram, cpu))  # all that a process ever has map the entry
        kallsyms = booted.kallsyms_around(tables.physical(code))
        symbols = addresses_by_name(kallsyms or b"")
        start = tables.physical(code) - (code - symbols.get(TEXT, code))
        return Located(Extent(start, min(start + booted.end - booted.start, booted.ram_base + len(ram.view))), symbols)

    def root(self, cpu: GuestCpu) -> int:
        return cpu.core.read_kernel_register(SystemRegister.CR3) & _TABLES_AT

    def tables(self, ram: Ram, cpu: GuestCpu) -> Iterator[PageTables]:
        regime, root = self.user_regime(cpu), self.root(cpu)
        yield PageTables(ram, root, regime)
        if root & _USER_TABLES:
            yield PageTables(ram, root & ~_USER_TABLES, regime)

    def user_regime(self, cpu: GuestCpu) -> Regime:
        has_5_levels = cpu.core.read_kernel_register(SystemRegister.CR4) & _LA57
        return Regime(_PAGE_SHIFT, _BITS_OF_5_LEVELS if has_5_levels else _BITS, _DESCRIPTORS)

    def maps_all(self, kernel: GuestKernel, tables: PageTables, cpu: GuestCpu) -> bool:
        """What a program executes with has the kernel's text at most, and no task."""
        for base in _bases(cpu):
            try:
                task = int.from_bytes(tables.read(base + self.task_at(kernel) & (1 << 64) - 1, 8), "little")
                tables.physical(task)
            except Unreadable:
                continue
            return task >= KERNEL_HALF
        return False

    def running(self, kernel: GuestKernel) -> _Running:
        return _Running(kernel, self.task_at(kernel))

    def task_at(self, kernel: GuestKernel) -> int:
        """Where a CPU has its task, from GS. Raises BtfProblem."""
        if self._task_at is None:
            try:  # since Linux 6.2
                hot = kernel.btf.variable(_PER_CPU, "pcpu_hot")
                self._task_at = hot + kernel.member("pcpu_hot", "current_task").offset
            except BtfProblem:
                self._task_at = kernel.btf.variable(_PER_CPU, "current_task")
        return self._task_at


def _bases(cpu: GuestCpu) -> Iterator[int]:
    """What the kernel's GS may be: around its entries and exits the program's is there, and SWAPGS has the other."""
    names = [SystemRegister.GS_BASE, SystemRegister.KERNEL_GS_BASE]
    for name in names if cpu.level == Level.KERNEL else names[1:]:
        base = cpu.core.read_kernel_register(name)
        if base >= KERNEL_HALF:
            yield base


class _Running:
    def __init__(self, kernel: GuestKernel, task_at: int) -> None:
        self._kernel = kernel
        self._task_at = task_at
        self._last: dict[int, int] = {}  # by CPU: the task that it executed when we looked last

    def task(self, cpu: GuestCpu) -> int | None:
        for base in _bases(cpu):
            try:
                task = self._kernel.word(base + self._task_at & (1 << 64) - 1)
            except Unreadable:
                continue
            if task >= KERNEL_HALF and self._kernel.runs_on(task, cpu):
                self._last[cpu.number] = task
                return task
        if cpu.level == Level.USER:
            raise Unreadable("its address is not where GS leads")
        return self._last.get(cpu.number)
