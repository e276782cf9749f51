"""The drivers of cpu-clock and task-clock: guest time, sampled by timers. As perf_cpu_clock and perf_task_clock.

A timer fires at an exact cycle, as an hrtimer would if it had no latency. Both clocks pass while the event's CPU runs
the event's context; they differ only for events of a CPU, where task-clock too is that CPU's.
"""

from __future__ import annotations

from functools import partial

from emulator.cpu import Cpu, Level
from emulator.linux.errors import ENOENT, EOPNOTSUPP, LinuxError
from perfcore.abi.constants import CLOCKS, PerfType, SampleType, SoftwareId
from perfcore.events.drivers.without_counters import CountedByReading
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux, Timer

SHORTEST_PERIOD_NS = 10_000


class ClockDriver(CountedByReading):
    """One of the two clocks. `hw.expiry` is when it samples."""

    type = int(PerfType.SOFTWARE)
    is_called_by_no_nmi = True

    def __init__(self, kernel: Linux, config: SoftwareId) -> None:
        self.name = config.name.lower()
        self._kernel = kernel
        self._config = config
        self._timers: dict[PerfEvent, Timer] = {}

    def event_init(self, event: PerfEvent) -> None:
        """A frequency is a fixed period here (perf_swevent_init_hrtimer)."""
        attr = event.attr
        if attr.type != PerfType.SOFTWARE or attr.config != self._config:
            raise LinuxError(ENOENT, f"type {attr.type} config {attr.config} is not {self.name}")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, f"{self.name} has no branch records")
        if event.is_sampling and attr.freq:
            attr.sample_period = 1_000_000_000 // attr.sample_period
            attr.freq = 0
            event.set_fixed_period(attr.sample_period)

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        super().start(event, reload)
        hw = event.hw
        if event.is_sampling:
            left = hw.period_left
            hw.period_left = 0
            hw.expiry = self._elapsed_ns(event) + (left or max(hw.sample_period, SHORTEST_PERIOD_NS))
            self._set_timer(event)

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        hw = event.hw
        if hw.stopped:
            return
        super().stop(event, update)
        timer = self._timers.pop(event, None)
        if timer is not None:
            timer.cancel()
            hw.period_left = max(hw.expiry - self._elapsed_ns(event), SHORTEST_PERIOD_NS)

    def _now(self, event: PerfEvent) -> int:
        """ns of this clock."""
        if self._config == SoftwareId.TASK_CLOCK:
            return event.context.time()
        return self._elapsed_ns(event)

    def _elapsed_ns(self, event: PerfEvent) -> int:
        """By the clock of the CPU that it is on."""
        assert event.on_cpu is not None, "a clock that is not stopped is on a CPU"
        return self._kernel.clock.at(event.on_cpu.core.cycles)

    def _counts(self, event: PerfEvent, cpu: Cpu) -> bool:
        """Whether what `cpu` does at the moment is the event's. Idle time is the kernel's."""
        if self._kernel.executes:
            return event.counts_at(cpu.level)
        if self._kernel.current(cpu) is None:
            return event.counts_at(Level.KERNEL) and not event.attr.exclude_idle
        return event.counts_at(Level.USER)

    def _set_timer(self, event: PerfEvent) -> None:
        cycle = self._kernel.clock.cycle_at(event.hw.expiry)
        self._timers[event] = self._kernel.add_timer(cycle, partial(self._expired, event), event.on_cpu)

    def _expired(self, event: PerfEvent) -> None:
        """perf_swevent_hrtimer. If idle time has passed several periods at once: one sample (hrtimer_forward_now)."""
        hw = event.hw
        cpu = event.on_cpu
        if hw.stopped or cpu is None:
            return
        self.read(event)
        restart = True
        if self._counts(event, cpu) and event.overflow(cpu, hw.last_period):
            restart = False
        if event.hw.stopped:  # the overflow may have disabled it
            return
        if not restart:
            del self._timers[event]
            return
        period = max(hw.sample_period, SHORTEST_PERIOD_NS)
        passed = self._elapsed_ns(event) - hw.expiry
        hw.expiry += (passed // period + 1) * period
        self._set_timer(event)


def software_clocks(kernel: Linux) -> list[ClockDriver]:
    return [ClockDriver(kernel, clock) for clock in CLOCKS]
