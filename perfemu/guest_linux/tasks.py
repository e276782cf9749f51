"""Tasks: which task a CPU executes, whatever it is in the midst of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from emulator.cpu import Level
from emulator.sysregs import SysReg
from perfemu.guest_linux.kernel import KERNEL_HALF, TABLES_AT, TTBR0_EL1, GuestCpu, GuestKernel
from perfemu.guest_linux.memory import Unreadable

SP_EL0 = SysReg(3, 0, 4, 1, 0).encoding
TPIDR_EL1 = SysReg(3, 0, 13, 0, 4).encoding
# arch/arm64/kernel/process.c: which task a CPU's next exception from user mode belongs to
_ENTRY_TASK, _PER_CPU = "__entry_task", ".data..percpu"
_PAGE = 4096
_MOST_SEARCHES = 16


@dataclass(frozen=True, slots=True)
class GuestTask:
    """A thread, as its kernel knows it."""

    address: int  # of its struct task_struct
    pid: int
    tid: int
    parent: int  # its pid
    comm: str
    mm: int  # address of its struct mm_struct; 0: it is the kernel's own
    start_ns: int  # tells apart who have a tid one after the other


IDLE = GuestTask(0, 0, 0, 0, "swapper", 0, 0)


class Tasks:
    """`current` says who executes."""

    def __init__(self, kernel: GuestKernel) -> None:
        self._kernel = kernel
        self._entry_task: int | None = kernel.symbols.get(_ENTRY_TASK)  # without a CPU's offset
        self._searches = 0
        self._last: dict[int, int] = {}  # by CPU: the task that it executed when we looked last

    def current(self, cpu: GuestCpu) -> GuestTask:
        """SP_EL0 is it while the kernel executes, but for a few instructions at its entry and its exit, where a
        program's stack pointer is there. Raises Unreadable and BtfProblem.
        """
        if cpu.level == Level.KERNEL:
            address = cpu.core.read_kernel_register(SP_EL0)
            if address >= KERNEL_HALF and self._executes_on(address, cpu):
                self._last[cpu.number] = address
                return self._task(address)
        task = self._entering(cpu)
        if task is None:
            return IDLE
        self._last[cpu.number] = task
        return self._task(task)

    def _entering(self, cpu: GuestCpu) -> int | None:
        """None while the CPU has yet to execute a task."""
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
                if task < KERNEL_HALF or not self._executes_on(task, cpu):
                    continue
                mm = kernel.value(task, "task_struct", "mm")
                if kernel.tables.physical(kernel.value(mm, "mm_struct", "pgd")) == tables:
                    yield page + variable
            except Unreadable:
                continue

    def _executes_on(self, task: int, cpu: GuestCpu) -> bool:
        try:
            return self._kernel.value(task, "task_struct", "thread_info.cpu") == cpu.number
        except Unreadable:
            return False

    def _task(self, address: int) -> GuestTask:
        value, kernel = self._kernel.value, self._kernel
        tid = value(address, "task_struct", "pid")
        if not tid:
            return IDLE
        try:
            parent = value(value(address, "task_struct", "real_parent"), "task_struct", "tgid")
        except Unreadable:
            parent = 0
        return GuestTask(
            address,
            value(address, "task_struct", "tgid"),
            tid,
            parent,
            kernel.text(address, "task_struct", "comm"),
            value(address, "task_struct", "mm"),
            value(address, "task_struct", "start_time"),
        )
