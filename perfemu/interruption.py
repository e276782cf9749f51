"""Interruption: Ctrl-C, SIGTERM and SIGHUP end the guest's run at once, but never amid what must be whole."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import NoReturn

from emulator.linux.tty.console import Console

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KEPT_IGNORED = (signal.SIGHUP,)  # by nohup(1)
_Handler = Callable[[int, FrameType | None], object] | int | None


class Interrupted(KeyboardInterrupt):
    """The user has sent a signal. Not an Exception: nothing between here and the command may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interruption:
    """While entered, a signal raises Interrupted; between `hold` and `release` it waits for `release`.

    Outside of the main thread nothing is installed, because Python's handlers run there only. It may be entered again
    while it is entered: the outermost exit gives the handlers back.
    """

    def __init__(self) -> None:
        self._held = False
        self._pending = 0
        self._depth = 0
        self._before: dict[int, _Handler] = {}

    def __enter__(self) -> Interruption:
        self._depth += 1
        if self._depth == 1 and threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if number in _KEPT_IGNORED and signal.getsignal(number) == signal.SIG_IGN:
                    continue
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._held:
            self._pending = number
        else:
            self._held = True  # one is enough: what follows is the orderly end
            raise Interrupted(number)

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self._held = False
        if self._pending:
            number, self._pending = self._pending, 0
            self._held = True
            raise Interrupted(number)


class SignalKeys(Interruption):
    """While entered, a signal of the user's goes to the guest's foreground, which may handle it. Kept: the last one."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        console.connect()
        self._console = console
        self.last: int | None = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.last = number
        self._console.press(number)


def die_of(number: int) -> NoReturn:
    """End this process by the signal, as perf does when it has finished its output, so that the shell sees why."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise SystemExit(128 + number)  # blocked, maybe: the status that the shell would have seen
