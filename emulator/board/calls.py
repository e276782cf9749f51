"""Who hears of a board's system calls: of each SVC at EL0, and of code at chosen places, on any CPU."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from emulator.cpu import Cpu

BreakAt = Callable[[Collection[int]], None]
"""Virtual addresses: before an instruction there executes, `reached` is called. In place of those before."""


class CallWatcher(Protocol):
    """It only looks: registers, and memory."""

    def starts(self, break_at: BreakAt) -> None:
        """Before the board does."""

    def called(self, cpu: Cpu) -> None:
        """SVC at EL0 has retired; its exception is yet to be taken."""

    def reached(self, cpu: Cpu) -> None:
        """PC is at one of those places, or at a breakpoint of somebody else."""
