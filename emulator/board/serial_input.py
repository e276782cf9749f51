"""SerialInput: when bytes from outside reach the serial port, in guest time, so that equal bytes give equal runs.

A file or a pipe is read once the guest wants to be interrupted by bytes and the port has been quiet for a while, as by
somebody who types a line and waits for what it does; or when the guest has looked for bytes many times in a row. If a
pipe has nothing yet, the whole board stands still until it has, or ends. A terminal is asked again and again instead:
when its user types is part of what the user does. A board that idles waits for the user in the meantime, as long as it
would have idled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.clock import Clock

QUIET_NS = 100_000_000  # between a line and the next, after the port was in use last
LOOK_NS = 10_000_000  # between two looks at a terminal
MOST_BYTES = 1024  # at once, of a longer line: drivers have room for some thousands


class Source(Protocol):
    """Where the bytes come from. Once it has ended, it is asked no more."""

    is_live: bool  # somebody types: it gives what is there, while a dead one waits until there is something

    def take(self, most: int, wait_ns: int | None) -> bytes | None:
        """At most so many, of one line; None at its end. `wait_ns`: of the host's time, for a live one that has nothing
        now; None: for ever."""


class Port(Protocol):
    """What receives: a serial port, or another console."""

    transfers: int  # that it has made, of bytes or more
    when_polled: Callable[[], None] | None  # called when somebody looks for bytes again and again

    @property
    def wants_input(self) -> bool:
        """Whether somebody waits to be interrupted by bytes, and has read all there were."""

    def receive(self, data: bytes) -> None: ...


class SerialInput:
    """A port's bytes from one source."""

    def __init__(self, source: Source | None, port: Port, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        port.when_polled = self._give_at_once
        self.connect(source, 0)

    def connect(self, source: Source | None, now: int) -> None:
        """The port receives from there, from cycle `now` on."""
        self._source = source
        self._transfers = self._port.transfers  # when it was looked at last
        self._every = self._clock.reference_in(LOOK_NS if source is not None and source.is_live else QUIET_NS)
        self._due_cycle = self._clock.after(now, self._every)

    @property
    def due_cycle(self) -> int | None:
        """When it wants to be looked at next; None: never again."""
        return None if self._source is None else self._due_cycle

    @property
    def idle_cycle(self) -> int | None:
        """The same while all CPUs wait: if nobody wants bytes, or a user types them, nothing is due."""
        return self._due_cycle if self.awaited and self._source is not None and not self._source.is_live else None

    @property
    def awaited(self) -> bool:
        """Whether the guest wants bytes, and some may come."""
        return self._source is not None and self._port.wants_input

    def look(self, now: int) -> bool:
        """It is cycle `now`: let the port receive what is due. Whether there was something."""
        source = self._source
        if source is None or now < self._due_cycle:
            return False
        self._due_cycle = self._clock.after(now, self._every)
        is_quiet = self._transfers == self._port.transfers
        self._transfers = self._port.transfers
        return self._port.wants_input and (is_quiet or source.is_live) and self._receive(source, 0)

    def wait(self, ns: int | None) -> bool:
        """All CPUs would idle for so long, or for ever: whether something has come instead, from a live source."""
        source = self._source
        if source is None or not source.is_live or not self._port.wants_input:
            return False
        return self._receive(source, ns)

    def _give_at_once(self) -> None:
        if self._source is not None:
            self._receive(self._source, 0)

    def _receive(self, source: Source, wait_ns: int | None) -> bool:
        data = source.take(MOST_BYTES, wait_ns)
        if data is None:
            self._source = None
        if data:
            self._port.receive(data)
        return bool(data)
