"""Progress: one line on the terminal while a long run goes on: guest instructions so far, and how fast."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TextIO

from emulator.linux.tty.console import Console

INTERVAL_S = 0.2
PATIENCE_S = 1.0  # a run that is shorter shows nothing
_CLEAR_LINE = "\r\x1b[K"
_UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def short_count(count: float) -> str:
    """Three digits or four and a unit: 12.3 M."""
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f}"


@dataclass(frozen=True, slots=True)
class Limit:
    """Where a run ends, if it does not before."""

    reached: Callable[[], int]  # may be asked wherever the core looks for signals
    most: int


class Progress:
    """While entered, shows the line; leaving clears it. Does nothing where `stream` is no terminal.

    On the guest's terminal it stays away from where the guest and the user talk, and goes before the guest writes.

    An interval timer's signal handler prints it: that runs in the main thread, where the core looks for signals between
    two blocks, so the count it reads is consistent and the guest's run is not touched.
    """

    def __init__(
        self, stream: TextIO, instructions: Callable[[], int], console: Console, limits: Sequence[Limit] = ()
    ) -> None:
        self._stream = stream
        self._instructions = instructions
        self._console = console
        self._limits = limits  # with them the time that is left is known
        self._wanted = stream.isatty() and threading.current_thread() is threading.main_thread()
        self._shown = False
        self._start = 0.0
        self._last = (0.0, 0, [0] * len(limits))  # time, instructions, what each limit had reached

    def __enter__(self) -> Progress:
        if self._wanted:
            self._start = time.monotonic()
            self._last = (self._start, self._instructions(), [limit.reached() for limit in self._limits])
            self._console.before_output = self._clear
            signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_S, INTERVAL_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._wanted:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._console.before_output = None
            self._clear()

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()

    def _tick(self, number: int, frame: FrameType | None) -> None:
        if self._console.is_free:
            self._shown = True
            self._stream.write(f"{_CLEAR_LINE}{self.line(time.monotonic())}\r")
            self._stream.flush()

    def line(self, now: float) -> str:
        """The line at host time `now`, and from then on the speed since `now`."""
        instructions, reached = self._instructions(), [limit.reached() for limit in self._limits]
        before, count_before, reached_before = self._last
        self._last = (now, instructions, reached)
        took = max(now - before, 1e-9)
        left = [
            max(limit.most - here, 0) * took / (here - there)
            for limit, here, there in zip(self._limits, reached, reached_before, strict=True)
            if here > there
        ]
        texts = [f"{short_count(instructions)} instructions", f"{(instructions - count_before) / took / 1e6:.0f} MIPS"]
        texts.append(f"{now - self._start:.0f} s")
        if left:
            texts.append(f"{min(left):.0f} s left at most")
        return f"[ perfemu: {', '.join(texts)} ]"
