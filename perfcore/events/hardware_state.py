"""HardwareState: what a driver keeps with an event: counter, period. As struct hw_perf_event."""

from __future__ import annotations

from collections.abc import Callable

from perfcore.events.recorded_branches import RecordedBranches
from pmu.device import Pmu


class HardwareState:
    """One event's part in its driver. Fields that a kind of driver has no use for stay as they are here."""

    __slots__ = (
        "accessed",
        "branches",
        "code",
        "config",
        "counter_mask",
        "early",
        "expiry",
        "idx",
        "index_among",
        "index_then",
        "last_period",
        "longest_period",
        "missed",
        "pebs",
        "period_left",
        "pmu",
        "prev_count",
        "read_counter",
        "sample_period",
        "samples_vectors",
        "stopped",
        "user_index",
        "write_counter",
    )

    def __init__(self, sample_period: int) -> None:
        self.config = 0  # as the driver's selecting register takes it
        self.code = 0  # the part of `config` that fixed counters are chosen by
        self.idx = -1  # counter, -1 for none
        self.samples_vectors = False  # PERF_PMU_CAP_EXTENDED_REGS, of those that sample_regs_intr names
        self.pebs: object = None  # of Intel's precise events: what their driver knows of their records
        self.prev_count = 0  # the counter's value when it was last read or set
        self.sample_period = sample_period
        self.last_period = sample_period  # of the period that is running: PERF_SAMPLE_PERIOD
        self.period_left = sample_period  # events until the next overflow
        self.missed = 0  # periods that ended together with the last one, each without an overflow of its own
        self.index_among = -1  # the counters that were taken when a counter was found last, as a mask
        self.index_then: int | None = None  # ... and which it was
        self.pmu: Pmu | None = None  # whose counter `accessed` is
        self.accessed = -1  # the counter that these read and write: by its register
        self.read_counter: Callable[[], int]
        self.write_counter: Callable[[int], None]
        self.counter_mask = 0  # the counter's bits
        self.longest_period = 0  # that can be programmed at once
        self.early = 0  # so many events before a period ends, its counter overflows
        self.expiry = 0  # ns: when a clock event's timer fires
        self.stopped = True
        self.branches: RecordedBranches | None = None  # if it samples them
        self.user_index = 0  # what user space reads the counter by, plus one; 0: it may not

    def signed_prev_count(self) -> int:
        """`prev_count` as user space sees the counter: sign-extended from its width."""
        value = self.prev_count
        return value - self.counter_mask - 1 if value > self.counter_mask >> 1 else value
