"""DR0 to DR3 and DR7 of an x86-64 task as its tracer writes them: hardware breakpoints (arch/x86/kernel/ptrace.c)."""

from __future__ import annotations

from functools import partial

from emulator.arch.debug_control import ACCESSED, BREAKPOINTS, EXECUTED, STORED, condition, is_enabled
from emulator.cpu import Cpu
from emulator.linux.debug_registers import HW_BREAKPOINT_RW, HW_BREAKPOINT_W, HW_BREAKPOINT_X
from emulator.linux.errors import EINVAL, EIO, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SIGTRAP, TRAP_HWBKPT, SignalInfo
from emulator.linux.signals.signal_delivery import force
from emulator.linux.user_breakpoints import Place, UserBreakpoint

CONTROL = 7
RESERVED = 0xFFFF_FFFF_0000_FC00  # bits of DR7 that are not kept
WORD = 8
_TYPES = {EXECUTED: HW_BREAKPOINT_X, STORED: HW_BREAKPOINT_W, ACCESSED: HW_BREAKPOINT_RW}


class TaskDebugRegisters:
    """thread.ptrace_bps and ptrace_dr7. Each register that was ever written holds a slot, enabled or not."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._breakpoints: list[UserBreakpoint | None] = [None] * BREAKPOINTS
        self._control = 0

    def read(self, number: int) -> int:
        if number == CONTROL:
            return self._control
        found = self._breakpoints[number] if number < BREAKPOINTS else None
        return 0 if found is None else found.place.address

    def write(self, number: int, value: int) -> None:
        """LinuxError: EIO for DR4 and DR5, else as perf refuses what cannot be watched."""
        if number == CONTROL:
            self._write_control(value & ~RESERVED)
        elif number < BREAKPOINTS:
            known = self._breakpoints[number]
            place = Place(0, 1, HW_BREAKPOINT_W, True) if known is None else known.place
            self._put(number, place._replace(address=value))
        else:
            raise LinuxError(EIO, f"DR{number} cannot be written")

    def _write_control(self, value: int) -> None:
        """All of them or, where one cannot be, none (ptrace_write_dr7)."""
        before, self._control = self._control, value
        try:
            self._apply()
        except LinuxError:
            self._control = before
            self._apply()
            raise

    def _apply(self) -> None:
        for number, known in enumerate(self._breakpoints):
            if is_enabled(self._control, number):
                self._put(number, self._place(number, 0 if known is None else known.place.address))
            elif known is not None:
                self._put(number, known.place._replace(disabled=True))

    def _place(self, number: int, address: int) -> Place:
        """arch_bp_generic_fields()."""
        kind, length = condition(self._control, number)
        type = _TYPES.get(kind)
        if type is None or (type == HW_BREAKPOINT_X and length != 1):
            raise LinuxError(EINVAL, f"DR7 {self._control:#x}: breakpoint {number} is none that user mode has")
        return Place(address, WORD if type == HW_BREAKPOINT_X else length, type)

    def _put(self, number: int, place: Place) -> None:
        known = self._breakpoints[number]
        if known is not None:
            known.modify(place)
            return
        kernels = self._task.kernel.user_breakpoints
        if kernels is None:
            raise LinuxError(EIO, "there are no hardware breakpoints without perf events")
        self._breakpoints[number] = kernels.register(self._task, place, partial(self._hit, number))

    def _hit(self, number: int, cpu: Cpu) -> None:
        """ptrace_triggered() and exc_debug_user()."""
        self._task.debug_status |= 1 << number
        force(self._task, SignalInfo(SIGTRAP, TRAP_HWBKPT, cpu.core.pc, trap_number=1))

    def flush(self) -> None:
        for known in self._breakpoints:
            if known is not None:
                known.unregister()
        self._breakpoints, self._control = [None] * BREAKPOINTS, 0


def debug_registers(task: Task) -> TaskDebugRegisters:
    """Those of a task, which stay with it whoever traces it."""
    if not isinstance(task.ptrace_breakpoints, TaskDebugRegisters):
        task.ptrace_breakpoints = TaskDebugRegisters(task)
    return task.ptrace_breakpoints
