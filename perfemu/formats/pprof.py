"""pprof: the profile.proto of pprof, compressed: what `go tool pprof` and its many relatives read.

The fields are those of https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, ProfileSample
from perfemu.profile.report import Report
from perfemu.profile.tasks import Thread
from perfemu.protobuf import Message
from perfemu.visible import visible

SUMMARY = "compressed profile.proto for pprof (go tool pprof FILE)"
BINARY = True
NEEDS_SAMPLES = True

_PAGE = 4096

# Field numbers, by message.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = range(1, 7)
_DURATION_NANOS, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_SAMPLE_TYPE = range(10, 15)
_TYPE, _UNIT = 1, 2  # of a ValueType
_SAMPLE_LOCATIONS, _SAMPLE_VALUES, _SAMPLE_LABEL = 1, 2, 3
_LABEL_KEY, _LABEL_TEXT, _LABEL_NUMBER = 1, 2, 3
_ID = 1  # of mappings, locations and functions
_MEMORY_START, _MEMORY_LIMIT, _FILE_OFFSET, _FILE_NAME, _BUILD_ID = range(2, 7)
_IS_SYMBOLISED = (7, 8, 9)  # functions, file names, line numbers: pprof need not look for them
_LOCATION_MAPPING, _LOCATION_ADDRESS, _LOCATION_LINE = 2, 3, 4
_LINE_FUNCTION, _LINE_NUMBER = 1, 2
_FUNCTION_NAME, _SYSTEM_NAME, _FUNCTION_FILE, _START_LINE = range(2, 6)


def write(report: Report, output: BinaryIO) -> None:
    """A sample has a value for each event; tasks and CPUs are its labels. No host's time is in it."""
    events = [event for event in report.selected().events if event.sample_count]
    made = _Profile(report, events)
    output.write(_compressed(bytes(made.message())))


def _compressed(data: bytes) -> bytes:
    """As gzip does, with a header of no time and no system. (Another zlib may choose other bytes for the same data.)"""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = compressor.compress(data) + compressor.flush()
    end = struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + deflated + end


class _Mapping:
    """A file where it was mapped; how much of it is not known, but where its samples are."""

    def __init__(self, number: int, place: Place) -> None:
        self.number = number
        self.place = place
        self.first = self.last = place.address

    def reach(self, address: int) -> None:
        self.first, self.last = min(self.first, address), max(self.last, address)


