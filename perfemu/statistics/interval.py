"""Interval: how perf stat -I prints what was counted in one interval, after another; as print_interval() of
tools/perf/util/stat-display.c. Each line begins with when it ended, in seconds since counting began.
"""

from __future__ import annotations

from collections.abc import Callable

from perfemu.scope import Split
from perfemu.statistics.counts import Counts
from perfemu.statistics.json_lines import json_report
from perfemu.statistics.metric_only import metrics_alone
from perfemu.statistics.separated import separated_report
from perfemu.statistics.text import event_lines, unit_width

LINES_BEFORE_HEADING = 25  # intervals
CLEAR = "\x1b[H\x1b[2J"
_HEADINGS = {
    Split.CPUS: "#           time CPU       ",
    Split.SOCKETS: "#           time socket cpus",
    Split.DIES: "#           time die          cpus",
    Split.CORES: "#           time core            cpus",
    Split.THREADS: "#           time             comm-pid     ",
}
_PLAIN_HEADING = "#           time"


class IntervalPrinter:
    """Prints one interval after the other."""

    def __init__(
        self,
        write: Callable[[str], object],
        *,
        grouping: bool = True,
        separator: str | None = None,
        as_json: bool = False,
        metric_only: bool = False,
        clears: bool = False,
    ) -> None:
        """`clears`: the screen, before each."""
        self._write = write
        self._grouping = grouping
        self._separator = separator
        self._as_json = as_json
        self._metric_only = metric_only
        self._clears = clears
        self._shown = 0

    def show(self, end_ns: int, counts: Counts) -> None:
        """What an interval came to that ended there."""
        seconds, ns = divmod(end_ns, 1_000_000_000)
        time = f"{seconds:6}.{ns:09}"
        headed = self._clears or self._shown % LINES_BEFORE_HEADING == 0
        text = CLEAR if self._clears else ""
        if self._metric_only:
            text += metrics_alone(counts, self._separator, as_json=self._as_json, interval=time, headed=headed)
        elif self._as_json:
            text += json_report(counts, time.lstrip())
        elif self._separator is not None:
            text += separated_report(counts, self._separator, time)
        else:
            text += self._heading(counts) if headed else ""
            text += "".join(f"{time} {line}\n" for line in event_lines(counts, self._grouping))
        self._shown += 1
        self._write(text)

    def _heading(self, counts: Counts) -> str:
        lead = _HEADINGS[counts.parts[0].label.kind] if counts.parts else _PLAIN_HEADING
        return f"{lead}             counts {'unit':>{unit_width(counts)}} events\n"
