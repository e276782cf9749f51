"""Choices: what a scheduler may decide one way or another. Without a seed always the same way, with one at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from emulator.linux.random import Random

T = TypeVar("T")


class Choices:
    """Every seed is another interleaving, which comes again with the seed. It has nothing to do with guests' bytes."""

    def __init__(self, seed: int | None) -> None:
        self._random = None if seed is None else Random(seed)

    def length(self, cycles: int) -> int:
        """Of a turn or a slice: all of `cycles`, or at random no less than half."""
        if self._random is None:
            return cycles
        half = cycles // 2
        return max(cycles - self._random.word() % (half + 1), 1)

    def shortest(self, cycles: int, times: int) -> int:
        """Of as many lengths."""
        if self._random is None:
            return cycles
        return min([self.length(cycles) for _ in range(times)])

    def one(self, candidates: Sequence[T]) -> T:
        """The first, or any."""
        if self._random is None or len(candidates) == 1:
            return candidates[0]
        return candidates[self._random.word() % len(candidates)]
