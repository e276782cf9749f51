"""DebugRegisters: the hardware breakpoints and watchpoints that a CPU has at the moment, and who hears of their hits.

As arch_install_hw_breakpoint() has them (arch/*/kernel/hw_breakpoint.c): of the task that runs, and the CPU's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulator.cpu import Cpu, Level

HW_BREAKPOINT_R, HW_BREAKPOINT_W, HW_BREAKPOINT_RW, HW_BREAKPOINT_X = 1, 2, 3, 4  # uapi/linux/hw_breakpoint.h
_USER = 1 << Level.USER


@dataclass(frozen=True, slots=True, eq=False)
class HwBreakpoint:
    """What one slot watches: an instruction's address, or the bytes of data from there (`length`).

    `hit` hears of it as the ISA takes the exception: before an instruction that is watched; before an access to data on
    AArch64, behind the instruction that has made it on x86-64. An instruction hits one breakpoint once, however many of
    its accesses do; a REP, once in each iteration.
    """

    address: int
    length: int  # bytes
    type: int  # bits of HW_BREAKPOINT_*
    hit: Callable[[Cpu], None]
    of_guest: bool = True  # rather than of who measures


class DebugRegisters:
    """Of one CPU. Installing and removing changes nothing for the guest."""

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu
        self._breakpoints: list[HwBreakpoint] = []
        self._watchpoints: list[HwBreakpoint] = []  # in the order that the core has

    def install(self, breakpoint: HwBreakpoint) -> None:
        """Between two runs of the core."""
        self._of(breakpoint).append(breakpoint)
        self._tell(breakpoint)

    def uninstall(self, breakpoint: HwBreakpoint) -> None:
        self._of(breakpoint).remove(breakpoint)
        self._tell(breakpoint)

    def _of(self, breakpoint: HwBreakpoint) -> list[HwBreakpoint]:
        return self._breakpoints if breakpoint.type & HW_BREAKPOINT_X else self._watchpoints

    def _tell(self, changed: HwBreakpoint) -> None:
        core = self._cpu.core
        if changed.type & HW_BREAKPOINT_X:
            core.set_breakpoints([each.address for each in self._breakpoints])
            return
        core.set_watchpoints(
            [(each.address, each.length, each.type, _USER, _USER, False, -1) for each in self._watchpoints]
        )

    def reached_instruction(self) -> None:
        """The core has stopped with BREAKPOINT, here or for another reason."""
        pc = self._cpu.core.pc
        for each in [each for each in self._breakpoints if each.address == pc]:
            each.hit(self._cpu)

    def has_passed_guests(self) -> bool:
        """Whether the next instruction has hit a guest's breakpoint, and is to be executed now: x86's RFLAGS.RF."""
        passed = self._cpu.core.passed_breakpoint
        if passed is None or passed != self._cpu.core.pc:
            return False
        return any(each.of_guest and each.address == passed for each in self._breakpoints)

    def reached_data(self) -> None:
        """The core has stopped with WATCHPOINT."""
        hits = self._cpu.core.watchpoint_hits
        for each in [each for number, each in enumerate(self._watchpoints) if hits >> number & 1]:
            each.hit(self._cpu)
