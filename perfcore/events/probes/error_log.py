"""ErrorLog: tracefs's error_log: what was refused, and where in the line. tracing_log_err(), kernel/trace/trace.c"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from emulator.linux.errors import LinuxError

_MOST = 8  # TRACING_LOG_ERRS_MAX
_MOST_COMMAND = 255  # MAX_FILTER_STR_VAL - 1
_MICROSECONDS = 1_000_000


class TracingError(LinuxError):
    """A LinuxError that is logged: `told` in the kernel's words (ERRORS of trace_probe.h), and where it is: at a
    character of one of the words."""

    def __init__(self, code: int, told: str, word: int, at: int, why: str) -> None:
        super().__init__(code, why)
        self.told = told
        self.word = word
        self.at = at

    def position(self, words: Sequence[str]) -> int:
        """In the line of these words; behind it, if there are not so many."""
        before = sum(len(word) + 1 for word in words[: self.word])
        return before + self.at if self.word < len(words) else before


class ErrorLog:
    """The last ones."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._lines: deque[str] = deque(maxlen=_MOST)

    def add(self, place: str, told: str, command: str, position: int) -> None:
        """`place`: whose error it is, such as trace_uprobe."""
        seconds, rest = divmod(self._now_ns() // 1000, _MICROSECONDS)
        lines = (
            f"[{seconds:5}.{rest:06}] {place}: error: {told}",
            f"  Command: {command[:_MOST_COMMAND]}",
            " " * (len("  Command: ") + position % 256) + "^",
        )
        self._lines.append("".join(f"{line}\n" for line in lines))

    def text(self) -> str:
        return "".join(self._lines)

    def write(self, data: bytes) -> None:
        """Nothing comes of it."""

    def clear(self) -> None:
        self._lines.clear()
