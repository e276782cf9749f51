"""BranchUnit: what LBR and BRBE have in common, whatever their registers say of an entry: a ring of records, which
hears of branches while it is enabled and not frozen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from emulator._native import BranchRecords
from pmu.branch_source import BranchSource
from pmu.register import Register


class BranchKind(IntEnum):
    """Of a branch as the core knows it (emulator/native/ops/timed_op.hpp)."""

    NONE = 0
    CONDITIONAL = 1
    DIRECT = 2
    INDIRECT = 3
    CALL = 4
    INDIRECT_CALL = 5
    RETURN = 6


class Entry(NamedTuple):
    """One record. `cycles`: since the one before, if it is `timed`. `info`: of what has not been recorded but written,
    for units that keep more of that than the fields before."""

    from_address: int = 0
    to_address: int = 0
    cycles: int = 0
    kind: int = BranchKind.NONE
    mispredicted: bool = False
    timed: bool = False
    info: int = 0


class Access(NamedTuple):
    """What reads a register of a bank by its number, and what writes it."""

    read: Callable[[int], int] | None
    write: Callable[[int, int], None] | None = None


class BranchUnit(ABC):
    """Of one core. It hears of nothing before it is enabled."""

    format: int  # Intel's: IA32_PERF_CAPABILITIES.LBR_FMT

    def __init__(self, source: BranchSource, entries: int) -> None:
        self.entries = entries
        self.frozen = False
        self._records = BranchRecords(entries)
        self._source = source
        self._enabled = False
        self._listens = False

    def enable(self, on: bool) -> None:
        if on and not self._enabled:
            self._records.forget_time()
        self._enabled = on
        self._update()

    def freeze(self, on: bool) -> None:
        """Until it is told otherwise nothing is recorded; what has been can be read."""
        self.frozen = on
        self._update()

    @abstractmethod
    def accesses(self) -> dict[type[Register], Access]:
        """What reads and writes each of its registers, which are its PMU's."""

    def check(self, register: type[Register], value: int) -> None:
        """ValueError if writing that value faults, for another reason than reserved bits: none does."""
        assert register in self.accesses(), f"{register.__name__} is another's"

    def _update(self) -> None:
        listens = self._enabled and not self.frozen
        if listens == self._listens:
            return
        self._listens = listens
        if listens:
            self._source.listen(self._records)
        else:
            self._source.stop_listening(self._records)

    def _entry(self, number: int) -> Entry:
        return Entry(*self._records.read(number))

    def _number(self, age: int) -> int:
        """Of the entry before which so many are newer."""
        return (self._records.top - age) % self.entries

    def _aged(self, age: int) -> Entry:
        return self._entry(self._number(age))

    def _change(self, number: int, **fields: Any) -> None:
        self._records.write(number, *self._entry(number)._replace(**fields))
