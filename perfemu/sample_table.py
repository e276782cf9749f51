"""SampleTable: the samples of a perf.data file as numpy's structured arrays, and as frames of pandas or Polars."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import Misc, RecordType, SampleType
from perfcore.abi.sample_arrays import lead_dtype
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.record_stream import RawRecord
from perfcore.perfdata.records import UserRecord
from perfcore.perfdata.sample_runs import SampleBatch, batches_in_time_order
from perfemu.collection import uncollected
from perfemu.errors import PerfemuError
from perfemu.profile.event_names import event_name
from perfemu.profile.sample_kinds import kinds_of
from perfemu.profile.tasks import Tasks
from perfemu.symbols.finder import SymbolFinder
from perfemu.visible import visible

ROW = np.dtype(
    [
        ("event", "<u2"),  # index in `events`
        ("ip", "<u8"),
        ("pid", "<i4"),
        ("tid", "<i4"),
        ("time", "<u8"),  # ns
        ("addr", "<u8"),  # of the data, where the event has one
        ("cpu", "<i4"),  # -1: the file does not say
        ("period", "<u8"),  # events that this sample stands for
        ("comm", "<i4"),  # index in `comms`; here and below -1: not asked for
        ("dso", "<i4"),  # index in `dsos`
        ("symbol", "<i4"),  # index in `symbols`
        ("chain", "<u8"),  # where in `chains` its callchain begins
        ("chain_length", "<u4"),
    ]
)
_COPIED = ("ip", "pid", "tid", "time", "addr", "cpu", "period")  # as they are in the file
_NAMED = ("comm", "dso", "symbol")
_LIBRARIES = ("pandas", "polars")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SampleTable:
    """A row of `rows` (see ROW) for each sample, by time. What a sample does not hold is 0."""

    events: tuple[str, ...]  # their names
    rows: NDArray[Any]
    chains: NDArray[np.uint64]  # all callchains, innermost first, with PERF_CONTEXT_* markers, as in the file
    comms: tuple[str, ...] = ()
    dsos: tuple[str, ...] = ()  # paths; "" is no file
    symbols: tuple[str, ...] = ()  # functions; "" is none that is known
    complaints: tuple[str, ...] = ()  # what is wrong with the file, or with programs that symbols are of

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<SampleTable: {len(self)} samples of {', '.join(self.events)}>"

    def of(self, event: str) -> NDArray[Any]:
        """The rows of one event, by its name, with or without the modifiers that perf prints. KeyError."""
        for number, name in enumerate(self.events):
            if event in (name, name.partition(":")[0]):
                rows: NDArray[Any] = self.rows[self.rows["event"] == number]
                return rows
        raise KeyError(f"{event}: not among the events {', '.join(self.events)}")

    def callchain(self, row: Any) -> NDArray[np.uint64]:
        """Of one of `rows`."""
        first = int(row["chain"])
        return self.chains[first : first + int(row["chain_length"])]

    def frame(self, library: str | None = None) -> Any:
        """A DataFrame with the names themselves, without callchains: of "pandas", "polars", or whichever is there.

        ImportError where none is: ``pip install 'perfemu[pandas]'``.
        """
        return _frame_library(library).DataFrame(dict(self._columns()))

    def _columns(self) -> Iterator[tuple[str, Any]]:
        yield "event", _names(self.events, self.rows["event"])
        for name in _COPIED:
            yield name, np.ascontiguousarray(self.rows[name])
        for name in _NAMED:
            names: tuple[str, ...] = getattr(self, f"{name}s")
            if names:
                yield name, _names(names, self.rows[name])


def _names(names: tuple[str, ...], numbers: NDArray[Any]) -> NDArray[Any]:
    texts: NDArray[Any] = np.array(names, dtype=object)[numbers]
    return texts


def _frame_library(name: str | None) -> Any:
    if name is not None and name not in _LIBRARIES:
        raise ValueError(f"library={name!r}: one of {', '.join(_LIBRARIES)}")
    for candidate in _LIBRARIES if name is None else (name,):
        try:
            return importlib.import_module(candidate)
        except ModuleNotFoundError:
            continue
    raise ImportError(f"frames need {name or ' or '.join(_LIBRARIES)}: pip install 'perfemu[{name or 'pandas'}]'")


class _EventRows:
    """The samples of one event, as they are collected."""

    def __init__(self, attr: PerfEventAttr) -> None:
        self.attr = attr
        self.layout = lead_dtype(attr)
        self.numbers: list[int] = []  # of their rows
        self.leads: list[bytes] = []  # the fields that every sample of the event has at the same place
        self.has_chain = bool(attr.sample_type & SampleType.CALLCHAIN)
        self.chain_follows = not attr.sample_type & SampleType.READ  # directly behind those

    def copy_into(self, rows: NDArray[Any], event: int) -> None:
        found = np.frombuffer(b"".join(self.leads), self.layout)
        numbers = np.array(self.numbers, np.int64)
        rows["event"][numbers] = event
        for name in _COPIED:
            if name in (self.layout.names or ()):
                rows[name][numbers] = found[name]
            elif name == "period":
                rows[name][numbers] = self.attr.sample_period or 1
            elif name == "cpu":
                rows[name][numbers] = -1


class _Numbers:
    """Texts, numbered as they first come."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


