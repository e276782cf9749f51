"""Aarch64: a kernel of AArch64, as its CPUs' registers lead to it: Arm ARM DDI 0487, "The AArch64 Virtual Memory System
Architecture"."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.cpu import Level
from emulator.sysregs import SysReg
from perfemu.booted_image import BootedImage
from perfemu.guest_linux.kernel import KERNEL_HALF, Extent, GuestCpu, GuestKernel, Located
from perfemu.guest_linux.memory import Descriptors, PageTables, Ram, Regime, Unreadable
from perfemu.symbols.kallsyms import addresses_by_name

TTBR0_EL1, TTBR1_EL1, TCR_EL1 = (SysReg(3, 0, 2, 0, number).encoding for number in range(3))
SP_EL0 = SysReg(3, 0, 4, 1, 0).encoding
TPIDR_EL1 = SysReg(3, 0, 13, 0, 4).encoding
TABLES_AT = (1 << 48) - 2  # BADDR of a TTBR: without the ASID, and CnP
_DESCRIPTORS = Descriptors(output=(1 << 48) - 1, block_mask=2, block=0)
_KERNEL_GRANULES, _USER_GRANULES = {1: 14, 2: 12, 3: 16}, {0: 12, 1: 16, 2: 14}  # TCR_EL1.TG1, TG0
# While a program executes, kernels may hide behind tables that map an entry alone (KPTI); their own lie a few pages on.
_MOST_PAGES_BEHIND = 4
# arch/arm64/kernel/process.c: which task a CPU's next exception from user mode belongs to
_ENTRY_TASK, _PER_CPU = "__entry_task", ".data..percpu"
_PAGE = 4096
_MOST_SEARCHES = 16


class Aarch64:
    """perfemu.guest_linux.kernel.Architecture."""

    def locate(self, booted: BootedImage, cpu: GuestCpu) -> Located | None:
        """It is where it has been loaded."""
        if cpu.level == Level.KERNEL and cpu.core.pc < KERNEL_HALF:
            return None
        return Located(Extent(booted.start, booted.end), addresses_by_name(booted.kallsyms or b""))

    def root(self, cpu: GuestCpu) -> int:
        return cpu.core.read_kernel_register(TTBR1_EL1) & TABLES_AT

    def tables(self, ram: Ram, cpu: GuestCpu) -> Iterator[PageTables]:
        tcr = cpu.core.read_kernel_register(TCR_EL1)
        regime = Regime(_KERNEL_GRANULES.get(tcr >> 30 & 3, 12), 64 - (tcr >> 16 & 0x3F), _DESCRIPTORS)
        for behind in range(_MOST_PAGES_BEHIND + 1):
            yield PageTables(ram, self.root(cpu) + (behind << regime.page_shift), regime)

    def user_regime(self, cpu: GuestCpu) -> Regime:
        tcr = cpu.core.read_kernel_register(TCR_EL1)
        return Regime(_USER_GRANULES.get(tcr >> 14 & 3, 12), 64 - (tcr & 0x3F), _DESCRIPTORS)

    def maps_all(self, kernel: GuestKernel, tables: PageTables, cpu: GuestCpu) -> bool:
        """The tables of an entry map it elsewhere."""
        return True

    def running(self, kernel: GuestKernel) -> _Running:
        return _Running(kernel)


class _Running:
    def __init__(self, kernel: GuestKernel) -> None:
        self._kernel = kernel
        self._entry_task: int | None = kernel.symbols.get(_ENTRY_TASK)  # without a CPU's offset
        self._searches = 0
        self._last: dict[int, int] = {}  # by CPU: the task that it executed when we looked last

    def task(self, cpu: GuestCpu) -> int | None:
        """SP_EL0 is it while the kernel executes, but for a few instructions at its entry and its exit, where a
        program's stack pointer is there."""
        found = cpu.core.read_kernel_register(SP_EL0) if cpu.level == Level.KERNEL else None
        if found is None or found < KERNEL_HALF or not self._kernel.runs_on(found, cpu):
            found = self._entering(cpu)
        if found is not None:
            self._last[cpu.number] = found
        return found

    def _entering(self, cpu: GuestCpu) -> int | None:
        offset = cpu.core.read_kernel_register(TPIDR_EL1)
        if self._entry_task is None and cpu.level == Level.USER and self._searches < _MOST_SEARCHES:
            self._searches += 1
            self._entry_task = next(self._places(cpu, offset), None)
        if self._entry_task is None:
            if cpu.level == Level.USER:
                raise Unreadable(f"where each CPU keeps its task ({_ENTRY_TASK}) is not found")
            return self._last.get(cpu.number)
        return self._kernel.word(self._entry_task + offset & (1 << 64) - 1) or None

    def _places(self, cpu: GuestCpu, offset: int) -> Iterator[int]:
        """Where the section of variables that each CPU has may begin: on a page of the image; and there is the task
        of what executes, a program.
        """
        kernel, image = self._kernel, self._kernel.image
        variable = kernel.btf.variable(_PER_CPU, _ENTRY_TASK)
        tables = cpu.core.read_kernel_register(TTBR0_EL1) & TABLES_AT
        for page in range(-(-image.start // _PAGE) * _PAGE, image.stop, _PAGE):
            try:
                task = kernel.word(page + variable + offset & (1 << 64) - 1)
                if task < KERNEL_HALF or not kernel.runs_on(task, cpu):
                    continue
                mm = kernel.value(task, "task_struct", "mm")
                if kernel.tables.physical(kernel.value(mm, "mm_struct", "pgd")) == tables:
                    yield page + variable
            except Unreadable:
                continue
