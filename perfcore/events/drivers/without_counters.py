"""What the drivers of events share that need no counter of a PMU: they always fit, and user space cannot read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.structures import TICK_NS
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import AuxUnit, Saved
from perfcore.events.programs import ProgramArray
from pmu.event_source import EventSource


class WithoutCounters:
    """Their place among PMUs, and the verbs that are about counters."""

    is_software = True
    is_hardware = False
    is_called_by_no_nmi = False
    counts_tasks = True
    aux: AuxUnit[PerfEvent] | None = None
    writes_aux = False
    mux_interval_ns = TICK_NS  # of those that ever wait

    def pmu_disable(self, cpu: Cpu) -> None:
        """Each comes and goes by itself."""

    def pmu_enable(self, cpu: Cpu) -> None:
        """All of them have."""

    def save(self, cpu: Cpu, events: Callable[[], Sequence[PerfEvent] | None], last: Saved | None) -> Saved | None:
        return None

    def restore(self, cpu: Cpu, saved: Saved) -> bool:
        return False

    def set_filter(self, event: PerfEvent, text: str) -> None:
        raise LinuxError(EINVAL, f"events of {event.driver.name} have no filters")

    def programs(self, event: PerfEvent) -> ProgramArray | None:
        return None

    def event_mapped(self, event: PerfEvent) -> None:
        """There is no counter to read."""

    def event_unmapped(self, event: PerfEvent) -> None:
        """There was none."""

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """There is none on any CPU."""


class CountedAsTold(WithoutCounters):
    """Events that are counted as they happen."""

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        event.hw.stopped = False

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        event.hw.stopped = True

    def read(self, event: PerfEvent) -> None:
        """Counts are always up to date."""


class CountedByReading(WithoutCounters, ABC):
    """Events of what always runs: `hw.prev_count` is what it was when it was last looked at."""

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        self.start(event, reload=True)
        return True

    def del_(self, event: PerfEvent) -> None:
        self.stop(event)

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        event.hw.stopped = False
        event.hw.prev_count = self._now(event)

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        self.read(event)
        event.hw.stopped = True

    def read(self, event: PerfEvent) -> None:
        hw = event.hw
        if not hw.stopped:
            now = self._now(event)
            event.counted += now - hw.prev_count
            hw.prev_count = now

    @abstractmethod
    def _now(self, event: PerfEvent) -> int:
        """What it is at the moment; `event` is on a CPU."""


def refuse_what_it_cannot(event: PerfEvent, source: EventSource) -> None:
    """PERF_PMU_CAP_NO_INTERRUPT, PERF_PMU_CAP_NO_EXCLUDE: of a PMU that knows neither samples nor levels."""
    excluded = ("user", "kernel", "hv", "idle", "host", "guest")
    asked = [f"exclude_{what}" for what in excluded if getattr(event.attr, f"exclude_{what}")]
    if asked:
        raise LinuxError(EINVAL, f"{source.name}: {', '.join(asked)}: it counts whatever happens")
    if event.is_sampling:
        code = EINVAL if source.system_wide and event.of_task else source.sampling_error  # tasks are looked at before
        why = f"{source.name}: its counters do not interrupt, so that nothing can be sampled by them"
        raise LinuxError(code, why)
