"""PerfDataWriter: records in, a perf.data file (or pipe) out, readable by perf after `close` at any point."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import BinaryIO

from emulator.linux.mm.mapping import PROT_EXEC
from perfcore.abi.constants import Misc, RecordType, SampleType
from perfcore.abi.records import Mmap, Mmap2, Mmap2BuildId, decode_record
from perfcore.abi.sample import HEADER, sample_id_size
from perfcore.perfdata.auxtrace import AuxTrace, pack_auxtrace_index
from perfcore.perfdata.features import EventDescription, Features, file_attr, pack_appendix
from perfcore.perfdata.header import (
    DATA_SIZE_OFFSET,
    HEADER_SIZE,
    SECTION_SIZE,
    Feature,
    FileHeader,
    Section,
    pack_pipe_header,
)
from perfcore.perfdata.records import (
    FINISHED_ROUND,
    pack_event_name,
    pack_header_attr,
    pack_header_feature,
    pack_tracing_data,
)
from perfcore.perfdata.samples import sample_field_offset

_VDSO = "[vdso]"
_U64 = struct.Struct("<Q")
_PATCH_INTERVAL = 1 << 20  # bytes of data between two patches of the header's data size
_NOT_IN_A_PIPE = frozenset(  # perf ends with an error when a pipe has these as HEADER_FEATURE records
    (Feature.TRACING_DATA, Feature.BUILD_ID, Feature.BRANCH_STACK, Feature.AUXTRACE, Feature.STAT, Feature.CACHE)
)
_UNKNOWN_UNTIL_THE_END = frozenset((Feature.SAMPLE_TIME,))


class PerfDataWriter:
    """Writes one file. The order is perf's: header, ids, attrs, data, feature table, feature blobs.

    The data is whatever `write` is given: whole records, the very bytes of the ring buffer. `features` may be changed
    until `close`, which also fills in what only the records tell: EVENT_DESC and SAMPLE_TIME. With `pipe`, everything
    is a stream of records; features are then written first and BUILD_ID not at all.

    If the process is killed before `close`, the header counts the records up to the last mebibyte, without features.
    """

    def __init__(
        self,
        destination: str | os.PathLike[str] | BinaryIO,
        events: Sequence[EventDescription],
        features: Features | None = None,
        *,
        pipe: bool = False,
    ) -> None:
        if not events:
            raise ValueError("a perf.data file needs at least one event")
        self.features = Features() if features is None else features
        self.features.events = self.features.events or tuple(events)
        self.data_bytes = 0
        self._events = tuple(events)
        self._pipe = pipe
        self._scan = _RecordScan(self._events)
        self._owns_file = isinstance(destination, (str, os.PathLike))
        self._file: BinaryIO = (
            open(destination, "wb", buffering=_PATCH_INTERVAL)  # noqa: SIM115  # closed by close()
            if isinstance(destination, (str, os.PathLike))
            else destination
        )
        self._closed = False
        self._patched = 0
        self._auxtraces: list[int] = []  # where they begin in the file
        self._header = FileHeader()
        if pipe:
            self._start_pipe()
        else:
            self._start_file()
        if self.features.first_records:
            self._append(self.features.first_records)

    def _start_file(self) -> None:
        ids = []
        offset = HEADER_SIZE
        for event in self._events:
            ids.append(Section(offset, 8 * len(event.ids)))
            offset += 8 * len(event.ids)
        attrs = b"".join(
            file_attr(event.attr) + section.pack() for event, section in zip(self._events, ids, strict=True)
        )
        self._header = FileHeader(attrs=Section(offset, len(attrs)), data=Section(offset + len(attrs), 0))
        self._file.write(self._header.pack())
        for event in self._events:
            self._file.write(struct.pack(f"<{len(event.ids)}Q", *event.ids))
        self._file.write(attrs)
        self._file.flush()

    def _start_pipe(self) -> None:
        self._file.write(pack_pipe_header())
        for event in self._events:
            self._file.write(pack_header_attr(file_attr(event.attr), event.ids))
            if event.ids and event.name:
                self._file.write(pack_event_name(event.ids[0], event.name))
        for feature, blob in self.features.pack().items():
            if feature not in _NOT_IN_A_PIPE and feature not in _UNKNOWN_UNTIL_THE_END:
                self._file.write(pack_header_feature(feature, blob))
        if self.features.tracing_data is not None:
            self._file.write(pack_tracing_data(self.features.tracing_data))
        self._file.flush()

    def write(self, records: bytes) -> int:
        """Append whole records. How many of them are samples?"""
        samples = self._scan.add(records)
        self._append(records)
        return samples

    def write_auxtrace(self, trace: AuxTrace) -> None:
        """Append what has been traced, behind the records that tell of it."""
        self._auxtraces.append(self._header.data.offset + self.data_bytes)
        self._append(trace.pack())

    def _append(self, records: bytes) -> None:
        self._file.write(records)
        self.data_bytes += len(records)
        if self._pipe:
            self._file.flush()
        elif self.data_bytes - self._patched >= _PATCH_INTERVAL:
            self._patch_data_size()

    def finish_round(self) -> None:
        """All records so far are earlier than any that were not yet in some ring buffer at the last call."""
        self.write(FINISHED_ROUND)

    @property
    def pids_with_own_code(self) -> tuple[int, ...]:
        """Processes that have mapped anonymous memory as code, in order: their perf-PID.map has the names."""
        return tuple(self._scan.pids_with_own_code)

    @property
    def mapped_files(self) -> tuple[str, ...]:
        """Paths of the files mapped as code so far, and the vDSO, by their first mappings: BUILD_ID is about these."""
        return tuple(self._scan.mapped_files)

    def _patch_data_size(self) -> None:
        self._file.seek(DATA_SIZE_OFFSET)
        self._file.write(self.data_bytes.to_bytes(8, "little"))
        self._file.seek(0, io.SEEK_END)
        self._file.flush()
        self._patched = self.data_bytes

    def salvage(self) -> bool:
        """After a write that failed: end the file behind the last records known to be on the disk; whether there are.

        The features follow if there is room for them.
        """
        self._closed = True
        if self._pipe or not self._patched:
            return False
        descriptor = os.dup(self._file.fileno())
        if isinstance(self._file, io.BufferedWriter):
            self._file.raw.close()  # what it holds is not tried again
        self.data_bytes = self._patched
        data = Section(self._header.data.offset, self.data_bytes)
        os.ftruncate(descriptor, data.end)
        os.pwrite(descriptor, FileHeader(attrs=self._header.attrs, data=data).pack(), 0)
        tail, header = self._ending()
        with suppress(OSError):
            if os.pwrite(descriptor, tail, data.end) == len(tail):
                os.pwrite(descriptor, header, 0)
            else:
                os.ftruncate(descriptor, data.end)
        os.close(descriptor)
        return True

    def close(self) -> None:
        """Write the features and the final header. Calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if not self._pipe:
                self._finish_file()
            self._file.flush()
        finally:
            if self._owns_file:
                self._file.close()

    def _finish_file(self) -> None:
        self._patch_data_size()
        tail, header = self._ending()
        self._file.write(tail)
        self._file.flush()
        self._file.seek(0)
        self._file.write(header)
        self._file.seek(0, io.SEEK_END)

    def _ending(self) -> tuple[bytes, bytes]:
        """What stands behind the data, and the header that knows of it."""
        if self.features.sample_time_ns is None:
            self.features.sample_time_ns = self._scan.sample_time_ns
        blobs = self.features.pack()
        if self._auxtraces:
            blobs = dict(sorted({**blobs, Feature.AUXTRACE: pack_auxtrace_index(self._auxtraces)}.items()))
        data = Section(self._header.data.offset, self.data_bytes)
        offset = data.end + SECTION_SIZE * len(blobs)
        table = []
        for blob in blobs.values():
            table.append(Section(offset, len(blob)).pack())
            offset += len(blob)
        header = FileHeader(attrs=self._header.attrs, data=data, features=frozenset(blobs))
        return b"".join((*table, *blobs.values(), pack_appendix(self.features.jit_files))), header.pack()

    def __enter__(self) -> PerfDataWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _RecordScan:
    """What a file's features say about its records, gathered while they pass."""

    def __init__(self, events: Sequence[EventDescription]) -> None:
        self.mapped_files: dict[str, None] = {}  # an ordered set
        self.pids_with_own_code: dict[int, None] = {}
        self.sample_time_ns: tuple[int, int] | None = None
        offsets = {sample_field_offset(event.attr.sample_type, SampleType.TIME) for event in events}
        self._time_offset = offsets.pop() if len(offsets) == 1 else None
        trailers = {sample_id_size(event.attr.sample_type) for event in events if event.attr.sample_id_all}
        self._trailer_bytes = trailers.pop() if len(trailers) == 1 else 0

    def add(self, records: bytes) -> int:
        """How many of them are samples?"""
        unpack_header, smallest, sample = HEADER.unpack_from, HEADER.size, int(RecordType.SAMPLE)
        maps = (int(RecordType.MMAP), int(RecordType.MMAP2))
        samples = first = last = 0
        position, end = 0, len(records)
        while position < end:
            kind, misc, size = unpack_header(records, position)
            behind = position + size
            if size < smallest or behind > end:
                raise ValueError(f"record type {kind} of {size} bytes at {position} of {end}: not whole records")
            if kind == sample:
                if not samples:
                    first = position
                samples += 1
                last = position
            elif kind in maps and not misc & Misc.MMAP_DATA:
                self._add_mapping(records[position:behind])
            position = behind
        if samples and self._time_offset is not None:
            begin, time = (_U64.unpack_from(records, at + self._time_offset)[0] for at in (first, last))
            self.sample_time_ns = (begin if self.sample_time_ns is None else self.sample_time_ns[0]), time
        return samples

    def _add_mapping(self, record: bytes) -> None:
        mapping = decode_record(record, self._trailer_bytes)
        if isinstance(mapping, (Mmap, Mmap2, Mmap2BuildId)) and mapping.filename.startswith(("/", _VDSO)):
            if not isinstance(mapping, Mmap) and not mapping.prot & PROT_EXEC:
                return
            if mapping.filename.startswith("//"):  # //anon
                self.pids_with_own_code.setdefault(mapping.pid)
                return
            self.mapped_files.setdefault(mapping.filename)
