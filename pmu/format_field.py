"""FormatField: a file of sysfs ``format/``: where in perf_event_attr a named number goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """What a format field does here."""

    SELECTS = "part of the event's code"
    NO_EFFECT = "accepted; changes nothing on a machine like ours"
    OPTION = "asks the kernel's driver for something"
    ABSENT = "zero: Linux has the field, and this PMU nothing that it is for"
    BY_EVENT = "zero but in events of the list that have it, and where what is asked of single cycles is known"


@dataclass(frozen=True, slots=True)
class FormatField:
    """One file of sysfs ``format/``: where in perf_event_attr a named number goes."""

    name: str
    lo: int
    hi: int
    role: Role = Role.SELECTS
    config: str = "config"  # or config1, config2
    upper: tuple[int, int] | None = None  # (lo, hi) of where the number goes on, if it is in two parts
    code_lo: int | None = None  # where it begins in an event's code, if that is not as in `config`

    @property
    def text(self) -> str:
        """The file's contents, without the newline."""
        return f"{self.config}:" + ",".join(f"{lo}" if lo == hi else f"{lo}-{hi}" for lo, hi in self._parts)

    @property
    def mask(self) -> int:
        return sum(_mask(lo, hi) for lo, hi in self._parts)

    @property
    def _parts(self) -> list[tuple[int, int]]:
        return [(self.lo, self.hi), *([] if self.upper is None else [self.upper])]

    @property
    def code_mask(self) -> int:
        """Its bits in an event's code."""
        return self.mask if self.code_lo is None else _mask(self.code_lo, self.code_lo + self.hi - self.lo)

    def in_code(self, config: int) -> int:
        """What `config`, its word of the attr, adds to an event's code."""
        return config & self.mask if self.code_lo is None else self.extract(config) << self.code_lo

    def of_code(self, code: int) -> int:
        """Its number in an event's code."""
        return self.extract(code if self.code_lo is None else code >> self.code_lo << self.lo)

    def insert(self, value: int) -> int:
        """`value` moved to the field's bits; ValueError if it does not fit."""
        placed, rest = 0, value
        for lo, hi in self._parts:
            placed |= rest << lo & _mask(lo, hi)
            rest >>= hi - lo + 1
        if value < 0 or rest:
            raise ValueError(f"{self.name}={value:#x} does not fit in {self.text}")
        return placed

    def extract(self, config: int) -> int:
        value = width = 0
        for lo, hi in self._parts:
            value |= (config & _mask(lo, hi)) >> lo << width
            width += hi - lo + 1
        return value


def _mask(lo: int, hi: int) -> int:
    return (1 << hi - lo + 1) - 1 << lo
