"""cpu_numbers: the CPUs that perf's -C names."""

from __future__ import annotations

import re

from perfemu.errors import UsageError

_RANGE = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")


def cpu_numbers(text: str) -> tuple[int, ...]:
    """Of ``0,2-3``, ascending. UsageError for what is no list."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise UsageError(f"-C {text}: '{part}' is neither a CPU nor a range of them, as in 0,2-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UsageError(f"-C {text}: '{part}' ends before it begins")
        found.update(range(first, last + 1))
    return tuple(sorted(found))
