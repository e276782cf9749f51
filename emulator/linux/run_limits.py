"""RunLimits: what a machine may execute at most, in instructions and in its own time. It stops between two of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from emulator.clock import Clock
from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from emulator.linux.sched.timers import Timer
from emulator.linux.tracepoints import Tracepoints
from emulator.probes import Probe

MOST_PER_CYCLE = 16  # instructions that any modelled core may retire in one


class Kernel(Protocol):
    """What stops (a ``Kernel``)."""

    @property
    def clock(self) -> Clock: ...
    @property
    def cpus(self) -> list[Cpu]: ...
    @property
    def tracepoints(self) -> Tracepoints: ...

    def current(self, cpu: Cpu) -> Task | None:
        """The task of that CPU; None while it idles."""

    def add_timer(self, cycle: int, callback: Callable[[], None], cpu: Cpu | None = None) -> Timer: ...

    def stop(self, why: str) -> None:
        """End the machine's first process, and with it the machine."""


def executed(cpus: Sequence[Cpu]) -> int:
    """Instructions of all CPUs. Not while one executes."""
    return sum(cpu.core.total(Probe.INST_RETIRED) for cpu in cpus)


class RunLimits:
    """Timers that look whether a limit has been reached; no guest can tell that they are there.

    With one CPU the last instruction is the one that was asked for, on a modelled core a few later, and with several
    CPUs up to a quantum of each.
    """

    def __init__(
        self, kernel: Kernel, most_instructions: int | None, most_ns: int | None, most_per_cycle: int | None
    ) -> None:
        self._kernel = kernel
        self._most_per_cycle = most_per_cycle or MOST_PER_CYCLE
        if most_ns is not None:
            why = f"{most_ns / 1e9:g} s of simulated time are over (--timeout)"
            kernel.add_timer(kernel.clock.cycle_at(most_ns), lambda: kernel.stop(why), kernel.cpus[0])
        if most_instructions is not None:
            self._most_instructions = most_instructions
            self._sleeps = True  # as long as all CPUs idle
            kernel.tracepoints.sched_in.subscribe(self._sched_in)

    def _sched_in(self, task: Task, cpu: Cpu) -> None:
        if self._sleeps:
            self._sleeps = False
            self._kernel.add_timer(cpu.core.cycles, self._look, cpu)

    def _look(self) -> None:
        """Again when the limit could have been reached."""
        most = self._most_instructions
        cpus = self._kernel.cpus
        left = most - executed(cpus)
        if left <= 0:
            self._kernel.stop(f"{most:,} instructions have been executed (--max-instructions)")
            return
        busy = next((cpu for cpu in cpus if self._kernel.current(cpu) is not None), None)
        if busy is None:
            self._sleeps = True
            return
        at = busy.core.cycles + max(left // (self._most_per_cycle * len(cpus)), 1)
        self._kernel.add_timer(at, self._look, busy)
