"""firefox: a processed profile for https://profiler.firefox.com.

Its format is firefox-devtools/profiler's src/types/profile.ts; readers bring older versions up to theirs.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Any, TextIO

from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, Moment, Profile
from perfemu.profile.report import Report
from perfemu.profile.tasks import Thread
from perfemu.version import VERSION
from perfemu.visible import visible

SUMMARY = "every sample in its time, for profiler.firefox.com"
NEEDS_SAMPLES = True
NEEDS_MOMENTS = True

_GECKO_VERSION, _PROCESSED_VERSION = 24, 48
_CATEGORIES = (("Other", "grey"), ("User", "yellow"), ("Kernel", "orange"))
_USER, _KERNEL = 1, 2  # in _CATEGORIES
_LIBRARY = 1  # a kind of resource
_NO_ADDRESS = -1
_NS_PER_MS = 1_000_000
_NO_BUILD_ID = bytes(16)


def write(report: Report, output: TextIO) -> None:
    """A thread of the profile for each event and thread; periods are weights. Time 0 is the first sample's."""
    profile = report.selected()
    events = [event for event in profile.events if event.moments]
    start_ns = min(event.moments[0].time_ns for event in events)
    libraries = _Libraries()
    threads = []
    for event in events:
        by_thread: dict[Thread, list[Moment]] = {}
        for moment in event.moments:
            by_thread.setdefault(moment.sample.thread, []).append(moment)
        names = {thread.pid: thread.comm for thread in reversed(by_thread)}
        names |= {thread.pid: thread.comm for thread in by_thread if thread.pid == thread.tid}
        for thread, moments in by_thread.items():
            tables = _Tables(libraries)
            made = tables.thread(moments, start_ns)
            suffix = f" {event.name}" if len(events) > 1 else ""
            made |= {"name": thread.comm, "tid": thread.tid, "isMainThread": thread.tid == thread.pid}
            made |= {"pid": f"{thread.pid}{suffix}", "processName": f"{names[thread.pid]}{suffix}"}
            threads.append(made)
    document = {"meta": _meta(profile, events), "libs": libraries.rows, "pages": [], "threads": threads}
    json.dump(document, output, separators=(",", ":"))
    output.write("\n")


