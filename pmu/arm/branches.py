"""PmuBranches: a PMUv3 whose core records branches (FEAT_BRBE): their registers, and what an overflow does to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pmu.arm.snapshots import PmuSnapshots
from pmu.counter_bank import CounterBank
from pmu.model import PmuModel
from pmu.register import Register


class FreezingBranches(Protocol):
    """BranchRecordBuffer, which only cores with one load."""

    when_controlled: Callable[[], None]  # BRBCR_EL1 has been written: it freezes, or not, as before or otherwise

    @property
    def freezes(self) -> bool: ...
    def overflow(self) -> None: ...
    def accesses(
        self,
    ) -> Mapping[type[Register], tuple[Callable[[int], int] | None, Callable[[int, int], None] | None]]: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class PmuBranches(PmuSnapshots):
    """Its unit is frozen once for each overflow: one whose bit has been set before is an old one."""

    kept = (*PmuSnapshots.kept, "_seen", "_branch_units")

    def __init__(
        self,
        bank: CounterBank,
        model: PmuModel,
        counters: int | None = None,
        branches: FreezingBranches | None = None,
    ) -> None:
        """`branches`: the core's branch records, if it has any."""
        self.branches = branches
        self._branch_units = [] if branches is None else [branches]
        self._seen = 0  # the bits of PMOVSCLR_EL0 that have done their work
        super().__init__(bank, model, counters)

    def _declare(self) -> None:
        super()._declare()
        if self.branches is None:
            return
        for register, (read, write) in self.branches.accesses().items():
            self._compute(register, read, write)
        self.branches.when_controlled = self._watch_for_branches

    def pause(self) -> None:
        """Nothing of it listens to the core until `resume`: it is about to be saved, or restored."""
        for unit in self._branch_units:
            unit.pause()

    def resume(self) -> None:
        for unit in self._branch_units:
            unit.resume()

    def registers_of(self, register: type[Register]) -> int:
        shown = self.branches is not None and register in self.branches.accesses()
        return register.bank.count if shown and register.bank is not None else super().registers_of(register)

    def _watch_for_branches(self) -> None:
        assert self.branches is not None, "its register has been written"
        watched = self._implemented if self.branches.freezes else 0
        if watched != self._watched:
            self._watched = watched
            self._arm()

    def _react(self, overflowed: int) -> None:
        if self._freezing:
            super()._react(overflowed)
        if self.branches is not None:
            bits = self._from_bank(overflowed)
            if bits & ~self._seen:
                self.branches.overflow()
            self._seen = bits

    def _clear_overflows(self, value: int, index: int) -> None:
        super()._clear_overflows(value, index)
        self._seen &= ~value

    def _set_overflows(self, value: int, index: int) -> None:
        """By software, which is no overflow."""
        self._seen |= value & self._implemented & ~self._from_bank(self._bank.overflowed())
        super()._set_overflows(value, index)
