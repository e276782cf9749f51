"""speedscope: a profile for https://www.speedscope.app, by its file-format-schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, Moment
from perfemu.profile.report import Report
from perfemu.profile.tasks import Thread
from perfemu.version import VERSION
from perfemu.visible import visible

SUMMARY = "flame graphs by event and thread for speedscope.app"
NEEDS_SAMPLES = True
NEEDS_MOMENTS = True

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"count": "none", "nanoseconds": "nanoseconds"}  # its words for ours


def write(report: Report, output: TextIO) -> None:
    """A profile for each event and thread, its samples in their order, their periods as weights."""
    frames = _Frames()
    profiles = [
        _profile(event, thread, moments, frames)
        for event in report.selected().events
        for thread, moments in _by_thread(event).items()
    ]
    document = {
        "$schema": _SCHEMA,
        "exporter": f"perfemu {VERSION}",
        "name": visible(" ".join(report.profile.features.command_line)) or visible(report.profile.path),
        "activeProfileIndex": 0,
        "shared": {"frames": frames.frames},
        "profiles": profiles,
    }
    json.dump(document, output, separators=(",", ":"))
    output.write("\n")


def _by_thread(event: EventProfile) -> dict[Thread, list[Moment]]:
    threads: dict[Thread, list[Moment]] = {}
    for moment in event.moments:
        threads.setdefault(moment.sample.thread, []).append(moment)
    return threads


def _profile(event: EventProfile, thread: Thread, moments: Iterable[Moment], frames: _Frames) -> dict[str, Any]:
    stacks: list[list[int]] = []
    weights: list[int] = []
    for moment in moments:
        stack = frames.stack(moment.sample.chain or (moment.sample.place,))
        if stacks and stacks[-1] is stack:
            weights[-1] += moment.period
        else:
            stacks.append(stack)
            weights.append(moment.period)
    return {
        "type": "sampled",
        "name": f"{event.name} {thread.comm} {thread.pid}/{thread.tid}",
        "unit": _UNITS[event.unit],
        "startValue": 0,
        "endValue": sum(weights),
        "samples": stacks,
        "weights": weights,
    }


class _Frames:
    """The functions of all profiles. A stack is one object, however often it comes."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._by_place: dict[Place, int] = {}
        self._stacks: dict[tuple[int, ...], list[int]] = {}

    def stack(self, chain: tuple[Place, ...]) -> list[int]:
        """The callers first."""
        numbers = tuple([self._number(place) for place in reversed(chain)])
        return self._stacks.setdefault(numbers, list(numbers))

    def _number(self, place: Place) -> int:
        number = self._by_place.get(place)
        if number is None:
            number = self._by_place[place] = self._numbered(place)
        return number

    def _numbered(self, place: Place) -> int:
        name, path = place.function_name, visible(place.path)
        key = (path, name, place.symbol.start if place.symbol else -1)
        if key not in self._numbers:
            self._numbers[key] = len(self.frames)
            source = place.function_source()
            where = {"file": visible(source[0]), "line": source[1]} if source else {"file": path}
            self.frames.append({"name": name, **where})
        return self._numbers[key]
