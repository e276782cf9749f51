"""LinkedCounters: odd event counters that look at what the counter below adds. FEAT_PMUv3_TH2, `pmu/arm/links.py`."""

from __future__ import annotations

from pmu.arm.counters import CHAIN, SW_INCR, PmuCounters
from pmu.arm.filters import levels_of
from pmu.arm.links import NOTHING, is_reserved, linked
from pmu.arm.registers import PMEVTYPERn_EL0
from pmu.counter_bank import CounterBank
from pmu.event import Event
from pmu.model import PmuModel

_LINK, _EVENT = PMEVTYPERn_EL0.TLC.mask, PMEVTYPERn_EL0.evtCount.mask


class LinkedCounters(PmuCounters):
    """What a counter adds is known by levels: where the one below does not count, that adds nothing."""

    kept = (*PmuCounters.kept, "_below_links")

    def __init__(self, bank: CounterBank, model: PmuModel, counters: int | None = None) -> None:
        self._below_links = 0  # even counters whose odd one looks at what they add
        super().__init__(bank, model, counters)
        self.kept_ranges["_below_links"] = range(1 << self.counters)

    def event_of(self, counter: int) -> Event | None:
        event = super().event_of(counter)
        return self._linked(counter)[0] if self._is_linked(self._types[counter]) else event

    def _is_linked(self, selected: int) -> bool:
        return bool(selected & _LINK) and not is_reserved(selected) and selected & _EVENT not in (SW_INCR, CHAIN)

    def _connect_type(self, counter: int, value: int) -> None:
        below = 1 << counter - 1 if counter & 1 else 0
        if not self._is_linked(value):
            self._below_links &= ~below
            super()._connect_type(counter, value)
            return
        super()._connect_type(counter, value & _EVENT)  # so that it is no longer chained
        self._types[counter] = value
        self._below_links |= below
        self._count_linked(counter)

    def _connect(self, counters: int) -> None:
        super()._connect(counters)
        changed = counters & self._below_links
        while changed:
            even = changed & -changed
            changed ^= even
            self._count_linked(even.bit_length())

    def _count_linked(self, odd: int) -> None:
        """Set what it counts, after a change of its type, or of what the counter below counts, and whether it does."""
        event, levels = self._linked(odd)
        self._probes[odd] = 0 if event is None else event.probe_mask
        self._filter(odd, levels)
        self._connect(1 << odd)
        if event is None and self._active >> odd & 1:
            self._tell_of_unknown(self._types[odd], "a link to that counter")

    def _linked(self, odd: int) -> tuple[Event | None, int]:
        """The event that it counts, if anybody knows it, and the levels at which it does."""
        selected, even = self._types[odd], odd - 1
        levels = levels_of(selected)
        common = levels & self._levels[even] if self._active >> even & 1 else 0
        alone = linked(self.model, selected, NOTHING)  # where the counter below counts nothing
        if not common:
            return alone, levels
        code = self._code_of(self._types[even])
        below = self.model.by_code(code) or (NOTHING if self.model.cannot_know(code) is None else None)
        event = linked(self.model, selected, below)
        if event is None or levels == common or (alone is not None and alone.probe_mask == event.probe_mask):
            return event, levels
        return (event, common) if alone is not None and not alone.probes else (None, levels)
