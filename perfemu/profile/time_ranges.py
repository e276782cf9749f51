"""time_ranges: perf's --time: from and to in seconds, or slices in percent of a recording's time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

_SECONDS = re.compile(r"(\d+)(?:\.(\d{1,9}))?")
_SLICE = re.compile(r"([\d.]+)%/(\d+)")
_PERCENTS = re.compile(r"([\d.]+)%-([\d.]+)%")
_PERCENT = re.compile(r"([\d.]+)%")
_NS = 1_000_000_000

Range = tuple[int, int]  # ns, first and last; 0 is no bound


class BadTime(ValueError):
    """A text that means no time."""


def time_ranges(text: str, recorded: tuple[int, int] | None) -> tuple[Range, ...]:
    """`recorded` are the times of the first and the last sample, which percentages need; None if nobody knows."""
    if "%" in text:
        if recorded is None:
            raise BadTime("the file does not tell the times of its first and last sample, which percentages are of")
        return tuple(_percent_range(part, recorded) for part in text.split(","))
    return tuple(_seconds_ranges(text))


def is_within(time_ns: int, ranges: tuple[Range, ...]) -> bool:
    """A sample without a time always is, as in perf."""
    return (
        not ranges
        or not time_ns
        or any((not first or time_ns >= first) and (not last or time_ns <= last) for first, last in ranges)
    )


def _seconds_ranges(text: str) -> Iterator[Range]:
    for part in text.split():
        first, comma, last = part.partition(",")
        made = _nanoseconds(first), _nanoseconds(last)
        if made[1] and made[1] < made[0]:
            raise BadTime(f"{part} ends before it begins")
        if not comma and not first:
            raise BadTime("a time is START,STOP in seconds, or a percentage: 10%/2, 0%-10%")
        yield made


def _nanoseconds(text: str) -> int:
    if not text:
        return 0
    found = _SECONDS.fullmatch(text)
    if not found:
        raise BadTime(f"'{text}' is not a time: START,STOP in seconds, or percentages: 10%/2, 0%-10%")
    return int(found[1]) * _NS + int((found[2] or "0").ljust(9, "0"))


def _percent_range(part: str, recorded: tuple[int, int]) -> Range:
    try:
        if found := _SLICE.fullmatch(part):
            width, number = float(found[1]), int(found[2])
            low, high = width * (number - 1), width * number
        elif found := _PERCENTS.fullmatch(part):
            low, high = float(found[1]), float(found[2])
        elif found := _PERCENT.fullmatch(part):
            low, high = 0.0, float(found[1])
        else:
            raise ValueError
    except ValueError:
        raise BadTime(f"'{part}' is no part of a time: 10%/2 is the second tenth, 0%-10% the first") from None
    if not 0 <= low < high <= 100:
        raise BadTime(f"'{part}' is not within 0%-100%")
    start, end = recorded
    first, last = (start + math.floor(share / 100 * (end - start) + 0.5) for share in (low, high))
    if last > first and last != end:
        last -= 1
    return first, last
