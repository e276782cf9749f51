"""FastForward: what comes first is executed without models, and then warms caches and predictors, in instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from emulator.cpu import Gear
from emulator.linux.instruction_alarm import InstructionAlarm, Kernel, executed

MOST_PER_CYCLE = 1  # instructions that retire in one, as long as not everything is modelled


@dataclass(frozen=True, slots=True)
class Skipped:
    """Instructions of all CPUs together: first those that no model hears of, then those that only warm."""

    functional: int = 0
    warming: int = 0

    @property
    def instructions(self) -> int:
        return self.functional + self.warming


class FastForward:
    """Takes all CPUs from gear to gear, one behind the other. Make it before anything executes.

    Raises ValueError if there is something to skip on cores that model nothing.
    """

    def __init__(self, kernel: Kernel, skipped: Skipped) -> None:
        self._kernel = kernel
        self.modelled_from: tuple[int, int] | None = None  # instructions, and the first CPU's cycle; None: not yet
        behind: list[tuple[int, Callable[[], None]]] = []
        if skipped.warming:
            behind.append((skipped.functional, partial(self._set_gear, Gear.WARMING)))
        if skipped.instructions:
            behind.append((skipped.instructions, self._model))
        if skipped.functional:
            behind.insert(0, (0, partial(self._set_gear, Gear.FUNCTIONAL)))
        for instructions, change in behind:
            if instructions:
                InstructionAlarm(kernel, instructions, change, MOST_PER_CYCLE)
            else:
                change()

    def _set_gear(self, gear: Gear) -> None:
        for cpu in self._kernel.cpus:
            cpu.set_gear(gear)

    def _model(self) -> None:
        self._set_gear(Gear.DETAILED)
        self.modelled_from = executed(self._kernel.cpus), self._kernel.cpus[0].core.cycles
