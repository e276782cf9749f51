"""BranchUnit: what LBR and BRBE have in common, whatever their registers say of an entry: a ring of records, which
hears of branches while it is enabled and not frozen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from emulator._native import BranchRecords
from emulator.cpu import Level
from pmu.branch_source import BranchSource
from pmu.register import Register

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX of CPUID


class BranchKind(IntEnum):
    """Of a branch as the core knows it (emulator/native/ops/timed_op.hpp)."""

    NONE = 0
    CONDITIONAL = 1
    DIRECT = 2
    INDIRECT = 3
    CALL = 4
    INDIRECT_CALL = 5
    RETURN = 6
    FAR = 7  # system calls, exceptions, interrupts, their returns: where a guest's own x86-64 kernel executes
    EXCEPTION = 8  # ... and where its AArch64 kernel does, with the next
    EXCEPTION_RETURN = 9


class Entry(NamedTuple):
    """One record. `cycles`: since the one before, if it is `timed`. `info`: of what has not been recorded but written,
    for units that keep more of that than the fields before. `cause`: of an exception, as core/retirement.hpp has it."""

    from_address: int = 0
    to_address: int = 0
    cycles: int = 0
    kind: int = BranchKind.NONE
    mispredicted: bool = False
    timed: bool = False
    level: int = Level.USER
    info: int = 0
    cause: int = 0
    has_from: bool = True
    has_to: bool = True


class Access(NamedTuple):
    """What reads a register of a bank by its number, and what writes it."""

    read: Callable[[int], int] | None
    write: Callable[[int, int], None] | None = None


class BranchUnit(ABC):
    """Of one core. It hears of nothing before it is enabled."""

    kept: ClassVar[tuple[str, ...]] = ("frozen", "_enabled", "_entries")
    format: int  # Intel's: IA32_PERF_CAPABILITIES.LBR_FMT

    def __init__(self, source: BranchSource, entries: int) -> None:
        self.entries = entries
        self.frozen = False
        self._records = BranchRecords(entries)
        self._source = source
        self._enabled = False
        self._listens = False
        self._read: dict[int, Entry] = {}  # by number, of those that have been read since it listened last

    @property
    def records(self) -> BranchRecords:
        """What hears of branches."""
        return self._records

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

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf:
        """What CPUID says with it to a kernel, where without it would be `plain`."""
        return plain

    def pause(self) -> None:
        """Whoever has the unit is about to be saved: until `resume` it hears of nothing."""
        self._listen(False)

    def resume(self) -> None:
        """... or has been saved or restored: it goes on by its registers."""
        self._select()
        if self._enabled and not self.frozen:
            self._records.pass_entry()
            self._listen(True)

    @abstractmethod
    def _select(self) -> None:
        """What is recorded, by the unit's registers."""

    @property
    def _entries(self) -> bytes:
        return self._records.saved_state()

    @_entries.setter
    def _entries(self, saved: bytes) -> None:
        self._records.load_state(saved)
        self._read.clear()

    def check(self, register: type[Register], value: int) -> None:
        """ValueError if writing that value faults, for another reason than reserved bits: none does."""
        assert register in self.accesses(), f"{register.__name__} is another's"

    def _update(self) -> None:
        self._listen(self._enabled and not self.frozen)

    def _listen(self, listens: bool) -> None:
        if listens == self._listens:
            return
        self._listens = listens
        self._read.clear()
        if listens:
            self._source.listen(self._records)
        else:
            self._source.stop_listening(self._records)

    def _entry(self, number: int) -> Entry:
        """Drivers ask for each part of it by a register of its own, and while it stands still."""
        if self._listens:
            return Entry(*self._records.read(number))
        found = self._read.get(number)
        if found is None:
            found = self._read[number] = Entry(*self._records.read(number))
        return found

    def _put(self, number: int, entry: Entry) -> None:
        self._records.write(number, *entry)
        self._read.pop(number, None)

    def _clear(self) -> None:
        self._records.clear()
        self._read.clear()

    def _number(self, age: int) -> int:
        """Of the entry before which so many are newer."""
        return (self._records.top - age) % self.entries

    def _aged(self, age: int) -> Entry:
        return self._entry(self._number(age))

    def _change(self, number: int, **fields: Any) -> None:
        self._put(number, self._entry(number)._replace(**fields))