class _Collector:
    """Reads a file once."""

    def __init__(self, file: PerfDataFile, finder: SymbolFinder | None) -> None:
        """Without `finder` nobody asks for names."""
        self._file = file
        self._tasks = Tasks(finder) if finder is not None else None
        self._events: list[_EventRows] = []
        self._chains = bytearray()
        self._chain_starts: list[int] = []
        self._named: list[NDArray[np.int32]] = []  # comm, dso and symbol: a row for each sample,
        self._single: list[tuple[int, int, int]] = []  # but for the last ones, which came one by one
        self._comms, self._dsos, self._symbols = _Numbers(), _Numbers(), _Numbers()
        self._places: dict[int, tuple[int, int]] = {}  # by id of the Place, which `_kept` keeps
        self._kept: list[object] = []

    def read(self, complaints: Callable[[], tuple[str, ...]]) -> SampleTable:
        count = 0
        sample_type, last_kind = int(RecordType.SAMPLE), int(UserRecord.HEADER_ATTR)
        for item in batches_in_time_order(self._file):
            if isinstance(item, SampleBatch):
                self._add_batch(item, count)
                count += len(item)
            elif item.type == sample_type:
                self._add(item, count)
                count += 1
            elif self._tasks is not None and item.type < last_kind:
                self._tasks.apply(self._file.decode_record(item), item.misc)
        self._name_single()
        rows = np.zeros(count, ROW)
        for number, event in enumerate(self._events):
            event.copy_into(rows, number)
        starts = np.array([*self._chain_starts, len(self._chains) // 8], np.uint64)
        rows["chain"] = starts[:-1]
        rows["chain_length"] = np.diff(starts)
        for column, name in enumerate(_NAMED):
            rows[name] = np.concatenate(self._named)[:, column] if self._named else -1
        return SampleTable(
            tuple(visible(event.name) or event_name(event.attr) for event in self._file.events),
            rows,
            np.frombuffer(bytes(self._chains), np.uint64),
            tuple(self._comms.texts),
            tuple(self._dsos.texts),
            tuple(self._symbols.texts),
            complaints(),
        )

    def _event(self, number: int) -> _EventRows:
        while len(self._events) <= number:  # a pipe tells of events on the way
            self._events.append(_EventRows(self._file.events[len(self._events)].attr))
        return self._events[number]

    def _add_batch(self, batch: SampleBatch, number: int) -> None:
        """Samples without callchains, all of whose fields are words at the same place."""
        first, kind_of = kinds_of(self._file, batch)
        samples = [batch.record(row) for row in first.tolist()]
        events = np.array([self._file.event_number(sample) for sample in samples])
        for event_number in np.unique(events).tolist():
            event = self._event(event_number)
            chosen = np.flatnonzero(events[kind_of] == event_number)
            event.numbers += (number + chosen).tolist()
            event.leads.append(batch.words[chosen].tobytes())
        self._chain_starts += [len(self._chains) // 8] * len(batch)
        if self._tasks is not None:
            self._name_single()
            named = [
                self._names(self._tasks, *of) for of in zip(samples, map(self._event, events.tolist()), strict=True)
            ]
            self._named.append(np.array(named, np.int32)[kind_of])

    def _add(self, record: RawRecord, number: int) -> None:
        file, data = self._file, record.data
        event_number = file.event_number(record)
        event = self._event(event_number)
        end = event.layout.itemsize
        if len(data) < end:
            raise PerfemuError(f"{file.name}: sample at {record.offset:#x}: {len(data)} bytes, its fields take {end}")
        event.numbers.append(number)
        event.leads.append(data[:end])
        self._chain_starts.append(len(self._chains) // 8)
        if event.has_chain and event.chain_follows:
            length = 8 * int.from_bytes(data[end : end + 8], "little")
            if length > len(data) - end - 8:
                entries = length // 8
                raise PerfemuError(f"{file.name}: sample at {record.offset:#x}: no room for a callchain of {entries}")
            self._chains += data[end + 8 : end + 8 + length]
        elif event.has_chain:
            self._chains += np.array(file.decode_sample(record, event_number).callchain, np.uint64).tobytes()
        if self._tasks is not None:
            self._single.append(self._names(self._tasks, record, event))

    def _name_single(self) -> None:
        if self._single:
            self._named.append(np.array(self._single, np.int32))
            self._single = []

    def _names(self, tasks: Tasks, record: RawRecord, event: _EventRows) -> tuple[int, int, int]:
        fields: Mapping[str, Any] = event.layout.fields or {}

        def value(name: str, size: int) -> int:
            at = fields[name][1] if name in fields else None
            return 0 if at is None else int.from_bytes(record.data[at : at + size], "little")

        pid = value("pid", 4)
        comm = self._comms.of(tasks.thread(pid, value("tid", 4)).comm)
        place = tasks.resolve(pid, value("ip", 8), record.misc & Misc.CPUMODE_MASK == Misc.KERNEL)
        known = self._places.get(id(place))
        if known is None:
            self._kept.append(place)
            name = place.symbol.shown if place.symbol is not None else ""
            known = self._places[id(place)] = self._dsos.of(visible(place.path)), self._symbols.of(name)
        return comm, *known


@uncollected()
def sample_table(
    file: PerfDataFile, finder: SymbolFinder | None = None, complaints: Callable[[], tuple[str, ...]] = tuple
) -> SampleTable:
    """Of all samples of a file; with `finder`, their tasks' names, files and functions. Raises PerfDataError."""
    return _Collector(file, finder).read(complaints)
