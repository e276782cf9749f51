"""What a task may call: its mode, and its filters, each of which may forbid more (kernel/seccomp.c)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from emulator.linux.seccomp.classic_bpf import ClassicProgram

MODE_DISABLED, MODE_STRICT, MODE_FILTER = range(3)
PENALTY = 4  # instructions that each filter counts for, besides its own
MOST_ON_A_PATH = (1 << 18) // 8  # MAX_INSNS_PER_PATH: instructions of all filters of a task
MOST_REMEMBERED = 64  # verdicts
FREE = 4096  # instructions of filters in no time; those above take a cycle each, so that a run's limits come


class Action(IntEnum):
    """SECCOMP_RET_*, the strongest first."""

    KILL_PROCESS = 0x8000_0000 - (1 << 32)
    KILL_THREAD = 0
    TRAP = 0x0003_0000
    ERRNO = 0x0005_0000
    USER_NOTIF = 0x7FC0_0000
    TRACE = 0x7FF0_0000
    LOG = 0x7FFC_0000
    ALLOW = 0x7FFF_0000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a call, and the 16 bits that its filter says of that."""

    action: Action
    data: int = 0


ALLOWED = Verdict(Action.ALLOW)
_KNOWN = {action.value: action for action in Action}


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """One of a task's, and the one that was installed before."""

    program: ClassicProgram
    previous: Filter | None = None

    def all(self) -> Iterator[Filter]:
        """The latest first."""
        one: Filter | None = self
        while one is not None:
            yield one
            one = one.previous


@dataclass(frozen=True, slots=True)
class Seccomp:
    """Linux's struct seccomp, of a task that has left MODE_DISABLED."""

    mode: int
    filter: Filter | None = None
    works_cycles: int = field(init=False, compare=False)  # that each call takes for its filters
    _loads: tuple[int, ...] = field(init=False, compare=False)  # words of which its verdicts are a function
    _verdicts: dict[tuple[int, ...], Verdict] = field(init=False, default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        loads = frozenset[int]().union(*(one.program.loads for one in self.filters()))
        object.__setattr__(self, "_loads", tuple(sorted(loads)))
        object.__setattr__(self, "works_cycles", max(self.cost() - FREE, 0))

    def filters(self) -> list[Filter]:
        return [] if self.filter is None else list(self.filter.all())

    def cost(self) -> int:
        """Instructions, of MOST_ON_A_PATH."""
        return sum(one.program.length + PENALTY for one in self.filters())

    def verdict(self, words: tuple[int, ...]) -> Verdict:
        """Of a call, as a struct seccomp_data."""
        key = tuple(words[place] for place in self._loads)
        found = self._verdicts.get(key)
        if found is None:
            if len(self._verdicts) >= MOST_REMEMBERED:
                self._verdicts.clear()
            found = self._verdicts[key] = self._judge(words)
        return found

    def _judge(self, words: tuple[int, ...]) -> Verdict:
        """The strongest that any filter says, of the same ones the latest's."""
        strongest, verdict = Action.ALLOW.value, ALLOWED
        for one in self.filters():
            answer = one.program.answer(words)
            action = answer & 0xFFFF_0000
            action -= (action >> 31) << 32  # they compare as signed numbers
            if action < strongest:
                # one that nobody knows kills the process
                strongest, verdict = action, Verdict(_KNOWN.get(action, Action.KILL_PROCESS), answer & 0xFFFF)
        return verdict
