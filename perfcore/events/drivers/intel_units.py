"""IntelUnits: branch records, BTS and PT of a machine, of which its events use one kind at a time.

As x86_add_exclusive() in arch/x86/events/core.c, Linux 6.12, where `lbr_pt_coexist` is not set.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Protocol, runtime_checkable

from emulator.linux.errors import EBUSY, LinuxError
from perfcore.events.event import PerfEvent


class IntelUnit(StrEnum):
    LBR = "branch records"
    BTS = "Intel BTS"
    PT = "Intel PT"


class IntelUnits:
    """Who uses which."""

    def __init__(self) -> None:
        self._events: Counter[IntelUnit] = Counter()

    def take(self, unit: IntelUnit, event: PerfEvent) -> None:
        """Until the event is gone. EBUSY."""
        for other, events in self._events.items():
            if other is not unit and events:
                raise LinuxError(EBUSY, f"{unit}: there are events of {other}, which exclude it")
        self._events[unit] += 1
        event.when_destroyed.append(lambda gone: self._events.subtract({unit: 1}))


@runtime_checkable
class UsesIntelUnits(Protocol):
    """A driver of one of them."""

    branch_units: IntelUnits | None
