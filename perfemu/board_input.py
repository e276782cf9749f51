"""What the user gives to a board's serial port: a file or a pipe, or the terminal at which the user sits.

A terminal is made raw for as long as the board runs, so that each key goes to the guest, Ctrl-C among them; Ctrl-A x
ends the run. Whatever ends it, the terminal is given back as it was.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from emulator.board.serial_input import Source
from perfemu.errors import PerfemuError
from perfemu.interruption import Interrupted

ESCAPE, LEAVE = b"\x01", b"x"  # Ctrl-A, as of QEMU and others
NS_PER_S = 1_000_000_000


class Left(Interrupted):
    """The user has left by keys: nobody has sent a signal."""


class Attention(Protocol):
    """Who else may say something while input is waited for: a debugger."""

    def fileno(self) -> int: ...

    def attend(self) -> bool:
        """It has: whether the wait goes on."""


class Stream:
    """A file, a pipe, a socket: the same bytes in every run. A read waits until there is a whole line."""

    is_live = False

    def __init__(self, descriptor: int, flush: Callable[[], None], attention: Attention | None = None) -> None:
        """`flush` is called before a wait, so that whoever is at the other end knows for what."""
        self._descriptor = descriptor
        self._attention = attention
        self._flush = flush
        self._read = b""
        self._ended = False

    def take(self, most: int, wait_ns: int | None) -> bytes | None:
        while b"\n" not in self._read[:most] and len(self._read) < most and not self._ended:
            self._flush()
            data = _read(self._descriptor, most) if _waited(self._descriptor, self._attention) else b""
            self._read += data
            self._ended = not data
        end = self._read.find(b"\n", 0, most) + 1 or most
        line, self._read = self._read[:end], self._read[end:]
        return line or None


class Keys:
    """A terminal."""

    is_live = True

    def __init__(self, descriptor: int, flush: Callable[[], None], attention: Attention | None = None) -> None:
        self._descriptor = descriptor
        self._attention = attention
        self._flush = flush
        self._escaped = False

    def take(self, most: int, wait_ns: int | None) -> bytes | None:
        """Raises Left where the user leaves."""
        self._flush()
        if not _waited(self._descriptor, self._attention, None if wait_ns is None else wait_ns / NS_PER_S):
            return b""
        data = _read(self._descriptor, most)
        return self._meant(data) if data else None

    def _meant(self, data: bytes) -> bytes:
        meant = bytearray()
        for key in (data[at : at + 1] for at in range(len(data))):
            if self._escaped and key == LEAVE:
                raise Left(signal.SIGINT)
            if key != ESCAPE or self._escaped:
                meant += key
            self._escaped = key == ESCAPE and not self._escaped
        return bytes(meant)


@contextmanager
def board_input(
    descriptor: int, shown: int, flush: Callable[[], None], attention: Attention | None = None
) -> Iterator[Source | None]:
    """Of the user's descriptor, which may be closed (-1). `shown`: where the guest's output appears."""
    if descriptor < 0:
        yield None
    elif not os.isatty(descriptor):
        yield Stream(descriptor, flush, attention)
    elif os.tcgetpgrp(descriptor) != os.getpgrp():
        yield None  # in the background, where a read would stop us
    elif shown < 0 or not os.isatty(shown):
        yield Keys(descriptor, flush, attention)
    else:
        before = termios.tcgetattr(descriptor)
        give_back = partial(termios.tcsetattr, descriptor, termios.TCSADRAIN, before)
        atexit.register(give_back)  # should something else than an exception end us
        try:
            _make_raw(descriptor)
            yield Keys(descriptor, flush, attention)
        finally:
            give_back()
            atexit.unregister(give_back)


def _make_raw(descriptor: int) -> None:
    """But for output: lines of our own on standard error end there, too."""
    output_modes = termios.tcgetattr(descriptor)[1]
    tty.setraw(descriptor)
    modes = termios.tcgetattr(descriptor)
    modes[1] = output_modes
    termios.tcsetattr(descriptor, termios.TCSADRAIN, modes)


def _waited(descriptor: int, attention: Attention | None, most_s: float | None = None) -> bool:
    """Until something can be read there: whether it can, before the time is over."""
    while True:
        other = -1 if attention is None else attention.fileno()
        ready, _, _ = select.select([descriptor] if attention is None else [descriptor, other], [], [], most_s)
        if attention is None or other not in ready:
            return descriptor in ready
        if not attention.attend():
            return False


def _read(descriptor: int, most: int) -> bytes:
    try:
        select.select([descriptor], [], [])  # should it not wait by itself
        return os.read(descriptor, most)
    except OSError as problem:
        raise PerfemuError(f"standard input: {os.strerror(problem.errno or 0)}") from None
