"""RunLimits: what a machine may execute at most, in instructions and in its own time. It stops between two of them."""

from __future__ import annotations

from typing import Protocol

from emulator.clock import Clock
from emulator.linux import instruction_alarm
from emulator.linux.instruction_alarm import InstructionAlarm


class Kernel(instruction_alarm.Kernel, Protocol):
    """What stops (a ``Kernel``)."""

    @property
    def clock(self) -> Clock: ...

    def stop(self, why: str) -> None:
        """End the machine's first process, and with it the machine."""


class RunLimits:
    """Set by timers, so that no guest can tell that they are there."""

    def __init__(self, kernel: Kernel, most_instructions: int | None, most_ns: int | None, most_per_cycle: int) -> None:
        if most_ns is not None:
            in_time = f"{most_ns / 1e9:g} s of simulated time are over (--timeout)"
            kernel.add_timer(kernel.clock.cycle_at(most_ns), lambda: kernel.stop(in_time), kernel.cpus[0])
        if most_instructions is not None:
            why = f"{most_instructions:,} instructions have been executed (--max-instructions)"
            InstructionAlarm(kernel, most_instructions, lambda: kernel.stop(why), most_per_cycle)
