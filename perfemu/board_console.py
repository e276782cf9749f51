"""Console: the serial port's bytes on a stream of the host's."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from emulator.linux.fs.nodes import OutputBudget


class Console:
    """The serial port's bytes on a stream: whole lines, and no more of them than a guest may write."""

    def __init__(self, output: BinaryIO, budget: OutputBudget, full: Callable[[], None]) -> None:
        """`full` is called with each byte that is not written: a serial port has no way to refuse it."""
        self._output = output
        self._budget = budget
        self._full = full

    def __call__(self, data: bytes) -> None:
        granted = self._budget.granted(len(data))
        self._output.write(data[:granted])
        if data == b"\n" and granted:
            self._output.flush()
        if granted < len(data):
            self._full()
