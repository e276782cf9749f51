"""plan: which events the metrics that a user asks for need, in which groups, and what they come to. As
tools/perf/util/metricgroup.c.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from perfemu.errors import EventSyntaxError, UsageError
from perfemu.vendor_metrics.metric import VendorMetric

CanCount = Callable[[str], bool]
_DURATION = "duration_time"  # perf's own event; in formulae it is in seconds
_LEADER = "slots"  # of Intel's top-down events


@dataclass(frozen=True, slots=True)
class PlannedMetric:
    """A metric, and where among the plan's events its own stand."""

    metric: VendorMetric
    places: Mapping[str, int]  # event -> its number
    table: Mapping[str, VendorMetric]
    literals: Mapping[str, float]

    @property
    def shown_at(self) -> int:
        """The event beside which it is printed: its first."""
        return min(self.places.values())

    def value(self, counts: Sequence[float], elapsed_s: float) -> float:
        """From the counts of the plan's events, and how long that took; with its scale."""
        values = dict(self.literals) | {event: counts[place] for event, place in self.places.items()}
        values[_DURATION] = elapsed_s
        return self._of(self.metric, values) * self.metric.scale

    def _of(self, metric: VendorMetric, values: dict[str, float]) -> float:
        for name in metric.expression.names:
            if name not in values:
                values[name] = self._of(self.table[name], values)
        return metric.expression.compute(values)


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """`events` as the command line takes them, a weak group each, and the metrics over them."""

    events: tuple[str, ...] = ()
    metrics: tuple[PlannedMetric, ...] = ()
    left_out: tuple[str, ...] = ()  # metrics of a group that cannot be computed here, each with the reason


def plan_metrics(
    asked: Iterable[str],
    table: Mapping[str, VendorMetric],
    literals: Mapping[str, float],
    can_count: CanCount,
    *,
    grouped: bool = True,
    merged: bool = True,
) -> MetricPlan:
    """Of names of metrics, of their groups, or shell patterns of either. UsageError names what is not there.

    `merged`: a metric does without a group of its own if another's has all of its events.
    """
    needed: dict[str, tuple[str, ...]] = {}
    left_out = []
    for name in asked:
        found = _matching(name, table)
        for metric in found:
            events = events_needed(metric, table, literals)
            missing = [event for event in events if not can_count(event)]
            if not missing:
                needed[metric.name] = events
            elif found == [metric]:
                raise UsageError(f"stat -M {name}: this core cannot count {', '.join(missing)}")
            else:
                left_out.append(f"{metric.name} ({', '.join(missing)})")
        if not needed.keys() & {metric.name for metric in found}:
            raise UsageError(f"stat -M {name}: this core cannot count what it needs: {', '.join(left_out)}")
    groups, of_group = _groups(needed, merged)
    starts = [sum(map(len, groups[:number])) for number in range(len(groups))]
    planned = [
        PlannedMetric(
            table[metric_name],
            {event: starts[number] + groups[number].index(event) for event in needed[metric_name]},
            table,
            literals,
        )
        for metric_name, number in ((name, of_group[name]) for name in table if name in of_group)
    ]
    texts = [f"{{{','.join(group)}}}:W" for group in groups] if grouped else [e for group in groups for e in group]
    return MetricPlan(tuple(texts), tuple(planned), tuple(dict.fromkeys(left_out)))


def _groups(needed: Mapping[str, tuple[str, ...]], merged: bool) -> tuple[list[tuple[str, ...]], dict[str, int]]:
    """Of events; and which of them is each metric's.

    Those with most events first, so that others find theirs there. All with Intel's top-down events are one: there is
    one counter of slots to lead them.
    """
    groups: list[tuple[str, ...]] = []
    of_group: dict[str, int] = {}
    for name, events in sorted(needed.items(), key=lambda item: -len(item[1])):
        number = len(groups)
        if merged:
            shared = (at for at, group in enumerate(groups) if {*events} <= {*group} or _LEADER in {*events} & {*group})
            number = next(shared, number)
        if number == len(groups):
            groups.append(())
        groups[number] = _ordered(dict.fromkeys([*groups[number], *events]))
        of_group[name] = number
    return groups, of_group


def _ordered(events: Iterable[str]) -> tuple[str, ...]:
    """As they are; but first what leads Intel's top-down events, and these."""
    return tuple(sorted(events, key=lambda event: (event != _LEADER, not event.startswith("topdown-"))))


def _matching(name: str, table: Mapping[str, VendorMetric]) -> list[VendorMetric]:
    wanted = name.lower()
    found = [metric for metric in table.values() if any(fnmatchcase(known.lower(), wanted) for known in _names(metric))]
    if not found:
        names = {known.lower(): known for metric in table.values() for known in _names(metric)}
        near = [names[key] for key in difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)]
        hint = f"; did you mean {' or '.join(near)}?" if near else " (perfemu list metric names them all)"
        raise UsageError(f"stat -M {name}: no such metric or group{hint}")
    return found


def _names(metric: VendorMetric) -> tuple[str, ...]:
    return metric.name, *metric.groups


def events_needed(
    metric: VendorMetric, table: Mapping[str, VendorMetric], literals: Mapping[str, float]
) -> tuple[str, ...]:
    """Each once, in their order."""
    found: dict[str, None] = {}

    def visit(row: VendorMetric) -> None:
        for name in row.expression.names:
            if name in table:
                visit(table[name])
            elif name not in literals and name != _DURATION:
                found[name] = None

    visit(metric)
    return tuple(found)


def counting_on(parse: Callable[[list[str]], object]) -> CanCount:
    """Whether the session's parser knows an event."""

    def can_count(event: str) -> bool:
        try:
            parse([event])
        except EventSyntaxError:
            return False
        return True

    return can_count
