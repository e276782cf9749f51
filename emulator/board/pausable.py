"""Pausable: what listens to a core for a board's guest, and does not while the board is saved or restored."""

from __future__ import annotations

from typing import Protocol


class Pausable(Protocol):
    """A PMU, or a unit that observes execution."""

    def pause(self) -> None:
        """Nothing of it listens to the core until `resume`."""

    def resume(self) -> None:
        """It goes on where it was, or where what was restored was."""
