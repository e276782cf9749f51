"""SampleDecoder: PERF_RECORD_SAMPLE of one event to Sample; composed once from the ABI's table, for readers of many."""

from __future__ import annotations

import struct

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import SampleType
from perfcore.abi.sample import HEADER, SAMPLE_FIELDS, SAMPLE_ID_FIELDS, Decode, Sample, SampleField
from perfcore.perfdata.errors import Malformed


def _chosen(fields: tuple[SampleField, ...], sample_type: int) -> list[SampleField]:
    return [row for row in fields if int(row.bit) & sample_type]


class SampleDecoder:
    """Decodes the samples of an event with this attr."""

    def __init__(self, attr: PerfEventAttr) -> None:
        rows = _chosen(SAMPLE_FIELDS, attr.sample_type)
        lead = next((index for index, row in enumerate(rows) if row.decode is not None), len(rows))
        self._attr = attr
        self._layout = struct.Struct("<" + "".join(row.format for row in rows[:lead]))
        self._names = tuple(name for row in rows[:lead] for name in row.names)
        self._rest: list[Decode] = [row.decode or _fixed_decoder(row) for row in rows[lead:]]
        self.fixed_size = 0 if self._rest else HEADER.size + self._layout.size  # bytes of a record; 0 if they differ

    def decode(self, record: bytes, misc: int) -> Sample:
        """The sample in a whole record. Raises Malformed."""
        sample = Sample(misc)
        try:
            for name, value in zip(self._names, self._layout.unpack_from(record, HEADER.size), strict=True):
                setattr(sample, name, value)
            offset = HEADER.size + self._layout.size
            if self._rest:
                view = memoryview(record)
                for decode in self._rest:
                    offset = decode(sample, self._attr, view, offset)
        except (struct.error, IndexError, ValueError, OverflowError, MemoryError) as problem:
            raise Malformed(f"sample of {len(record)} bytes: {problem}") from None
        if offset > len(record):
            raise Malformed(f"sample of {len(record)} bytes: its fields take {offset}")
        return sample


def _fixed_decoder(row: SampleField) -> Decode:
    layout = struct.Struct("<" + row.format)
    names = row.names

    def decode(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
        for name, value in zip(names, layout.unpack_from(data, offset), strict=True):
            setattr(sample, name, value)
        return offset + layout.size

    return decode


def sample_field_offset(sample_type: int, bit: SampleType) -> int | None:
    """Where in a whole PERF_RECORD_SAMPLE the field lies; None if it is absent or has no fixed place."""
    offset = HEADER.size
    for row in _chosen(SAMPLE_FIELDS, sample_type):
        if row.bit is bit:
            return offset
        if row.decode is not None:
            return None
        offset += struct.calcsize("<" + row.format)
    return None


def sample_id_field_offset(sample_type: int, bit: SampleType) -> int | None:
    """Where the field lies in the sample_id trailer, counted (negative) from the record's end; None if absent."""
    rows = _chosen(SAMPLE_ID_FIELDS, sample_type)
    for index, row in enumerate(rows):
        if row.bit is bit:
            return -struct.calcsize("<" + "".join(later.format for later in rows[index:]))
    return None
