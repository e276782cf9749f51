"""FastForward: what comes first is executed without models, and then warms caches and predictors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from emulator.cpu import Gear
from emulator.linux.instruction_alarm import InstructionAlarm, Kernel, executed

MOST_PER_CYCLE = 1  # instructions that retire in one, as long as not everything is modelled


class Until(Enum):
    """What ends a stage, if it is no number of instructions."""

    REGION = "region"  # what is to be counted begins: FastForward.region_began


@dataclass(frozen=True, slots=True)
class Skipped:
    """First what no model hears of, then what only warms: in instructions of all CPUs together, or until something."""

    functional: int | Until = 0
    warming: int | Until = 0

    @property
    def anything(self) -> bool:
        return self.functional != 0 or self.warming != 0

    @property
    def waits_for_region(self) -> bool:
        return Until.REGION in (self.functional, self.warming)

    @property
    def text(self) -> str:
        """Where all is modelled from."""
        if self.warming is Until.REGION or (self.functional is Until.REGION and self.warming == 0):
            return "from the region on"
        if self.functional is Until.REGION:
            return f"after {self.warming:,} instructions of the region"
        assert isinstance(self.functional, int)
        assert isinstance(self.warming, int)
        return f"after {self.functional + self.warming:,} instructions"


class FastForward:
    """Takes all CPUs from gear to gear, one behind the other. Make it before anything executes.

    Raises ValueError if there is something to skip on cores that model nothing.
    """

    def __init__(self, kernel: Kernel, skipped: Skipped) -> None:
        self._kernel = kernel
        self.modelled_from: tuple[int, int] | None = None  # instructions, and the first CPU's cycle; None: not yet
        self.whole_region = False  # whether all of what is to be counted is modelled
        self._region_began = False
        stages = ((Gear.FUNCTIONAL, skipped.functional), (Gear.WARMING, skipped.warming))
        self._stages = [(gear, until) for gear, until in stages if until]
        self._until: int | Until = 0  # of the present stage
        if self._stages:
            self._next()

    def region_began(self) -> None:
        """A thread has come to its start, for the first time or again."""
        first, self._region_began = not self._region_began, True
        if first and self._until is Until.REGION:
            self._next()
            self.whole_region = self.modelled_from is not None

    def _next(self) -> None:
        """The stage that follows, or the end of all."""
        while self._stages:
            gear, self._until = self._stages.pop(0)
            if self._until is Until.REGION and self._region_began:
                continue
            self._set_gear(gear)
            if isinstance(self._until, int):
                at = executed(self._kernel.cpus) + self._until
                InstructionAlarm(self._kernel, at, self._next, MOST_PER_CYCLE)
            return
        self._until = 0
        self._set_gear(Gear.DETAILED)
        self.modelled_from = executed(self._kernel.cpus), self._kernel.cpus[0].core.cycles

    def _set_gear(self, gear: Gear) -> None:
        for cpu in self._kernel.cpus:
            cpu.set_gear(gear)
