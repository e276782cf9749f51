"""What a debugger outside has to do with a CPU, whatever its architecture: where that stops for it, and where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from emulator.cpu import ExitReason, Level

EVERYONE = 1 << Level.USER | 1 << Level.KERNEL


@dataclass(frozen=True, slots=True)
class Watched:
    """Data addresses, and who may not reach them unnoticed."""

    address: int
    size: int
    accesses: int  # bits: 1 loads, 2 stores
    levels: int = EVERYONE  # bits 1 << Level: whose accesses


@dataclass(frozen=True, slots=True)
class Place:
    """Where a CPU is in its guest's work: that comes back behind an interrupt."""

    pc: int
    stack: int
    level: int
    tables: int  # of user mode: one process is not another


class Stops(Protocol):
    """Of one CPU."""

    @property
    def pc(self) -> int:
        """The virtual address of the next instruction."""

    @property
    def place(self) -> Place: ...

    @property
    def hits_outside_breakpoint(self) -> bool:
        """After BREAKPOINT: whether a debugger's is there."""

    @property
    def outside_hit(self) -> Watched | None:
        """After WATCHPOINT: which of the debugger's it was."""

    def break_outside(self, addresses: set[int]) -> None:
        """A debugger's breakpoints are these, at virtual addresses of whatever address space and level."""

    def watch_outside(self, watched: list[Watched]) -> None:
        """... and its watchpoints."""

    def came_by_interrupt(self, reason: ExitReason, before: Place, has_retired: bool) -> bool:
        """Behind an exit of a CPU that steps, and was at another place: whether an interrupt has come first."""
