"""dump: a file's records, one a line, for people who look for one of them (report -D)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from perfcore.abi.constants import PerfContext, RecordType
from perfcore.abi.sample import Sample
from perfcore.perfdata.reader import PerfDataFile
from perfcore.perfdata.record_stream import RawRecord
from perfcore.perfdata.records import UserRecord
from perfemu.visible import visible

_IN_HEX = frozenset({"ip", "addr", "pgoff", "phys_addr", "data_src", "transaction", "callchain"})
_SAID_ALREADY = frozenset({"misc", "type"})
_CONTEXTS = {int(context) & (1 << 64) - 1: context.name.lower() for context in PerfContext}
_KERNEL_RECORDS = {int(kind): f"PERF_RECORD_{kind.name}" for kind in RecordType}
_PERF_RECORDS = {int(kind): f"PERF_RECORD_{kind.name}" for kind in UserRecord}


def dump_lines(file: PerfDataFile) -> Iterator[str]:
    """Offset in the file, size, type, misc; and the fields, of a sample those that are not 0. Raises PerfDataError."""
    for record in file.records():
        head = f"{record.offset:#x} [{len(record.data):#x}] {_type_name(record.type)} {record.misc:#x}:"
        yield visible(head + _told(file, record))


def _type_name(number: int) -> str:
    return _KERNEL_RECORDS.get(number) or _PERF_RECORDS.get(number) or f"type {number}"


def _told(file: PerfDataFile, record: RawRecord) -> str:
    if record.type >= UserRecord.HEADER_ATTR:
        return ""
    if record.type != RecordType.SAMPLE:
        return _fields_of(file.decode_record(record), keep_zeros=True)
    number = file.event_number(record)
    return f" {file.events[number].name or f'event {number}'}" + _fields_of(file.decode_sample(record, number))


def _fields_of(record: Sample | object, keep_zeros: bool = False) -> str:
    assert is_dataclass(record), "every record is one"
    told = ((field.name, getattr(record, field.name)) for field in fields(record))
    return "".join(
        f" {name}={_text(name, value)}" for name, value in told if (value or keep_zeros) and name not in _SAID_ALREADY
    )


def _text(name: str, value: object) -> str:
    if isinstance(value, list):
        return f"[{' '.join(_text(name, item) for item in value)}]"
    if isinstance(value, int) and name in _IN_HEX:
        return _CONTEXTS.get(value) or f"{value:#x}"
    return value.hex() if isinstance(value, bytes) else str(value)