def _meta(profile: Profile, events: Sequence[EventProfile]) -> dict[str, Any]:
    """No time of the host is in it."""
    features = profile.features
    first, *_ = most = max((event.moments for event in events), key=len)
    interval_ns = max((most[-1].time_ns - first.time_ns) // len(most), 1)
    return {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _PROCESSED_VERSION,
        "product": "perfemu",
        "importedFrom": f"perfemu {VERSION}",
        "arguments": visible(" ".join(features.command_line)),
        "oscpu": visible(f"Linux {features.architecture or ''}".strip()),
        "CPUName": visible(features.cpu_description or ""),
        "interval": interval_ns / _NS_PER_MS,
        "startTime": 0,
        "processType": 0,
        "stackwalk": 1,
        "debug": False,
        "symbolicated": True,
        "sourceCodeIsNotOnSearchfox": True,
        "usesOnlyOneStackType": True,
        "doesNotUseFrameImplementation": True,
        "categories": [{"name": name, "color": color, "subcategories": ["Other"]} for name, color in _CATEGORIES],
        "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
        "markerSchema": [],
    }


class _Libraries:
    """The mapped files of all threads."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def number(self, place: Place) -> int:
        number = self._numbers.get(place.path)
        if number is None:
            number = self._numbers[place.path] = len(self.rows)
            path, name = visible(place.path), place.file_name
            build_id = place.file.build_id if place.file else b""
            row = {"arch": None, "name": name, "path": path, "debugName": name, "debugPath": path}
            self.rows.append(row | {"breakpadId": _breakpad_id(build_id), "codeId": build_id.hex() or None})
        return number


def _breakpad_id(build_id: bytes) -> str:
    """The first half of a GUID is little-endian; an age of 0 follows."""
    guid = (build_id + _NO_BUILD_ID)[:16]
    fields = (guid[3::-1], guid[5:3:-1], guid[7:5:-1], guid[8:])
    return b"".join(fields).hex().upper() + "0"


class _Table:
    """A table as the format has it: lists by column, and their length. Rows are told apart by keys."""

    def __init__(self, *columns: str) -> None:
        self._columns: dict[str, list[Any]] = {column: [] for column in columns}
        self._numbers: dict[Hashable, int] = {}

    def find(self, key: Hashable) -> int | None:
        return self._numbers.get(key)

    def add(self, key: Hashable, **row: Any) -> int:
        number = self._numbers[key] = len(self._numbers)
        for column, values in self._columns.items():
            values.append(row[column])
        return number

    def shown(self) -> dict[str, Any]:
        return {**self._columns, "length": len(self._numbers)}


class _Tables:
    """Those of one thread: samples have stacks, stacks frames, frames functions, functions resources."""

    def __init__(self, libraries: _Libraries) -> None:
        self._libraries = libraries
        self._strings: dict[str, int] = {}
        self._stacks = _Table("frame", "prefix", "category", "subcategory")
        self._frames = _Table(
            *("address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID"),
            *("implementation", "line", "column"),
        )
        self._functions = _Table(
            *("name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber")
        )
        self._resources = _Table("lib", "name", "host", "type")
        self._symbols = _Table("libIndex", "address", "name", "functionSize")
        self._chains: dict[tuple[Place, ...], int] = {}

    def thread(self, moments: Sequence[Moment], start_ns: int) -> dict[str, Any]:
        stacks = [self._stack(moment.sample.chain or (moment.sample.place,)) for moment in moments]
        samples = {
            "stack": stacks,
            "time": [(moment.time_ns - start_ns) / _NS_PER_MS for moment in moments],
            "weight": [moment.period for moment in moments],
            "weightType": "samples",
            "length": len(stacks),
        }
        return {
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": None,
            "registerTime": 0,
            "unregisterTime": None,
            "pausedRanges": [],
            "samples": samples,
            "markers": _Table("data", "name", "startTime", "endTime", "phase", "category").shown(),
            "stackTable": self._stacks.shown(),
            "frameTable": self._frames.shown(),
            "funcTable": self._functions.shown(),
            "resourceTable": self._resources.shown(),
            "nativeSymbols": self._symbols.shown(),
            "stringArray": list(self._strings),
        }

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _stack(self, chain: tuple[Place, ...]) -> int:
        number = self._chains.get(chain)
        if number is None:
            number = self._chains[chain] = self._new_stack(chain)
        return number

    def _new_stack(self, chain: tuple[Place, ...]) -> int:
        """A stack is its innermost frame and the stack that called it."""
        prefix: int | None = None
        for depth in range(len(chain) - 1, -1, -1):
            place = chain[depth]
            frame = self._frame(place, is_caller=depth > 0)
            number = self._stacks.find((prefix, frame))
            if number is None:
                category = _KERNEL if place.in_kernel else _USER
                key = (prefix, frame)
                number = self._stacks.add(key, frame=frame, prefix=prefix, category=category, subcategory=0)
            prefix = number
        assert prefix is not None, "a chain has a place at least"
        return prefix

    def _frame(self, place: Place, is_caller: bool) -> int:
        key = (place, is_caller)
        number = self._frames.find(key)
        if number is not None:
            return number
        source = place.source(called_from=is_caller)
        return self._frames.add(
            key,
            address=place.offset - (is_caller and place.is_within_symbol) if place.path else _NO_ADDRESS,
            inlineDepth=0,
            category=_KERNEL if place.in_kernel else _USER,
            subcategory=0,
            func=self._function(place),
            nativeSymbol=self._symbol(place),
            innerWindowID=0,
            implementation=None,
            line=source[1] if source else None,
            column=None,
        )

    def _function(self, place: Place) -> int:
        key = (place.path, place.symbol.start if place.symbol else None)
        number = self._functions.find(key)
        if number is not None:
            return number
        source = place.function_source()
        return self._functions.add(
            key,
            name=self._string(place.function_name),
            isJS=False,
            relevantForJS=False,
            resource=self._resource(place),
            fileName=self._string(visible(source[0])) if source else None,
            lineNumber=source[1] if source else None,
            columnNumber=None,
        )

    def _resource(self, place: Place) -> int:
        if not place.path:
            return -1
        number = self._resources.find(place.path)
        if number is None:
            library, name = self._libraries.number(place), self._string(place.file_name)
            number = self._resources.add(place.path, lib=library, name=name, host=None, type=_LIBRARY)
        return number

    def _symbol(self, place: Place) -> int | None:
        symbol = place.symbol
        if symbol is None:
            return None
        number = self._symbols.find((place.path, symbol.start))
        if number is None:
            number = self._symbols.add(
                (place.path, symbol.start),
                libIndex=self._libraries.number(place),
                address=symbol.start,
                name=self._string(symbol.shown),
                functionSize=symbol.end - symbol.start,
            )
        return number
