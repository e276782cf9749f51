"""fields: what a line of perf script can have, which of it by default, and what -F makes of that."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perfcore.abi.constants import PerfType, SampleType
from perfemu.errors import UsageError

OTHER_TYPE = int(PerfType.MAX)  # of events of a PMU with a number of its own
_TYPE_NAMES = ("hardware", "software", "tracepoint", "hardware-cache", "raw", "breakpoint", "other")
_TYPE_WORDS = {"hw": 0, "sw": 1, "trace": 2, "raw": 4}  # as -F has them
_REFUSED_TYPE_WORDS = ("synth",)


class Field(NamedTuple):
    """`needs` are the bits of sample_type without any of which there is nothing to show; 0: nothing is needed."""

    name: str
    needs: int = 0
    said_as: str = ""  # perf's word for `needs`


FIELDS = (
    Field("comm", 0),
    Field("tid", SampleType.TID, "TID"),
    Field("pid", SampleType.TID, "TID"),
    Field("time", SampleType.TIME, "TIME"),
    Field("cpu", SampleType.CPU, "CPU"),
    Field("event"),
    Field("trace", SampleType.RAW, "RAW"),
    Field("ip", SampleType.IP, "IP"),
    Field("sym"),
    Field("dso"),
    Field("addr", SampleType.ADDR, "ADDR"),
    Field("symoff"),
    Field("srcline"),
    Field("period"),
    Field("weight", SampleType.WEIGHT | SampleType.WEIGHT_STRUCT, "WEIGHT"),
    Field("brstack", SampleType.BRANCH_STACK, "BRANCH_STACK"),
    Field("brstacksym", SampleType.BRANCH_STACK, "BRANCH_STACK"),
    Field("phys_addr", SampleType.PHYS_ADDR, "PHYS_ADDR"),
    Field("misc"),
)
BY_NAME = {field.name: field for field in FIELDS}
NOT_MODELLED = (
    *("iregs", "uregs", "brstackinsn", "brstackinsnlen", "brstackoff", "flags", "data_src"),
    *("bpf-output", "callindent", "insn", "insnlen", "synth", "metric", "srccode", "ipc", "tod", "data_page_size"),
    *("code_page_size", "ins_lat", "machine_pid", "vcpu", "cgroup", "retire_lat"),
)

_DEFAULT = frozenset(("comm", "tid", "cpu", "time", "event", "ip", "sym", "symoff", "dso", "period"))
_DEFAULT_RAW = _DEFAULT | {"addr", "weight", "phys_addr"}
_DEFAULT_TRACEPOINT = frozenset(("comm", "tid", "cpu", "time", "event", "trace"))
_DEFAULTS = {int(PerfType.TRACEPOINT): _DEFAULT_TRACEPOINT, int(PerfType.RAW): _DEFAULT_RAW}
_OF_CHAINS = frozenset(("ip", "sym", "symoff", "dso"))


def output_type(attr_type: int) -> int:
    """Fields are chosen by this."""
    return min(attr_type, OTHER_TYPE)


class Selection:
    """The fields of each type of events: perf's, or as the words of -F say."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        """UsageError for what -F cannot mean."""
        self._fields = {number: set(_DEFAULTS.get(number, _DEFAULT)) for number in range(len(_TYPE_NAMES))}
        self._asked: dict[int, set[str]] = {number: set() for number in self._fields}  # by name, for the user
        self._set: set[int] = set()  # types whose fields were given whole
        self._types_named: set[int] = set()
        for text in words:
            self._take(text)

    def _take(self, text: str) -> None:
        kind, colon, rest = text.partition(":")
        if colon and kind in _REFUSED_TYPE_WORDS:
            raise UsageError(f"script -F {kind}: such events are not modelled yet")
        if colon and kind not in _TYPE_WORDS:
            raise UsageError(f"script -F {text}: '{kind}' is no type of events; known are {', '.join(_TYPE_WORDS)}")
        numbers = [_TYPE_WORDS[kind]] if colon else list(self._fields)
        names = [name.strip() for name in (rest if colon else text).split(",") if name.strip()]
        if not names and not colon:
            raise UsageError("script -F: no field is named")
        changes = [name[0] in "+-" for name in names]
        if any(changes) and not all(changes):
            raise UsageError(f"script -F {text}: fields are either named, or added by + and removed by -, not both")
        for name in names:
            _check(name.lstrip("+-"), text)
        if colon:
            self._types_named.add(numbers[0])
        for number in numbers:
            self._change(number, names, whole=not any(changes), typed=bool(colon))

    def _change(self, number: int, names: Iterable[str], whole: bool, typed: bool) -> None:
        if whole:
            self._fields[number] = set()
            self._asked[number] = set()
            self._set.add(number)
        for name in names:
            plain = name.lstrip("+-")
            if name[0] == "-":
                self._fields[number].discard(plain)
                self._asked[number].discard(plain)
                continue
            if plain == "trace" and number != PerfType.TRACEPOINT:
                if typed:
                    raise UsageError(f"script -F: {_TYPE_NAMES[number]} events have no 'trace'")
                continue
            self._fields[number].add(plain)
            self._asked[number].add(plain)

    def check_types(self, attr_types: Iterable[int]) -> None:
        """UsageError for a type that was named and is not among the file's."""
        missing = self._types_named - {output_type(number) for number in attr_types}
        if missing:
            raise UsageError(f"script -F: the file has no {_TYPE_NAMES[min(missing)]} events")

    def fields_of(self, attr_type: int, sample_type: int, event_name: str) -> frozenset[str]:
        """What a line of such an event shows. UsageError: it was asked for and is not in the samples."""
        number = output_type(attr_type)
        chosen, asked = set(self._fields[number]), self._asked[number]
        if number == PerfType.TRACEPOINT and number not in self._set and sample_type & SampleType.CALLCHAIN:
            chosen |= _OF_CHAINS
        for name in sorted(chosen):
            field = BY_NAME[name]
            if not field.needs or sample_type & field.needs:
                continue
            if name in asked:
                raise UsageError(
                    f"script -F {name}: samples of {event_name} have none (their sample_type lacks {field.said_as})"
                )
            chosen.discard(name)
        has_address = bool(sample_type & (SampleType.IP | SampleType.ADDR))
        for name, other, possible in (
            ("sym", "addresses in the samples", has_address),
            ("dso", "addresses in the samples", has_address),
            ("symoff", "sym", "sym" in chosen),
            ("srcline", "ip", "ip" in chosen),
        ):
            if name in chosen and not possible:
                if name in asked:
                    raise UsageError(f"script -F {name} needs {other}")
                chosen.discard(name)
        return frozenset(chosen)


def _check(name: str, text: str) -> None:
    if name in BY_NAME:
        return
    if name in NOT_MODELLED:
        raise UsageError(f"script -F {text}: '{name}' is not modelled yet")
    near = difflib.get_close_matches(name, BY_NAME, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(BY_NAME)}"
    raise UsageError(f"script -F {text}: there is no field '{name}'; {hint}")
