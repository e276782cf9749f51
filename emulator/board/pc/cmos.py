"""Cmos: the real-time clock and its RAM. Motorola MC146818 data sheet. Its time is the machine's, pinned at the start.

There are no alarms and no periodic interrupts: who enables one is told so.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from emulator.clock import Clock

FIRST_PORT, PORTS = 0x70, 2
SECONDS, MINUTES, HOURS, WEEKDAY, DAY, MONTH, YEAR = 0, 2, 4, 6, 7, 8, 9
STATUS_A, STATUS_B, STATUS_C, STATUS_D, CENTURY = 0xA, 0xB, 0xC, 0xD, 0x32
TIME = (SECONDS, MINUTES, HOURS, WEEKDAY, DAY, MONTH, YEAR, CENTURY)
SET, INTERRUPTS, BINARY, HOURS_24 = 1 << 7, 7 << 4, 1 << 2, 1 << 1  # STATUS_B
VALID = 1 << 7  # STATUS_D: there is a battery
AFTERNOON = 1 << 7
NS_PER_S, SECONDS_PER_DAY = 1_000_000_000, 86_400
THURSDAY = 4  # 1970-01-01 was one
KIB, MIB, CHUNK = 1 << 10, 1 << 20, 64 << 10
BASE_KIB = 640


class Cmos:
    """Index at the first port, data at the second."""

    kept = "_index", "_offset", "_ram", "_set"
    kept_ranges = {"_index": range(128), "_offset": range(-1 << 62, 1 << 62)}

    def __init__(self, clock: Clock, ram_bytes: int, cpus: int, message: Callable[[str], None]) -> None:
        self._clock = clock
        self._message = message
        self._index = 0
        self._offset = 0  # seconds by which the guest has set it
        self._ram = bytearray(128)
        self._ram[STATUS_A], self._ram[STATUS_B], self._ram[STATUS_D] = 0x26, HOURS_24, VALID
        above = min(ram_bytes // KIB - KIB, 0xFFFF)  # where PCs' BIOSes keep sizes, in KiB
        in_chunks = max(ram_bytes - 16 * MIB, 0) // CHUNK
        for low, value in ((0x15, BASE_KIB), (0x17, above), (0x30, above), (0x34, min(in_chunks, 0xFFFF))):
            self._ram[low : low + 2] = value.to_bytes(2, "little")
        self._ram[0x5F] = cpus - 1  # by QEMU's convention
        self._set: dict[int, int] = {}  # registers of the time, while the guest sets it

    def read(self, offset: int, size: int) -> int:
        if offset == 0:
            return 0xFF
        if self._index in TIME:
            return self._set.get(self._index, self._time()[self._index])
        return self._ram[self._index]

    def write(self, offset: int, size: int, value: int) -> None:
        if offset == 0:
            self._index = value & 0x7F
        elif self._index in TIME:
            self._set[self._index] = value
            if not self._ram[STATUS_B] & SET:
                self._set_time()
        elif self._index == STATUS_B:
            if value & INTERRUPTS:
                self._message("the real-time clock's interrupts are not modelled: none will come")
            was_set = self._ram[STATUS_B] & SET
            self._ram[STATUS_B] = value
            if was_set and not value & SET and self._set:
                self._set_time()
        elif self._index not in (STATUS_C, STATUS_D):
            self._ram[self._index] = value

    # ---- time

    def _now(self) -> int:
        """Seconds since 1970."""
        return max(self._clock.realtime_ns() // NS_PER_S + self._offset, 0)

    def _time(self) -> dict[int, int]:
        status = self._ram[STATUS_B]
        days, second = divmod(self._now(), SECONDS_PER_DAY)
        year, month, day = date_of(days)
        hour = second // 3600
        values = {
            SECONDS: second % 60,
            MINUTES: second // 60 % 60,
            HOURS: hour if status & HOURS_24 else (hour + 11) % 12 + 1,
            WEEKDAY: (days + THURSDAY) % 7 + 1,  # Sunday is 1
            DAY: day,
            MONTH: month,
            YEAR: year % 100,
            CENTURY: year // 100,
        }
        if not status & BINARY:
            values = {register: value // 10 << 4 | value % 10 for register, value in values.items()}
        if not status & HOURS_24 and hour >= 12:
            values[HOURS] |= AFTERNOON
        return values

    def _set_time(self) -> None:
        """What the guest has written; a time that there is not changes nothing."""
        shown = self._time() | self._set
        self._set = {}
        status = self._ram[STATUS_B]
        afternoon = not status & HOURS_24 and bool(shown[HOURS] & AFTERNOON)
        if not status & HOURS_24:
            shown[HOURS] &= ~AFTERNOON
        if not status & BINARY:
            shown = {register: (value >> 4) * 10 + (value & 0xF) for register, value in shown.items()}
        hour = shown[HOURS] if status & HOURS_24 else shown[HOURS] % 12 + 12 * afternoon
        year = shown[CENTURY] * 100 + shown[YEAR]
        if shown[MONTH] not in range(1, 13) or shown[DAY] not in range(1, 32):
            return
        days = days_of(year, shown[MONTH], shown[DAY])
        self._offset += days * SECONDS_PER_DAY + hour * 3600 + shown[MINUTES] * 60 + shown[SECONDS] - self._now()


_DAYS_OF_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_BEFORE_MONTHS = (0, *accumulate(_DAYS_OF_MONTHS))


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_before(year: int) -> int:
    """From 1970 to that year's first day."""
    past = year - 1
    return (year - 1970) * 365 + (past // 4 - past // 100 + past // 400) - (1969 // 4 - 1969 // 100 + 1969 // 400)


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01."""
    leap_day = _is_leap(year) and month > 2
    return _days_before(year) + _DAYS_BEFORE_MONTHS[month - 1] + leap_day + day - 1


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month, day."""
    year = 1970 + days // 366
    while _days_before(year + 1) <= days:
        year += 1
    month = next(month for month in range(12, 0, -1) if days_of(year, month, 1) <= days)
    return year, month, days - days_of(year, month, 1) + 1
