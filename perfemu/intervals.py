"""Intervals: what a run has counted in each of some spans of it, as perf stat -I prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from perfemu.counters import Counters, MeasuredRun
from perfemu.interruption import Interruption
from perfemu.moments import Span, When, let_switch
from perfemu.run_times import RunTimes
from perfemu.statistics.counts import Counts, Label, Reading

Readings = Sequence[Reading | None]
Parts = list[tuple[Label, Readings]]

ShowInterval = Callable[[int, Counts], None]
"""Given when it ended, in ns since the counting began, and what was counted in it."""

MakeCounts = Callable[[Readings, Parts, RunTimes], Counts]


class Intervals:
    """Reads the counters at the end of each interval."""

    def __init__(
        self,
        run: MeasuredRun,
        counters: Counters,
        interruption: Interruption,
        make: MakeCounts,
        show: ShowInterval,
    ) -> None:
        self._run, self._counters, self._interruption = run, counters, interruption
        self._make, self._show = make, show
        self._begin_ns = self._last_ns = 0
        self._sums: Readings = ()
        self._parts: list[Readings] = []
        self._left: int | None = 0  # intervals; None: to the end

    def begin(self, every: Span, most: int | None) -> None:
        """From now on; `most` of them, then none any more."""
        self._begin_ns = self._last_ns = self._run.elapsed_ns()
        self._left = most
        self._run.every(every, self._tick)

    def _tick(self) -> bool:
        self._interruption.hold()
        try:
            return self._end(self._run.elapsed_ns())
        finally:
            self._interruption.release()

    def last(self, now_ns: int) -> None:
        """What is left at the end of the run."""
        if self._left != 0 and now_ns > self._last_ns:
            self._end(now_ns)

    def _end(self, now_ns: int) -> bool:
        """Whether there is another."""
        sums, parts = self._counters.sums(), self._counters.parts()
        known = [*self._parts, *((),) * (len(parts) - len(self._parts))]
        new = [(label, _difference(own, before)) for (label, own), before in zip(parts.items(), known, strict=True)]
        times = RunTimes(now_ns - self._last_ns, 0)
        self._show(now_ns - self._begin_ns, self._make(_difference(sums, self._sums), new, times))
        self._sums, self._parts, self._last_ns = sums, list(parts.values()), now_ns
        if self._left is not None:
            self._left -= 1
        return self._left != 0


class Timed:
    """The moments of one run that is counted. Make it before the run."""

    def __init__(
        self,
        run: MeasuredRun,
        counters: Counters,
        when: When,
        interruption: Interruption,
        make: MakeCounts,
        on_interval: ShowInterval | None,
        on_switch: Callable[[bool], None] | None,
    ) -> None:
        self._run, self._counters, self._when = run, counters, when
        self._begun_ns: int | None = None
        self._intervals = None if on_interval is None else Intervals(run, counters, interruption, make, on_interval)
        let_switch(run, when, self._switch, on_switch)
        if not when.toggles:
            self._begin()

    def _begin(self) -> None:
        self._begun_ns = self._run.elapsed_ns()
        if self._intervals is not None and self._when.every is not None:
            self._intervals.begin(self._when.every, self._when.most)

    def _switch(self, on: bool, name: str) -> None:
        self._counters.switch(on, name)
        if on and self._begun_ns is None:
            self._begin()

    def ended(self, times: RunTimes) -> RunTimes:
        """After the run: of what was counted. Time passes for perf, too, only once it has begun to count."""
        if self._intervals is not None:
            self._intervals.last(times.elapsed_ns)
        begun_ns = times.elapsed_ns if self._begun_ns is None else self._begun_ns
        return replace(times, elapsed_ns=times.elapsed_ns - begun_ns)


def _difference(now: Iterable[Reading | None], before: Readings) -> Readings:
    """`before` is empty at first."""
    rows = list(now)
    earlier = before or [Reading(0, 0, 0)] * len(rows)
    return [
        None
        if reading is None or was is None
        else Reading(
            reading.value - was.value, reading.enabled_ns - was.enabled_ns, reading.running_ns - was.running_ns
        )
        for reading, was in zip(rows, earlier, strict=True)
    ]
