"""scripting: what script does: samples one by one, in the order of their times, as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, RecordType, SampleType
from perfcore.abi.sample import Sample, decode_sample_id
from perfcore.perfdata.errors import Malformed, PerfDataError
from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.record_stream import RawRecord
from perfcore.perfdata.records import UserRecord
from perfcore.perfdata.trace_formats import TraceFormat, trace_formats
from perfemu.errors import UsageError
from perfemu.profile.event_names import event_name
from perfemu.profile.header_lines import header_lines
from perfemu.profile.profile import EventProfile, Profile
from perfemu.profile.tasks import Tasks
from perfemu.profile.time_ranges import BadTime, Range, time_ranges
from perfemu.reporting import symbol_finder
from perfemu.script.fields import Selection
from perfemu.script.filters import SampleFilter
from perfemu.script.frames import Frames, in_kernel
from perfemu.script.lines import Clock, LineOptions, SampleLines, misc_letters, padded_names, start_line
from perfemu.script.print_format import printer
from perfemu.script.sideband import letters_of, shown_types, task_of, text_of
from perfemu.visible import visible

_MASK_64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ScriptOptions:
    """What is shown, and how."""

    fields: tuple[str, ...] = ()  # the words of each -F
    lines: LineOptions = field(default_factory=LineOptions)
    filter: SampleFilter = field(default_factory=SampleFilter)
    time: str = ""
    sideband: tuple[str, ...] = ()  # of perfemu.script.sideband.SHOWN_BY
    symfs: str = ""


def script_header(file: PerfDataFile) -> list[str]:
    """What the file says of the machine, as perf script --header does."""
    events = [EventProfile(_name(file, number), described) for number, described in enumerate(file.events)]
    return header_lines(Profile(file.name, events, [], file.features, None if file.is_pipe else file.header))


def _name(file: PerfDataFile, number: int) -> str:
    described = file.events[number]
    return visible(described.name) or event_name(described.attr)


class Script:
    """The lines of one file. Only what cannot yet be put in order is in memory."""

    def __init__(self, file: PerfDataFile, options: ScriptOptions, complain: Callable[[str], None]) -> None:
        """Raises UsageError where the file's events do not have what is asked for."""
        self._file = file
        self._options = options
        self._complain = complain
        self._selection = Selection(options.fields)
        self._tasks = Tasks(symbol_finder(file, options.symfs, complain))
        self._frames = Frames(self._tasks, options.lines.full_source_paths)
        self._clock = Clock(options.lines)
        self._events: list[SampleLines] = []
        self._periods: list[int] = []  # of events whose samples do not tell it; else 0
        self._last_values: dict[int, int] = {}  # by event id, as samples have read them
        if not file.is_pipe:
            self._prepare()  # a pipe tells its events on the way

    def _prepare(self) -> None:
        file, options = self._file, self._options
        attrs = [described.attr for described in file.events]
        self._selection.check_types(attr.type for attr in attrs)
        names = [_name(file, number) for number in range(len(attrs))]
        padded = padded_names(names)
        formats = _formats(file)
        self._events = []
        self._fields: list[frozenset[str]] = []
        for number, described in enumerate(file.events):
            attr = described.attr
            fields = self._selection.fields_of(attr.type, attr.sample_type, names[number])
            format = formats.get(attr.config) if attr.type == PerfType.TRACEPOINT else None
            trace = printer(format) if format else None
            self._fields.append(fields)
            self._events.append(
                SampleLines(described, fields, padded[number], self._frames, self._clock, options.lines, trace)
            )
        self._periods = [0 if attr.sample_type & SampleType.PERIOD else attr.sample_period or 1 for attr in attrs]
        self._with_cpu = [bool(attr.sample_type & SampleType.CPU) for attr in attrs]
        self._check_filter()
        self._tests = replace(options.filter, times=self._times()).tests()
        self._sideband_starts = [
            start_line(fields, self._clock, options.lines.chains and "ip" in fields and _has_chains(described.attr))
            for fields, described in zip(self._fields, file.events, strict=True)
        ]

    def _times(self) -> tuple[Range, ...]:
        text = self._options.time
        try:
            return time_ranges(text, self._file.features.sample_time_ns) if text else ()
        except BadTime as problem:
            raise UsageError(f"script --time {text}: {problem}") from None

    def _check_filter(self) -> None:
        if self._options.filter.cpus is not None and not any(self._with_cpu):
            name = self._file.name
            raise UsageError(f"script -C: {name} does not say on which CPU a sample was (record --sample-cpu)")

    def lines(self) -> Iterator[str]:
        """Each with its end. Raises PerfDataError."""
        file, tasks = self._file, self._tasks
        shown = shown_types(self._options.sideband)
        sample_type, last_kind = int(RecordType.SAMPLE), int(UserRecord.HEADER_ATTR)
        for record in in_time_order(file):
            kind = record.type
            if kind == sample_type:
                text = self._sample(record)
                if text:
                    yield text
            elif kind < last_kind:
                tasks.apply(file.decode_record(record), record.misc)
                if kind in shown:
                    yield from self._sideband(record)
        if file.interrupted:
            self._complain(f"{file.name}: the recorder was killed; this is what is there")

    def _sample(self, record: RawRecord) -> str:
        """Nothing for one that is not wanted."""
        file = self._file
        if not self._events:
            self._prepare()
        number = file.event_number(record)
        sample = file.decode_sample(record, number)
        fixed_period = self._periods[number]
        if fixed_period:
            sample.period = fixed_period
        if not self._with_cpu[number]:
            sample.cpu = -1
        tasks = self._tasks
        thread = tasks.thread(sample.pid, sample.tid)
        place = tasks.resolve(sample.pid, sample.ip, in_kernel(sample))
        for test in self._tests:
            if not test(sample, thread, place):
                return ""
        if not sample.read:
            return self._events[number].text(sample, thread, place)
        text = ""
        for value in sample.read:
            grown = value.value - self._last_values.get(value.id, 0) & _MASK_64
            self._last_values[value.id] = value.value
            read = file.event_of_id(value.id)
            if grown:
                sample.period = grown
                text += self._events[number if read is None else read].text(sample, thread, place)
        return text

    def _sideband(self, record: RawRecord) -> Iterator[str]:
        file = self._file
        if not self._events:
            self._prepare()
        number = file.event_number(record)
        decoded = file.decode_record(record)
        attr = file.events[number].attr
        told = decode_sample_id(attr.sample_type, record.data) if attr.sample_id_all else Sample()
        filter = self._options.filter
        if filter.cpus is not None and attr.sample_type & SampleType.CPU and told.cpu not in filter.cpus:
            return
        pid, tid = task_of(decoded) or (told.pid, told.tid)
        name = self._tasks.thread(pid, tid).comm
        letters = misc_letters(record.misc) + letters_of(decoded, record.misc)
        yield self._sideband_starts[number](name, told, letters) + text_of(decoded, record.misc)


def _has_chains(attr: PerfEventAttr) -> bool:
    return bool(attr.sample_type & SampleType.CALLCHAIN)


def _formats(file: PerfDataFile) -> dict[int, TraceFormat]:
    blob = file.features.tracing_data
    if not blob:
        return {}
    try:
        return trace_formats(blob)
    except Malformed as problem:
        raise PerfDataError(f"{file.name}: {problem}") from None