class _Profile:
    """Numbers all that samples refer to, in the order in which they come."""

    def __init__(self, report: Report, events: Sequence[EventProfile]) -> None:
        self._report = report
        self._events = events
        self._strings = {"": 0}
        self._mappings: dict[tuple[str, int], _Mapping] = {}
        self._functions: dict[tuple[str, int], tuple[int, Message]] = {}
        self._locations: dict[tuple[int, int], Message] = {}
        self._location_numbers: dict[tuple[int, int], int] = {}
        self._known_labels: dict[tuple[str, Thread, int], list[Message]] = {}
        self._known: dict[tuple[Place, bool], int] = {}

    def message(self) -> Message:
        made = Message()
        samples = list(self._samples())
        for event in self._events:
            made.message(_SAMPLE_TYPE, self._value_type(event))
        for sample in samples:
            made.message(_SAMPLE, sample)
        for mapping in sorted(self._mappings.values(), key=_order):
            made.message(_MAPPING, self._mapping_message(mapping))
        for location in self._locations.values():
            made.message(_LOCATION, location)
        for _, function in self._functions.values():
            made.message(_FUNCTION, function)
        leader = self._events[0]
        comment = self._string(" ".join(self._report.profile.features.command_line))
        name, period_type = self._string(leader.name), self._value_type(leader)
        for text in self._strings:
            made.text(_STRING, text)
        first, last = self._report.profile.features.sample_time_ns or (0, 0)
        made.number(_DURATION_NANOS, last - first)
        attr = leader.description.attr
        if attr.sample_period and not attr.freq:
            made.message(_PERIOD_TYPE, period_type).number(_PERIOD, attr.sample_period)
        return made.number(_COMMENT, comment).number(_DEFAULT_SAMPLE_TYPE, name)

    def _samples(self) -> Iterator[Message]:
        values: dict[ProfileSample, list[int]] = {}
        for number, event in enumerate(self._events):
            for sample, weight in event.samples.items():
                values.setdefault(sample, [0] * len(self._events))[number] += weight.period
        for sample, periods in values.items():
            callers = [self._location(place, True) for place in sample.chain[1:]]
            made = Message().numbers(_SAMPLE_LOCATIONS, [self._location(sample.place, False), *callers])
            made.numbers(_SAMPLE_VALUES, periods)
            for label in self._labels(sample.comm, sample.thread, sample.cpu):
                made.message(_SAMPLE_LABEL, label)
            yield made

    def _labels(self, comm: str, thread: Thread, cpu: int) -> list[Message]:
        labels = self._known_labels.get((comm, thread, cpu))
        if labels is None:
            text = Message().number(_LABEL_KEY, self._string("comm")).number(_LABEL_TEXT, self._string(comm))
            labels = self._known_labels[comm, thread, cpu] = [text]
            for key, number in (("pid", thread.pid), ("tid", thread.tid), ("cpu", cpu)):
                if number >= 0:
                    labels.append(Message().number(_LABEL_KEY, self._string(key)).number(_LABEL_NUMBER, number))
        return labels

    def _value_type(self, event: EventProfile) -> Message:
        made = Message().number(_TYPE, self._string(event.name))
        return made.number(_UNIT, self._string(event.unit))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(visible(text), len(self._strings))

    def _location(self, place: Place, is_caller: bool) -> int:
        """The number of a location. Of a caller it is an address within its call, as pprof has them."""
        found = self._known.get((place, is_caller))
        if found is None:
            found = self._known[place, is_caller] = self._new_location(place, is_caller)
        return found

    def _new_location(self, place: Place, is_caller: bool) -> int:
        mapping = self._mapping(place)
        address = place.address - (is_caller and place.is_within_symbol)
        key = (mapping, address)
        number = self._location_numbers.get(key)
        if number is None:
            number = self._location_numbers[key] = len(self._location_numbers) + 1
            made = Message().number(_ID, number).number(_LOCATION_MAPPING, mapping).number(_LOCATION_ADDRESS, address)
            if place.symbol:
                source = place.source(called_from=is_caller)
                line = Message().number(_LINE_FUNCTION, self._function(place))
                made.message(_LOCATION_LINE, line.number(_LINE_NUMBER, source[1] if source else 0))
            self._locations[key] = made
        return number

    def _mapping(self, place: Place) -> int:
        """0 where nothing is mapped."""
        if not place.path:
            return 0
        key = (place.path, place.address - place.offset)
        found = self._mappings.get(key)
        if found is None:
            found = self._mappings[key] = _Mapping(len(self._mappings) + 1, place)
        found.reach(place.address)
        return found.number

    def _mapping_message(self, mapping: _Mapping) -> Message:
        place = mapping.place
        start, limit = mapping.first // _PAGE * _PAGE, (mapping.last // _PAGE + 1) * _PAGE
        made = Message().number(_ID, mapping.number).number(_MEMORY_START, start).number(_MEMORY_LIMIT, limit)
        made.number(_FILE_OFFSET, start - (place.address - place.offset))
        made.number(_FILE_NAME, self._string(place.path))
        made.number(_BUILD_ID, self._string(place.file.build_id.hex() if place.file else ""))
        for field in _IS_SYMBOLISED:
            made.number(field, 1)
        return made

    def _function(self, place: Place) -> int:
        assert place.symbol is not None, "nameless places have no function"
        key = (place.path, place.symbol.start)
        if key not in self._functions:
            file, line = place.function_source() or ("", 0)
            number = len(self._functions) + 1
            made = Message().number(_ID, number).number(_FUNCTION_NAME, self._string(place.symbol.shown))
            made.number(_SYSTEM_NAME, self._string(place.symbol.name)).number(_FUNCTION_FILE, self._string(file))
            self._functions[key] = number, made.number(_START_LINE, line)
        return self._functions[key][0]


def _order(mapping: _Mapping) -> tuple[bool, int]:
    """The program first, as pprof wants it: it is mapped before its libraries. The kernel last."""
    number, _ = mapping.place.frame_key
    return mapping.place.in_kernel, number
