"""PerfDataFile: what is in a perf.data file or pipe, by perf or by us. Hostile input raises PerfDataError only."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO

from perfcore.abi.attr import ATTR_SIZE_LIMIT, PERF_ATTR_SIZE_VER0, PerfEventAttr
from perfcore.abi.constants import RecordType, SampleType
from perfcore.abi.records import Record, decode_record
from perfcore.abi.sample import Sample, sample_id_size
from perfcore.perfdata.auxtrace import AuxTraceType
from perfcore.perfdata.errors import Malformed, PerfDataError
from perfcore.perfdata.features import (
    APPENDIX_END_SIZE,
    EventDescription,
    Features,
    appendix_size,
    unpack_appendix,
    unpack_attr,
)
from perfcore.perfdata.header import (
    FEATURE_BITS,
    HEADER_SIZE,
    MAGIC,
    PIPE_HEADER_SIZE,
    SECTION_SIZE,
    Feature,
    FileHeader,
    Section,
)
from perfcore.perfdata.record_stream import FIRST_USER_RECORD, RawRecord, RecordStream, SampleRun
from perfcore.perfdata.records import EVENT_UPDATE_NAME, RECORD_HEADER_SIZE, UserRecord
from perfcore.perfdata.samples import SampleDecoder, sample_field_offset, sample_id_field_offset

_SAMPLE = int(RecordType.SAMPLE)


class PerfDataFile:
    """An open perf.data file. Make it with `open_perf_data`; iterate `records()` once.

    A pipe tells its events and features as records: they are known once `records()` has come past them.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.events: list[EventDescription] = []
        self.features = Features()
        self.header = FileHeader()
        self.interrupted = False  # the recorder was killed: no features, and the data's size is a guess
        self._file = file
        self._budget = 0  # bytes that sections may still have before some must overlap
        self._event_of_id: dict[int, int] = {}
        self._decoders: list[SampleDecoder] = []
        self._sample_id_offset: int | None = None
        self._trailer_id_offset: int | None = None
        self._trailer_sizes: list[int] = []
        self._time_offsets: list[tuple[int | None, int | None]] = []  # in samples, and before the end of other records
        self._sample_time_offset = 0  # in the samples of every event; 0 if they differ, or have none
        self._sample_period_offset: int | None = None  # 0: in none; None: they differ
        self._sample_size = 0  # bytes, of the samples of every event; 0 if they differ
        start = self._read_start()
        self.is_pipe = start[8:16] == PIPE_HEADER_SIZE.to_bytes(8, "little")
        if not self.is_pipe:
            self._read_file_header(start + self._file.read(HEADER_SIZE - PIPE_HEADER_SIZE))

    # the header

    def _read_start(self) -> bytes:
        start = self._file.read(PIPE_HEADER_SIZE)
        if start[:8] == MAGIC[::-1]:
            raise self._error("big-endian files are not supported")
        if not start:
            raise self._error("the file is empty")
        if start[:8] != MAGIC:
            raise self._error(f"not a perf.data file: it starts with {start[:8]!r} and not {MAGIC!r}")
        if len(start) < PIPE_HEADER_SIZE:
            raise self._error(f"the header ends after {len(start)} bytes")
        return start

    def _read_file_header(self, data: bytes) -> None:
        if len(data) < HEADER_SIZE:
            raise self._error(f"the header ends after {len(data)} of {HEADER_SIZE} bytes")
        size = int.from_bytes(data[8:16], "little")
        if size != HEADER_SIZE:
            raise self._error(f"header size {size}: {HEADER_SIZE} (file) and {PIPE_HEADER_SIZE} (pipe) are known")
        self.header = FileHeader.unpack(data)
        if not self._file.seekable():
            raise self._error("a perf.data file, not a pipe's stream, cannot be read from a pipe")
        file_size = self._file.seek(0, os.SEEK_END)
        self._budget = file_size
        self._read_attrs(file_size)
        if self.header.data.size == 0 and not self.header.features and file_size > self.header.data.offset:
            self.interrupted = True
            left = file_size - self.header.data.offset
            self.header = FileHeader(self.header.attr_size, self.header.attrs, Section(self.header.data.offset, left))
        elif self.header.data.end > file_size:
            raise self._error(
                f"the data section ends at {self.header.data.end:#x} but the file at {file_size:#x}: it was cut off"
            )
        self._read_features(file_size)

    def _section(self, section: Section, what: str, file_size: int) -> bytes:
        if section.end > file_size:
            raise self._error(
                f"{what} at {section.offset:#x}, {section.size} bytes, ends after the file ({file_size:#x})"
            )
        self._budget -= section.size
        if self._budget < 0:
            raise self._error(f"{what} at {section.offset:#x}, {section.size} bytes, overlaps other sections")
        self._file.seek(section.offset)
        return self._file.read(section.size)

    def _read_attrs(self, file_size: int) -> None:
        attr_size = self.header.attr_size - SECTION_SIZE
        if not PERF_ATTR_SIZE_VER0 <= attr_size <= ATTR_SIZE_LIMIT:
            raise self._error(f"attr size {attr_size} is not within {PERF_ATTR_SIZE_VER0}..{ATTR_SIZE_LIMIT}")
        attrs = self._section(self.header.attrs, "the attr section", file_size)
        if not attrs or len(attrs) % self.header.attr_size:
            raise self._error(f"the attr section has {len(attrs)} bytes, not a multiple of {self.header.attr_size}")
        for start in range(0, len(attrs), self.header.attr_size):
            attr = self._attr(attrs[start : start + attr_size], self.header.attrs.offset + start)
            ids = self._section(Section.unpack_from(attrs, start + attr_size), "an id section", file_size)
            self._add_event(EventDescription(attr, struct.unpack(f"<{len(ids) // 8}Q", ids[: len(ids) & ~7])))

    def _attr(self, data: bytes, offset: int) -> PerfEventAttr:
        try:
            return unpack_attr(data)
        except Malformed as problem:
            raise self._error(f"attr at {offset:#x}: {problem}") from None

    def _read_features(self, file_size: int) -> None:
        features = sorted(self.header.features)
        table = self._section(
            Section(self.header.data.end, SECTION_SIZE * len(features)), "the feature table", file_size
        )
        for index, feature in enumerate(features):
            blob = self._section(Section.unpack_from(table, SECTION_SIZE * index), f"feature {feature}", file_size)
            self._take_feature(feature, blob)
        self._read_appendix(file_size)

    def _read_appendix(self, file_size: int) -> None:
        """What perfemu itself has put behind the features."""
        end = file_size - APPENDIX_END_SIZE
        if self.interrupted or end < self.header.data.end:
            return
        self._file.seek(end)
        size = appendix_size(self._file.read(APPENDIX_END_SIZE))
        if size > end - self.header.data.end:
            raise self._error(f"the appendix at {end:#x} has {size} bytes: more than there is behind the data")
        if size:
            try:
                self.features.jit_files = unpack_appendix(
                    self._section(Section(end - size, size), "appendix", file_size)
                )
            except Malformed as problem:
                raise self._error(f"appendix: {problem}") from None

    def _take_feature(self, feature: int, blob: bytes) -> None:
        try:
            self.features.unpack(feature, blob)
        except Malformed as problem:
            raise self._error(str(problem)) from None
        if feature == Feature.EVENT_DESC:
            self._name_events()

    def _name_events(self) -> None:
        """EVENT_DESC repeats the events, in the same order, with their names."""
        if len(self.features.events) == len(self.events):
            self.events = [
                EventDescription(event.attr, event.ids, described.name)
                for event, described in zip(self.events, self.features.events, strict=True)
            ]

    def _add_event(self, event: EventDescription) -> None:
        number = len(self.events)
        self.events.append(event)
        self._decoders.append(SampleDecoder(event.attr))
        self._trailer_sizes.append(sample_id_size(event.attr.sample_type) if event.attr.sample_id_all else 0)
        sample_type, all_have_id = event.attr.sample_type, bool(event.attr.sample_id_all)
        self._time_offsets.append(
            (
                sample_field_offset(sample_type, SampleType.TIME),
                sample_id_field_offset(sample_type, SampleType.TIME) if all_have_id else None,
            )
        )
        period = sample_field_offset(sample_type, SampleType.PERIOD) or 0
        self._sample_period_offset = period if self._sample_period_offset == period or number == 0 else None
        size = self._decoders[-1].fixed_size
        self._sample_size = size if number == 0 or self._sample_size == size else 0
        offsets = {offset for offset, _ in self._time_offsets}
        self._sample_time_offset = (offsets.pop() or 0) if len(offsets) == 1 else 0
        for identifier in event.ids:
            self._event_of_id[identifier] = number
        bit = SampleType.IDENTIFIER if event.attr.sample_type & SampleType.IDENTIFIER else SampleType.ID
        if number == 0:
            self._sample_id_offset = sample_field_offset(event.attr.sample_type, bit)
            self._trailer_id_offset = sample_id_field_offset(event.attr.sample_type, bit)

    # the records

    def records(self) -> Iterator[RawRecord]:
        """Every record in file order. A pipe's HEADER_ATTR, HEADER_FEATURE and EVENT_UPDATE are taken in on the way."""
        return self._stream().walk(0)  # type: ignore[return-value]  # there are no runs of nothing

    def records_and_runs(self) -> Iterator[RawRecord | SampleRun]:
        """The same, of a file that `has_equal_samples`: many of them come in runs."""
        return self._stream().walk(self._sample_size)

    def auxtraces(self, kind: AuxTraceType) -> list[bytes]:
        """What a file, not a pipe, holds of AUX areas, if that is of this kind. Not while records are iterated."""
        if Feature.AUXTRACE not in self.features.other:
            return []
        places, found = [], None
        for record in self.records():
            if record.type == UserRecord.AUXTRACE_INFO:
                found = int.from_bytes(record.data[8:12], "little")
            elif record.type == UserRecord.AUXTRACE and found == kind:
                places.append((record.offset + len(record.data), int.from_bytes(record.data[8:16], "little")))
        traces = []
        for offset, size in places:
            self._file.seek(offset)
            traces.append(self._file.read(size))
        return traces

    def _stream(self) -> RecordStream:
        data = self.header.data
        return RecordStream(
            self._file,
            self.name,
            PIPE_HEADER_SIZE if self.is_pipe else data.offset,
            None if self.is_pipe else data.size,
            interrupted=self.interrupted,
            take_user_record=self._take_user_record,
            take_tracing_data=self._take_tracing_data,
        )

    @property
    def has_equal_samples(self) -> bool:
        """Whether all samples are of one size, with times and periods at the same place. Not known of a pipe."""
        offsets = (self._sample_time_offset, self._sample_period_offset)
        return not self.is_pipe and self._sample_size > 0 and self._sample_time_offset > 0 and None not in offsets

    @property
    def sample_time_column(self) -> int:
        """Which word of equal samples is their time."""
        return self._sample_time_offset // 8

    @property
    def sample_period_column(self) -> int | None:
        """Which word of equal samples is their period; None if it is not told."""
        return self._sample_period_offset // 8 if self._sample_period_offset else None

    def _take_user_record(self, record: RawRecord) -> None:
        if record.type == UserRecord.COMPRESSED:
            raise self._error(f"record at {record.offset:#x}: compressed files (perf record -z) are not supported")
        if record.type == UserRecord.HEADER_ATTR and self.is_pipe:
            attr = self._attr(record.data[8:], record.offset)
            ids = record.data[8 + attr.size :]
            self._add_event(EventDescription(attr, struct.unpack(f"<{len(ids) // 8}Q", ids[: len(ids) & ~7])))
        elif record.type == UserRecord.HEADER_FEATURE and self.is_pipe:
            feature = int.from_bytes(record.data[8:16], "little")
            if feature < FEATURE_BITS:
                self._take_feature(feature, record.data[16:])
        elif record.type == UserRecord.EVENT_UPDATE:
            self._update_event(record.data)

    def _take_tracing_data(self, data: bytes) -> None:
        self.features.tracing_data = data

    def _update_event(self, data: bytes) -> None:
        kind, identifier = int.from_bytes(data[8:16], "little"), int.from_bytes(data[16:24], "little")
        number = self._event_of_id.get(identifier)
        if kind == EVENT_UPDATE_NAME and number is not None:
            name = data[24:].split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
            self.events[number] = EventDescription(self.events[number].attr, self.events[number].ids, name)

    def event_number(self, record: RawRecord) -> int:
        """Index in `events` of the event that a sample, or a record with a sample_id, belongs to."""
        if not self.events:
            raise self._error(f"record at {record.offset:#x}: no event has been described before it")
        if len(self.events) == 1:
            return 0
        at = self._sample_id_offset
        if record.type != RecordType.SAMPLE:
            at = None if self._trailer_id_offset is None else len(record.data) + self._trailer_id_offset
        if at is None or at < 8 or at + 8 > len(record.data):
            return 0
        identifier = int.from_bytes(record.data[at : at + 8], "little")
        number = self._event_of_id.get(identifier)
        if number is None:
            if identifier == 0 or record.type != RecordType.SAMPLE:
                return 0  # records made by perf itself have id 0
            raise self._error(f"sample at {record.offset:#x}: id {identifier} belongs to no event")
        return number

    def event_of_id(self, identifier: int) -> int | None:
        """Index in `events` of the event with this id."""
        return self._event_of_id.get(identifier)

    def decode_sample(self, record: RawRecord, event_number: int) -> Sample:
        try:
            return self._decoders[event_number].decode(record.data, record.misc)
        except Malformed as problem:
            raise self._error(f"at {record.offset:#x}: {problem}") from None

    def decode_record(self, record: RawRecord) -> Record:
        """The fields of a kernel record that is no sample."""
        trailer = self._trailer_sizes[self.event_number(record)] if record.type < FIRST_USER_RECORD else 0
        try:
            return decode_record(record.data, trailer)
        except (ValueError, struct.error) as problem:
            raise self._error(f"record at {record.offset:#x}: {problem}") from None

    def record_time(self, record: RawRecord) -> int | None:
        """ns, from the sample or the sample_id; None where the record has no time."""
        at = self._sample_time_offset
        if at and record.type == _SAMPLE and at + 8 <= len(record.data):
            return int.from_bytes(record.data[at : at + 8], "little")
        if record.type >= FIRST_USER_RECORD or not self.events:
            return None
        within, behind = self._time_offsets[self.event_number(record)]
        if record.type != _SAMPLE:
            within = None if behind is None else len(record.data) + behind
        if within is None or within < RECORD_HEADER_SIZE or within + 8 > len(record.data):
            return None
        return int.from_bytes(record.data[within : within + 8], "little")

    def kind_of_sample(self, sample: RawRecord) -> tuple[bytes, int | None] | None:
        """What samples of a kind have in common: all but their times and periods; the period, None if it is not told.

        None where events have these fields at different places, or no times.
        """
        at, period_at, data = self._sample_time_offset, self._sample_period_offset, sample.data
        if not at or period_at is None:
            return None
        if not period_at:
            return data[:at] + data[at + 8 :], None
        period = int.from_bytes(data[period_at : period_at + 8], "little")
        return data[:at] + data[at + 8 : period_at] + data[period_at + 8 :], period

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> PerfDataFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _error(self, text: str) -> PerfDataError:
        return PerfDataError(f"{self.name}: {text}")


def open_perf_data(path: str) -> PerfDataFile:
    """Open and read up to the first record. Raises PerfDataError, or OSError where there is no file to read."""
    if os.path.isdir(path):
        raise PerfDataError(f"{path}: a directory; files by perf record --threads are not supported")
    file = open(path, "rb")  # noqa: SIM115  # closed by PerfDataFile.close
    try:
        return PerfDataFile(file, path)
    except PerfDataError:
        file.close()
        raise
