"""EventContext: what an event asks of the context that it is in."""

from __future__ import annotations

from typing import Protocol, TypeVar

from emulator.linux.process.task import Task

Event = TypeVar("Event", contravariant=True)  # PerfEvent


class EventContext(Protocol[Event]):
    """The events of one task or CPU (a PerfEventContext), as an event sees it."""

    @property
    def task(self) -> Task | None: ...

    def time(self) -> int:
        """ns in which the context was on a CPU."""

    def settle(self) -> None:
        """The context's events are about to be looked at."""

    def enabled(self, event: Event) -> None:
        """`event` has become INACTIVE: put it on its PMU if it can go."""

    def mapped(self, event: Event) -> None:
        """A guest has mapped the event's page."""

    def unmapped(self, event: Event) -> None:
        """... no more."""

    def changed(self) -> None:
        """It is no longer like the contexts that were inherited from it, nor like the one it was inherited from."""

    def take_off(self, event: Event) -> None:
        """Take `event`, and its group if it leads one, off the PMU."""

    def remove(self, event: Event) -> None:
        """Forget `event`."""
