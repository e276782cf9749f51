"""fixture: what the pytest fixture `perfemu` gives a test: programs counted, and held against the test's baseline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from perfemu import api
from perfemu.checking.baseline import Baseline, Entry
from perfemu.checking.benchmarks import DEFAULT_EVENTS, DEFAULT_TOLERANCE
from perfemu.checking.printing import changed_functions
from perfemu.checking.tolerance import Tolerance
from perfemu.checking.verdict import EventVerdict, judge
from perfemu.comparing.measured import Measured


class CountsGrew(AssertionError):
    """A count has grown beyond its tolerance, or there is nothing to hold it against."""


class PerfemuFixture:
    """Of one test, whose name its baselines have."""

    Guest = api.Guest
    run = staticmethod(api.run)
    record = staticmethod(api.record)
    report = staticmethod(api.report)

    def __init__(self, name: str, baseline: Baseline, updated: dict[str, Entry] | None) -> None:
        """`updated` takes new baselines; None: those that there are stay."""
        self._name = name
        self._baseline = baseline
        self._updated = updated
        self._checks = 0

    def stat(
        self,
        guest: api.Guest | Sequence[str | os.PathLike[str]],
        events: Iterable[str] = DEFAULT_EVENTS,
        *,
        from_symbol: str | None = None,
        to_symbol: str | None = None,
        input: bytes | None = None,
        capture: bool = False,
        **options: Any,
    ) -> api.StatResult:
        """As perfemu.stat, with functions: a check that fails names those that changed."""
        return api.stat(
            guest,
            events,
            functions=True,
            from_symbol=from_symbol,
            to_symbol=to_symbol,
            input=input,
            capture=capture,
            **options,
        )

    def check(self, result: api.StatResult, name: str = "", **tolerances: str | int) -> None:
        """Hold `result` against the baseline of this test, or of its part `name`.

        By event, how much it may have grown: ``instructions="0.1%"``, ``branch_misses=100``; those events alone are
        looked at. Without any, all events, by 0.1 %. Raises CountsGrew.
        """
        __tracebackhide__ = True
        if result.measured is None:
            raise ValueError("check: wants a result of the fixture's own stat, or of perfemu.stat(..., functions=True)")
        chosen = _chosen(result.measured, tolerances)
        allowed = {_plain(event): Tolerance.parse(str(text)) for event, text in tolerances.items()}
        key = self._key(name)
        if self._updated is not None:
            self._updated[key] = Entry.of(result.measured)
            return
        default = Tolerance.parse(DEFAULT_TOLERANCE)
        verdict = judge(key, chosen, self._baseline.entries.get(key), lambda event: allowed.get(_plain(event), default))
        failed = [event for event in verdict.events if event.outcome.is_failure]
        if verdict.why:
            raise CountsGrew(f"{key}: {verdict.why} (pytest --perfemu-update writes {self._baseline.path})")
        if failed:
            raise CountsGrew("\n".join([f"{key}: grown beyond what is allowed", *map(_told, failed)]))

    def _key(self, name: str) -> str:
        self._checks += 1
        if name:
            return f"{self._name} {name}"
        return self._name if self._checks == 1 else f"{self._name} {self._checks}"


def _chosen(measured: Measured, allowed: Iterable[str]) -> Measured:
    """Those events that are looked at; ValueError names what was not counted."""
    names = {_plain(name): name for name in measured.events}
    for event in allowed:
        if _plain(event) not in names:
            raise ValueError(f"check: {event} is not among the events {', '.join(measured.events)}")
    wanted = {names[_plain(event)] for event in allowed} or set(measured.events)
    events = {name: event for name, event in measured.events.items() if name in wanted}
    return replace(measured, events=events)


def _plain(event: str) -> str:
    """Keywords have no dashes: ``L1_dcache_load_misses`` is L1-dcache-load-misses."""
    return event.replace("-", "_").replace(".", "_").lower()


def _told(event: EventVerdict) -> str:
    lines = []
    if event.difference is None:
        lines.append(f"  {event.event}: {event.now:,} now; the baseline does not have it")
    else:
        total = event.difference.total
        percent = f" ({total.percent:+.2f}%)" if total.percent is not None else ""
        change = f"{total.old:,} -> {total.new:,}, {total.difference:+,}{percent}"
        lines.append(f"  {event.event}: {change}, more than {event.tolerance}")
    lines += [f"    {line}" for line in changed_functions(event)]
    return "\n".join(lines)
