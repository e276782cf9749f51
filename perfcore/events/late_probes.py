"""LateProbes: events that are defined while the machine runs. What makes them is loaded when somebody first does: who
does not, starts sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from emulator.linux.fs.virtual_files import Row
from emulator.linux.tracepoint import Tracepoint
from perfcore.abi.tracepoints import TracepointEvent
from perfcore.events.event import PerfEvent


class DefinedEvent(Protocol):
    """One of them (probes.probe_event.ProbeEvent)."""

    described: TracepointEvent
    in_kernel: bool
    told: Tracepoint[Any]

    @property
    def is_busy(self) -> bool: ...

    def open(self, listening: PerfEvent) -> None:
        """Raises LinuxError."""

    def close(self, listening: PerfEvent) -> None: ...


class Definitions(Protocol):
    """All of one subsystem (probes.definitions.ProbeDefinitions)."""

    def find(self, id: int) -> DefinedEvent | None:
        """By attr.config."""

    def local(self, pmu: str, event: PerfEvent) -> DefinedEvent:
        """What `event` itself asks of the PMU kprobe or uprobe. Raises LinuxError."""

    def event_files(self) -> Iterator[Row]:
        """tracefs's files of all tracepoints."""

    def text(self, name: str) -> str:
        """Of a file of tracefs."""

    def store(self, name: str, data: bytes) -> None:
        """Lines have been written there. Raises LinuxError."""

    def clear(self, name: str) -> None:
        """It has been opened to be overwritten. Raises LinuxError."""


class LateProbes:
    """Those of one subsystem, made when they are wanted."""

    def __init__(self, make: Callable[[], Definitions]) -> None:
        self._make = make
        self._made: Definitions | None = None

    def get(self) -> Definitions:
        if self._made is None:
            self._made = self._make()
        return self._made

    def find(self, id: int) -> DefinedEvent | None:
        """None as well where nothing has been defined."""
        return None if self._made is None else self._made.find(id)
