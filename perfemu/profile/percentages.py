"""percentages: as perf prints them, on a terminal in its colours."""

from __future__ import annotations

_RED, _GREEN, _END = "\x1b[31m", "\x1b[32m", "\x1b[m"
_FROM_RED, _ABOVE_GREEN = 5.0, 0.5  # percent


def percentage(part: int, whole: int, *, width: int = 0, coloured: bool = False) -> str:
    """With a sign and two digits; 0 of nothing is 0 %. `width` is without the sign."""
    percent = 100.0 * part / whole if whole else 0.0
    text = f"{percent:{width or ''}.2f}%"
    return in_colour(text, percent) if coloured else text


def in_colour(text: str, percent: float) -> str:
    """As perf colours numbers that are so many percent."""
    if percent >= _FROM_RED:
        return f"{_RED}{text}{_END}"
    return f"{_GREEN}{text}{_END}" if percent > _ABOVE_GREEN else text
