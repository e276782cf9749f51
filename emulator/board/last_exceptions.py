"""LastExceptions: what a CPU has been through, for people, when its guest comes to an end that nobody meant.

Those that instructions make, as they come by; interrupts are not among them. AArch64's are kept here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from emulator.board.syndromes import ExceptionClass, described
from emulator.cpu import Level

MOST = 8  # that are kept, of each CPU, and told, of all


class Taken(Protocol):
    """An exception, of whatever architecture; its text is for people."""

    @property
    def cycle(self) -> int: ...

    @property
    def place(self) -> Hashable:
        """All but the cycle: what comes again is the same."""

    @property
    def is_kernels(self) -> bool:
        """Made by the guest's kernel, and no call."""


@dataclass(frozen=True, slots=True)
class TakenException:
    """To EL1. `address`: FAR_EL1, if the exception has set it."""

    cycle: int
    cpu: int
    level: int  # from there ...
    pc: int  # ... ELR_EL1
    cause: int  # ESR_EL1
    address: int | None

    @property
    def place(self) -> tuple[int, int, int, int, int | None]:
        return self.cpu, self.level, self.pc, self.cause, self.address

    @property
    def is_kernels(self) -> bool:
        """Made by the guest's kernel, and no call."""
        return self.level == Level.KERNEL and self.cause >> 26 != ExceptionClass.SVC

    def __str__(self) -> str:
        far = "" if self.address is None else f", FAR {self.address:#x}"
        return f"cycle {self.cycle} CPU {self.cpu} EL{self.level} {self.pc:#x}: {described(self.cause)}{far}"


class LastExceptions:
    """The last ones of one CPU."""

    def __init__(self) -> None:
        self._taken: deque[tuple[int, int, int, int, int, int | None]] = deque(maxlen=MOST)  # fields of a row each

    def note(self, cycle: int, cpu: int, level: int, pc: int, cause: int, address: int | None) -> None:
        self._taken.append((cycle, cpu, level, pc, cause, address))

    @property
    def rows(self) -> list[TakenException]:
        return [TakenException(*each) for each in self._taken]

    @property
    def goes_round(self) -> bool:
        """Whether they are one or two at EL1, over and over: handlers that make exceptions."""
        return go_round(self.rows)


def go_round(rows: Sequence[Taken]) -> bool:
    """Whether so many as are kept are one or two of the kernel's, over and over."""
    places = {each.place for each in rows if each.is_kernels}
    return len(rows) == MOST and len(places) <= 2 and all(each.place in places for each in rows)


def told(rows: Iterable[Taken]) -> list[str]:
    """Lines: the last of them, the last one last; what comes again is one line."""
    lines: list[str] = []
    last = sorted(rows, key=lambda each: each.cycle)[-MOST:]
    for number, each in enumerate(last):
        again = number and each.place == last[number - 1].place
        if not again:
            lines.append(f"exception: {each}")
        elif number + 1 == len(last) or last[number + 1].place != each.place:
            times = sum(1 for other in last[: number + 1] if other.place == each.place)
            lines[-1] += f"; {times} times"
    return lines
