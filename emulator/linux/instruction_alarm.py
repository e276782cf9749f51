"""InstructionAlarm: calls when all CPUs together have executed so many instructions. No guest can tell of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from emulator.linux.sched.timers import Timer
from emulator.linux.tracepoints import Tracepoints
from emulator.probes import Probe

MOST_PER_CYCLE = 16  # instructions that any modelled core may retire in one


class Kernel(Protocol):
    """What executes (a ``Kernel``)."""

    @property
    def cpus(self) -> list[Cpu]: ...
    @property
    def tracepoints(self) -> Tracepoints: ...

    def current(self, cpu: Cpu) -> Task | None:
        """The task of that CPU; None while it idles."""

    def add_timer(self, cycle: int, callback: Callable[[], None], cpu: Cpu | None = None) -> Timer: ...


def executed(cpus: Sequence[Cpu]) -> int:
    """Instructions of all CPUs. Not while one executes."""
    return sum(cpu.core.total(Probe.INST_RETIRED) for cpu in cpus)


class InstructionAlarm:
    """Timers that look whether it is time.

    With one CPU that retires no more than one instruction in a cycle it calls behind the one that was asked for, else a
    few later, and with several CPUs up to a quantum of each.
    """

    def __init__(self, kernel: Kernel, instructions: int, ring: Callable[[], None], most_per_cycle: int) -> None:
        self._kernel = kernel
        self._instructions = instructions
        self._ring = ring
        self._most_per_cycle = most_per_cycle
        self._rung = False
        self._sleeps = True  # as long as all CPUs idle
        kernel.tracepoints.sched_in.subscribe(self._sched_in)
        busy = self._busy()
        if busy is not None:
            self._look_at(busy.core.cycles, busy)

    def again(self, instructions: int) -> None:
        """The same when so many have been executed: called while it rings."""
        self._instructions, self._rung = instructions, False
        busy = self._busy()
        if busy is None:
            self._sleeps = True
        else:
            self._look_at(busy.core.cycles, busy)

    def _sched_in(self, task: Task, cpu: Cpu) -> None:
        if self._sleeps and not self._rung:
            self._look_at(cpu.core.cycles, cpu)

    def _busy(self) -> Cpu | None:
        return next((cpu for cpu in self._kernel.cpus if self._kernel.current(cpu) is not None), None)

    def _look_at(self, cycle: int, cpu: Cpu) -> None:
        self._sleeps = False
        self._kernel.add_timer(cycle, self._look, cpu)

    def _look(self) -> None:
        """Again when it could be so far."""
        cpus = self._kernel.cpus
        left = self._instructions - executed(cpus)
        if left <= 0:
            self._rung = True
            self._ring()
            return
        busy = self._busy()
        if busy is None:
            self._sleeps = True
            return
        self._look_at(busy.core.cycles + max(left // (self._most_per_cycle * len(cpus)), 1), busy)
