"""markers: a region that the program itself marks, by instructions that do nothing: --marker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from perfcore.events.kernel import Linux
from perfcore.events.markers import NUMBERS, Markers
from perfemu.errors import PerfemuError
from perfemu.namespace import Namespace

HEADER = "perfemu_markers.h"


@dataclass(frozen=True, slots=True)
class MarkerRegion:
    """Between markers of one number, or of any."""

    number: int | None = None

    def __str__(self) -> str:
        return "marked" if self.number is None else f"marker {self.number}"

    def watched(self, kernel: Linux, isa: str, space: Namespace) -> WatchedMarkerRegion:
        """Before the run."""
        return WatchedMarkerRegion(self, Markers(kernel, isa, self.number))


@dataclass(frozen=True, slots=True)
class WatchedMarkerRegion:
    """... of one run."""

    region: MarkerRegion
    within: Markers

    def remarks(self) -> Iterator[str]:
        """What the user should know of it."""
        counts = self.within.counts
        if not counts.ended:
            yield f"--marker: the region was entered {counts.entered} times, and no marker has ended it"

    def check(self) -> None:
        """PerfemuError if it was never reached."""
        counts = self.within.counts
        if counts.entered:
            return
        which = "markers" if self.region.number is None else f"markers of number {self.region.number}"
        if counts.found:
            raise PerfemuError(f"--marker: the program has come to none of the {counts.found} {which} in its files")
        raise PerfemuError(f"--marker: no file that the program has mapped has {which}: {HEADER} makes them")


def read_number(text: str) -> int | Literal["any"]:
    """``--marker=N``; any without a number. ValueError says what is right."""
    if text in ("", "any"):
        return "any"
    if not text.isascii() or not text.isdigit() or int(text) >= NUMBERS:
        raise ValueError(f"'{text}' is no marker's number: 0 to {NUMBERS - 1}")
    return int(text)
