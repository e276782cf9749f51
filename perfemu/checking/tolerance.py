"""Tolerance: by how much a count may grow before it is a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORM = re.compile(r"(\d+(?:\.\d*)?)\s*(%?)")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A percentage of the old count, or a number of events."""

    amount: float
    is_percent: bool

    @classmethod
    def parse(cls, text: str) -> Tolerance:
        """Of "0.1%", "1000". Raises ValueError."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"'{text}' is neither a percentage nor a count: 0.1%, 1000")
        return cls(float(match[1]), bool(match[2]))

    def allows(self, old: int, new: int) -> bool:
        """Whether `new` has not grown by more."""
        return new - old <= (self.amount * old / 100 if self.is_percent else self.amount)

    def __str__(self) -> str:
        return f"{self.amount:g}{'%' if self.is_percent else ''}"
