"""Ending: how the guest's program ended, and what a shell would make of it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

_UNREMARKABLE = (signal.SIGINT, signal.SIGPIPE)  # shells end these programs without a word
STOPPED = 124  # exit status of a program that a limit ended, as timeout(1)


@dataclass(frozen=True, slots=True)
class Ending:
    """A wait status word (wait(2)) in plain terms."""

    wait_status: int
    stopped: str | None = None  # by which limit, if one ended it

    @property
    def signal(self) -> int | None:
        """The signal that killed the program."""
        return os.WTERMSIG(self.wait_status) if os.WIFSIGNALED(self.wait_status) else None

    @property
    def exit_status(self) -> int:
        """As a shell's ``$?``: 128 + n for signal n; 124 if a limit ended the program."""
        if self.stopped is not None:
            return STOPPED
        number = self.signal
        return os.WEXITSTATUS(self.wait_status) if number is None else 128 + number

    @property
    def message(self) -> str | None:
        """``Segmentation fault``, where the shell would say so."""
        if self.stopped is not None:
            return f"stopped: {self.stopped}"
        number = self.signal
        if number is None or number in _UNREMARKABLE:
            return None
        return signal.strsignal(number) or f"Signal {number}"
