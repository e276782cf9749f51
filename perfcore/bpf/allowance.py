"""Allowance: how much of the host's time BPF may take, all programs of a machine together.

Programs take no time of the guest's, so that no limit of the guest's would end what they do.
"""

from __future__ import annotations

from collections.abc import Callable

FREE = 10_000_000  # instructions of programs: seconds of the host's time
PER_INSTRUCTION = 100  # ... more for each that the guest executes


class Allowance:
    """In instructions of programs that have been run; one that is verified counts as several."""

    def __init__(self, executed: Callable[[], int]) -> None:
        """`executed`: how many instructions the guest has executed."""
        self._executed = executed
        self._left = FREE
        self._allowed = 0  # instructions of the guest's that are counted in what is left

    def spend(self, instructions: int) -> None:
        self._left -= instructions

    def left(self, most: int) -> int:
        """At most `most`; 0 or less: nothing."""
        if self._left < most:
            executed = self._executed()
            self._left += PER_INSTRUCTION * (executed - self._allowed)
            self._allowed = executed
        return min(self._left, most)
