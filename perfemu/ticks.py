"""Ticks: calls at the moments of a program's machine that come again and again. No guest can tell of them."""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.instruction_alarm import executed
from emulator.linux.machine import LinuxMachine


class TimeTicks:
    """Calls whenever so many ns have passed on the first CPU, others being behind or ahead by a quantum."""

    def __init__(self, machine: LinuxMachine, ns: int, call: Callable[[], bool]) -> None:
        self._machine = machine
        self._ns = ns
        self._call = call
        self._next_ns = machine.clock.elapsed_ns()
        self._wait()

    def _wait(self) -> None:
        self._next_ns += self._ns
        cycle = self._machine.clock.cycle_at(self._next_ns)
        first, *others = self._machine.cpus
        for cpu in others:
            self._machine.kernel.add_timer(cycle, lambda: None, cpu)  # one that idles is there then, too
        self._machine.kernel.add_timer(cycle, self._tick, first)

    def _tick(self) -> None:
        if self._call():
            self._wait()


class InstructionTicks:
    """... whenever all CPUs together have executed so many, as exactly as ``InstructionAlarm``."""

    def __init__(self, machine: LinuxMachine, instructions: int, call: Callable[[], bool]) -> None:
        self._instructions = instructions
        self._call = call
        self._next = executed(machine.cpus) + instructions
        self._alarm = machine.at_instruction(self._next, self._tick)

    def _tick(self) -> None:
        if self._call():
            self._next += self._instructions
            self._alarm.again(self._next)
