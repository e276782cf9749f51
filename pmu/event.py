"""Event and EventList: what a PMU can count, which probes it means here, and how truly."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from emulator.probes import Probe


class Support(Enum):
    """How the count compares with the vendor's definition of the event."""

    EXACT = "exact"
    APPROXIMATE = "approximate"


LESS_SHIFT = 128  # in a mask, where the probes stand that are taken away


class UnknownEvent(LookupError):
    """No such event in this list. The message names what was asked for and what is near."""


@dataclass(frozen=True, slots=True)
class Event:
    """One countable event: the vendor's code and name, and the probes whose sum it is here.

    `code` is what the selecting register takes: PMEVTYPER.evtCount, or UMASK:EVENT of IA32_PERFEVTSELx with, where the
    vendor's event has them, CMASK, INV and E in place.
    """

    code: int
    name: str
    probes: tuple[Probe, ...]
    support: Support = Support.EXACT
    note: str = ""
    less: tuple[Probe, ...] = ()  # ... less these, each of which fires only together with one of `probes`
    listed: bool = True  # False: of no use by itself, so neither listed nor in sysfs

    def __post_init__(self) -> None:
        if self.support is not Support.EXACT and not self.note:
            raise ValueError(f"{self.name}: say in `note` what differs from the hardware")
        if not self.probes and not self.note:
            raise ValueError(f"{self.name}: no probe fires it; say in `note` what counts it")
        if len({*self.probes, *self.less}) != len(self.probes) + len(self.less):
            raise ValueError(f"{self.name}: a probe stands twice; a counter adds each probe once")

    @property
    def probe_mask(self) -> int:
        """The probes as the mask that a counter is connected to (``CounterBank.connect``)."""
        return sum(1 << probe for probe in self.probes) | sum(1 << LESS_SHIFT + probe for probe in self.less)


class EventList:
    """The events of one PMU model, in the order of their rows. A code may have two names if they mean the same."""

    def __init__(self, rows: Iterable[Event]) -> None:
        self._rows = tuple(rows)
        self._by_code: dict[int, Event] = {}
        self._by_name: dict[str, Event] = {}
        for row in self._rows:
            if row.name.upper() in self._by_name:
                raise ValueError(f"event {row.name} stands twice")
            self._by_name[row.name.upper()] = row
            first = self._by_code.setdefault(row.code, row)
            if first.probe_mask != row.probe_mask:
                raise ValueError(f"{row.name}: code {row.code:#06x} is {first.name}, which counts something else")

    def __iter__(self) -> Iterator[Event]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def by_code(self, code: int) -> Event | None:
        """The first event with this code."""
        return self._by_code.get(code)

    def by_name(self, name: str) -> Event | None:
        """The event of this vendor name, in either case."""
        return self._by_name.get(name.upper())

    def find(self, name: str) -> Event:
        """The event of this name, or UnknownEvent naming those near."""
        event = self.by_name(name)
        if event is None:
            raise UnknownEvent(f"no event '{name}'{self._suggestion(self.near(name))}")
        return event

    def find_code(self, code: int) -> Event:
        """The event of this code, or UnknownEvent naming those near."""
        event = self.by_code(code)
        if event is None:
            raise UnknownEvent(f"no event with code {code:#06x}{self._suggestion(self.near_code(code))}")
        return event

    def near(self, name: str, limit: int = 4) -> list[str]:
        """Names like `name`: those that contain it, then those spelled alike."""
        asked = name.upper()
        containing = [known for known in self._by_name if asked and asked in known]
        alike = difflib.get_close_matches(asked, self._by_name, n=limit)
        keys = list(dict.fromkeys([*containing, *alike]))[:limit]
        return [self._by_name[key].name for key in keys]

    def near_code(self, code: int, limit: int = 4) -> list[str]:
        """Names of the events that share the low byte of `code`, then of those with the nearest codes."""
        rows = sorted(self._by_code.values(), key=lambda row: ((row.code ^ code) & 0xFF != 0, abs(row.code - code)))
        return [f"{row.name} ({row.code:#06x})" for row in rows[:limit]]

    @staticmethod
    def _suggestion(names: list[str]) -> str:
        return f"; near are {', '.join(names)}" if names else ""

    def pmceid(self) -> tuple[int, int]:
        """PMCEID0_EL0 and PMCEID1_EL0: which common events exist. Arm ARM DDI 0487, "PMCEID0_EL0".

        Bit n of a low half is event 0x0000 + n (PMCEID1: 0x0020 + n); of a high half, 0x4000 + n (PMCEID1: 0x4020 + n).
        """
        ids = [0, 0]
        for code in self._by_code:
            extended, number = divmod(code, 0x4000)
            if extended <= 1 and number < 0x40:
                ids[number // 32] |= 1 << (number % 32 + 32 * extended)
        return ids[0], ids[1]
