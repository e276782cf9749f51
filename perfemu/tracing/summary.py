"""Summary: how often each system call was made and failed, and how much simulated time passed in it (``-c``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from emulator.linux.structures import NANOSECONDS


@dataclass(slots=True)
class Total:
    """Of one system call."""

    name: str
    calls: int = 0
    errors: int = 0
    nanoseconds: int = 0


SORT_KEYS: Mapping[str, Callable[[Total], tuple[int, str]]] = {
    "time": lambda total: (-total.nanoseconds, total.name),
    "calls": lambda total: (-total.calls, total.name),
    "errors": lambda total: (-total.errors, total.name),
    "name": lambda total: (0, total.name),
}


class Summary:
    """The table that strace -c prints; time is what passed between a call's beginning and its end, sleep included."""

    def __init__(self) -> None:
        self._totals: dict[str, Total] = {}

    def add(self, name: str, nanoseconds: int, failed: bool) -> None:
        total = self._totals.setdefault(name, Total(name))
        total.calls += 1
        total.errors += failed
        total.nanoseconds += nanoseconds

    def text(self, sort_by: str) -> str:
        totals = sorted(self._totals.values(), key=SORT_KEYS[sort_by])
        # where no time passes, what is made most comes first
        if sort_by == "time" and not any(total.nanoseconds for total in totals):
            totals.sort(key=SORT_KEYS["calls"])
        whole = sum(total.nanoseconds for total in totals)
        lines = ["% time     seconds  usecs/call     calls    errors syscall", _RULE]
        lines += [_row(total, whole) for total in totals]
        sums = Total("total", sum(total.calls for total in totals), sum(total.errors for total in totals), whole)
        return "\n".join((*lines, _RULE, _row(sums, whole))) + "\n"


_RULE = "------ ----------- ----------- --------- --------- ----------------"


def _row(total: Total, whole: int) -> str:
    share = f"{100 * total.nanoseconds / whole:6.2f}" if whole else "  0.00"
    seconds = f"{total.nanoseconds / NANOSECONDS:11.6f}"
    each = total.nanoseconds // 1000 // total.calls if total.calls else 0
    return f"{share} {seconds} {each:11} {total.calls:9} {total.errors or '':>9} {total.name}"
