"""callgrind: costs by instruction and source line, and calls: what callgrind_annotate and KCachegrind read.

The format is Valgrind's: https://valgrind.org/docs/manual/cl-format.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TextIO

from perfemu.events.attributes import is_exact
from perfemu.profile.places import Place
from perfemu.profile.profile import EventProfile, ProfileSample, Weight
from perfemu.profile.report import Report
from perfemu.version import VERSION
from perfemu.visible import visible

SUMMARY = "costs of instructions, lines and calls, for callgrind_annotate and KCachegrind"
NEEDS_SAMPLES = True

_UNKNOWN = "???"  # valgrind's
_CALL_BYTES = {"aarch64": 4}  # elsewhere calls are of several sizes: an address within them, as pprof has it


class _Function(NamedTuple):
    object: str  # the mapped file
    source: str
    name: str


class _Position(NamedTuple):
    """Of a cost. Addresses are those of the ELF file."""

    source: str
    address: int
    line: int


class _Call(NamedTuple):
    position: _Position
    callee: _Function
    address: int  # where the callee begins
    line: int


class _Costs:
    """What one function costs: `own` by position, `calls` with what they cost below; lists are by event."""

    def __init__(self) -> None:
        self.own: dict[_Position, list[int]] = {}
        self.calls: dict[_Call, list[int]] = {}
        self.call_samples: dict[_Call, int] = {}


def write(report: Report, output: TextIO) -> None:
    """All threads and CPUs together. Costs are periods, one column for each event that has samples."""
    events = [event for event in report.selected().events if event.sample_count]
    functions = _Functions(len(events), _CALL_BYTES.get(report.profile.features.architecture or "", 1))
    for number, event in enumerate(events):
        for sample, weight in event.samples.items():
            functions.add(sample, weight, number)
    output.writelines(f"{line}\n" for line in _header(report, events))
    output.writelines(f"{line}\n" for line in _Names().lines(functions.costs))
    output.write(f"\ntotals: {_numbers([event.period for event in events])}\n")


def _header(report: Report, events: Sequence[EventProfile]) -> Iterator[str]:
    yield from ("# callgrind format", "version: 1", f"creator: perfemu {VERSION}")
    yield f"cmd: {visible(' '.join(report.profile.features.command_line))}"
    counted = all(is_exact(event.description.attr) for event in events)
    yield f"desc: Costs: {'exact counts' if counted else 'periods of samples; calls are as many as samples in them'}"
    yield "positions: instr line"
    yield f"events: {' '.join('_'.join(event.name.split()) for event in events)}"
    yield f"summary: {_numbers([event.period for event in events])}"


def _numbers(costs: Sequence[int]) -> str:
    return " ".join(map(str, costs))


class _Functions:
    """Puts samples into `costs`, by function."""

    def __init__(self, events: int, call_bytes: int) -> None:
        self.costs: dict[_Function, _Costs] = {}
        self._events = events
        self._call_bytes = call_bytes  # by which a call is before the address to which it returns
        self._functions: dict[Place, _Function] = {}
        self._positions: dict[tuple[Place, bool], _Position] = {}

    def add(self, sample: ProfileSample, weight: Weight, number: int) -> None:
        """A function that is in the chain more than once calls where it is innermost: so its sum is the report's."""
        costs = self._of(sample.place)
        zeros = [0] * self._events
        costs.own.setdefault(self._position(sample.place), zeros)[number] += weight.period
        seen = {self._function(sample.place)}
        callee = sample.place
        for caller in sample.chain[1:]:
            function = self._function(caller)
            if function not in seen:
                seen.add(function)
                self._add_call(caller, callee, weight, number)
            callee = caller

    def _add_call(self, caller: Place, callee: Place, weight: Weight, number: int) -> None:
        costs = self._of(caller)
        start = callee.symbol.start if callee.symbol else callee.offset
        source = callee.function_source()
        address = callee.elf_address - (callee.offset - start)
        call = _Call(self._position(caller, True), self._function(callee), address, source[1] if source else 0)
        costs.calls.setdefault(call, [0] * self._events)[number] += weight.period
        costs.call_samples[call] = costs.call_samples.get(call, 0) + weight.samples

    def _of(self, place: Place) -> _Costs:
        function = self._function(place)
        return self.costs.setdefault(function, _Costs())

    def _function(self, place: Place) -> _Function:
        found = self._functions.get(place)
        if found is None:
            begin = place.function_source()
            source = visible(begin[0]) if begin else _UNKNOWN
            found = self._functions[place] = _Function(visible(place.path) or _UNKNOWN, source, place.function_name)
        return found

    def _position(self, place: Place, is_caller: bool = False) -> _Position:
        found = self._positions.get((place, is_caller))
        if found is None:
            source = place.source(called_from=is_caller) or (_UNKNOWN, 0)
            address = place.elf_address - (self._call_bytes if is_caller else 0)
            found = self._positions[place, is_caller] = _Position(visible(source[0]), address, source[1])
        return found


class _Names:
    """Writes functions; a name is written once, and is a number from then on."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {"object": {}, "source": {}, "function": {}}
        self._object = ""
        self._source = ""

    def lines(self, functions: dict[_Function, _Costs]) -> Iterator[str]:
        for function, costs in sorted(functions.items(), key=lambda item: item[0]):
            yield ""
            if function.object != self._object:
                self._object = function.object
                yield f"ob={self._short('object', function.object)}"
            yield f"fl={self._short('source', function.source)}"
            yield f"fn={self._short('function', function.name)}"
            self._source = function.source
            for position, numbers in sorted(costs.own.items()):
                yield from self._within(function, position.source)
                yield f"{position.address:#x} {position.line} {_numbers(numbers)}"
            for call, numbers in sorted(costs.calls.items()):
                yield from self._within(function, call.position.source)
                yield from self._call(call, costs.call_samples[call])
                yield f"{call.position.address:#x} {call.position.line} {_numbers(numbers)}"

    def _call(self, call: _Call, samples: int) -> Iterator[str]:
        yield f"cob={self._short('object', call.callee.object)}"
        yield f"cfi={self._short('source', call.callee.source)}"
        yield f"cfn={self._short('function', call.callee.name)}"
        yield f"calls={samples} {call.address:#x} {call.line}"

    def _within(self, function: _Function, source: str) -> Iterator[str]:
        """What follows is of another source file: of a function that was inlined; or of the function's own again."""
        if source != self._source:
            self._source = source
            yield f"{'fe' if source == function.source else 'fi'}={self._short('source', source)}"

    def _short(self, kind: str, name: str) -> str:
        known = self._known[kind]
        if name in known:
            return f"({known[name]})"
        known[name] = len(known) + 1
        return f"({known[name]}) {name}"
