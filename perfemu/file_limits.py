"""FileLimits: when a recording goes on in another file, or ends because its file is as large as it may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from perfcore.events.event import PerfEvent
from perfemu.destination import NO_SWITCHING, Destinations, Switching
from perfemu.draining import Drain
from perfemu.moments import Clockwork

RING_BUFFER_PAGES = 128  # of 4 KiB: perf's default, 512 KiB
AUX_PAGES = 1024  # ... of an AUX area: 4 MiB, as for who may lock as much


@dataclass(frozen=True, slots=True)
class Files:
    """What becomes of the records."""

    pages: int = RING_BUFFER_PAGES  # of each buffer
    aux_pages: int | None = None  # of the AUX area beside it; None: as many as it takes
    most_bytes: int | None = None  # of a file; then the run ends: --max-size
    switching: Switching = NO_SWITCHING


ONE_FILE = Files()


class LimitedRun(Clockwork, Protocol):
    """What is recorded (a ``RecordedRun``)."""

    def stop(self, why: str) -> None:
        """End it soon, between two instructions."""

    def on_signal(self, call: Callable[[], object]) -> None:
        """Call it whenever the guest sends its parent SIGUSR2."""

    def living(self, event: PerfEvent) -> bytes:
        """The records that `event` would have of the tasks that there are now, and of what they have mapped."""


class FileLimits:
    """Looks after each round of records, and at the moments at which a file is to end. Make it before the run."""

    def __init__(
        self, run: LimitedRun, tracking: Sequence[PerfEvent], drain: Drain, destinations: Destinations, files: Files
    ) -> None:
        """`tracking`: the events that tell of tasks and mappings; the first of them does at a file's beginning."""
        self.reached = False
        self._run, self._tracking = run, tracking[0]
        self._drain, self._destinations, self._files = drain, destinations, files
        drain.after_round = self._look
        if files.switching.every is not None:
            run.every(files.switching.every, self._tick)
        if files.switching.by_signal:
            run.on_signal(self._tick)

    def _look(self) -> None:
        written = self._destinations.writer.data_bytes
        if self._files.most_bytes is not None and written >= self._files.most_bytes and not self.reached:
            self.reached = True
            self._run.stop(f"{self._files.most_bytes} bytes of records are written (--max-size)")
        elif self._destinations.is_full:
            self._next()

    def _tick(self) -> bool:
        with self._drain.held():
            self._next()
        return True

    def _next(self) -> None:
        """All that is known so far goes to this file; the next one begins with the tasks that there are."""
        self._drain.now(newest=True)
        self._destinations.begin()
        self._destinations.writer.write(self._run.living(self._tracking))
