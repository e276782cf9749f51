"""Pl031: Arm's real-time clock, in whole seconds. Arm DDI 0224. Its time is the machine's own, pinned at the start."""

from __future__ import annotations

from collections.abc import Callable

from emulator.clock import Clock

DR, MR, LR, CR, IMSC, RIS, MIS, ICR = range(0, 0x20, 4)
# RTCPeriphID0..3 and RTCPCellID0..3
IDENTIFICATION = dict(zip(range(0xFE0, 0x1000, 4), (0x31, 0x10, 0x04, 0x00, 0x0D, 0xF0, 0x05, 0xB1), strict=True))
NS_PER_S = 1_000_000_000
WORD = 0xFFFF_FFFF


class Pl031:
    """A clock with one alarm."""

    kept = "_offset", "_loaded", "_match", "_enabled", "_raw", "_due_cycle"
    kept_ranges = {"_offset": range(-1 << 63, 1 << 63)}

    def __init__(self, clock: Clock, set_line: Callable[[bool], None]) -> None:
        self._clock = clock
        self._set_line = set_line
        self._offset = 0  # seconds by which the guest has set it
        self._loaded = 0
        self._match = 0
        self._enabled = self._raw = 0  # IMSC, RIS
        self._due_cycle: int | None = None

    @property
    def due_cycle(self) -> int | None:
        """At which the alarm goes off; None if nobody would hear it."""
        return self._due_cycle

    idle_cycle = due_cycle

    def look(self, now: int) -> bool:
        """It is cycle `now`: whether the alarm goes off."""
        if self._due_cycle is None or now < self._due_cycle:
            return False
        self._raw = 1
        self._update()
        return True

    def read(self, offset: int, size: int) -> int:
        if offset == DR:
            return self._seconds() & WORD
        return {
            MR: self._match,
            LR: self._loaded,
            CR: 1,  # it always runs
            IMSC: self._enabled,
            RIS: self._raw,
            MIS: self._raw & self._enabled,
        }.get(offset, IDENTIFICATION.get(offset, 0))

    def write(self, offset: int, size: int, value: int) -> None:
        if offset == MR:
            self._match = value & WORD
        elif offset == LR:
            self._loaded = value & WORD
            self._offset += self._loaded - self._seconds()
        elif offset == IMSC:
            self._enabled = value & 1
        elif offset == ICR:
            self._raw &= ~value
        self._update()

    def _seconds(self) -> int:
        return self._clock.realtime_ns() // NS_PER_S + self._offset

    def _update(self) -> None:
        self._set_line(bool(self._raw & self._enabled))
        self._due_cycle = None
        if self._enabled and not self._raw:
            ahead = self._match - self._seconds() & WORD or WORD + 1  # a match that has been comes around again
            at_ns = (self._clock.realtime_ns() // NS_PER_S + ahead) * NS_PER_S
            self._due_cycle = self._clock.cycle_at(self._clock.elapsed_at(at_ns, realtime=True))
