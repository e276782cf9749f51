"""Who hears of a board's system calls: of code at chosen places, on any CPU, and of each SVC at EL0."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from emulator.board.observers import Observers
from emulator.clock import Clock
from emulator.cpu import Cpu

LOOK_NS = 1_000_000  # between looks at a kernel that begins, which executes for longer before its first program does

BreakAt = Callable[[Collection[int]], None]
"""Virtual addresses: before an instruction there executes, `reached` is called. In place of those before."""


class CallWatcher(Protocol):
    """It only looks: registers, and memory."""

    def starts(self, break_at: BreakAt) -> None:
        """Before the board does."""

    def looked(self, cpu: Cpu) -> bool:
        """Asked again and again, where the calls of programs are no exits, until its places are known: whether they
        are."""

    def called(self, cpu: Cpu) -> None:
        """SVC at EL0 has retired; its exception is yet to be taken."""

    def reached(self, cpu: Cpu) -> None:
        """PC is at one of those places, or at a breakpoint of somebody else."""


class Stops(Protocol):
    def watch_code(self, addresses: Collection[int]) -> None:
        """Who only looks is told before an instruction there executes, instead of those before."""


class CalledCpu(Protocol):
    calls: CallWatcher | None

    @property
    def debug(self) -> Stops: ...


def tell_of_calls(calls: CallWatcher, cpus: Sequence[CalledCpu]) -> None:
    """From now on."""

    def break_at(addresses: Collection[int]) -> None:
        for each in cpus:
            each.debug.watch_code(addresses)

    for each in cpus:
        each.calls = calls
    calls.starts(break_at)


def let_look(calls: CallWatcher, cpu: Cpu, clock: Clock, observers: Observers) -> None:
    """As `CallWatcher.looked` has it, at `cpu`."""

    def look() -> None:
        if not calls.looked(cpu):
            observers.at_cycle(cpu.number, clock.cycle_at(clock.at(cpu.core.cycles) + LOOK_NS), look)

    look()
