"""EventRoom: how many events guests may have, opened and inherited ones: each takes the host's memory."""

from __future__ import annotations

from emulator.linux.errors import ENOMEM, LinuxError
from perfcore.events.event import PerfEvent

RAM_OF_EVENT_BYTES = 8192  # an event is as much of the host's


class EventRoom:
    """Of one subsystem. None for `most`: as many as there are, for they are the user's own."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.used = 0

    def check(self, count: int) -> None:
        """ENOMEM: there is no room for so many more."""
        if self.most is not None and self.used + count > self.most:
            raise LinuxError(ENOMEM, f"{self.used} events, and {count} more: there may be {self.most}")

    def take(self, event: PerfEvent) -> None:
        """Until it is gone."""
        self.used += 1
        event.when_destroyed.append(self._give_back)

    def _give_back(self, event: PerfEvent) -> None:
        self.used -= 1
