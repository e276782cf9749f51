"""Which code is mapped where, and which address space each CPU executes in, as a recording of a trace says it: as a
decoder must find it out, by PERF_RECORD_MMAP2, FORK, COMM and SWITCH."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emulator.clock import MONOTONIC_AT_BOOT_NS
from emulator.linux.mm.vdso import DIRECTORY
from perfcore.abi.constants import AuxFlag, Misc, RecordType, SampleType
from perfcore.abi.records import Aux, Comm, Fork, Mmap2, Record, Switch
from perfcore.perfdata.reader import open_perf_data
from perfcore.perfdata.record_stream import RawRecord
from perfcore.perfdata.records import UserRecord
from perfcore.perfdata.samples import sample_id_field_offset

EXECUTABLE = 4  # PROT_EXEC
VDSO = DIRECTORY / "x86_64.elf"


@dataclass(frozen=True, slots=True)
class Part:
    """Of a file, mapped."""

    address: int
    size: int
    offset: int
    path: str

    def overlaps(self, other: Part) -> bool:
        return self.address < other.address + other.size and other.address < self.address + self.size


@dataclass
class AddressSpace:
    """Of a process, until something else is mapped in the same place."""

    number: int
    parts: list[Part] = field(default_factory=list)


@dataclass
class Recording:
    """What it says: the trace of each CPU, and what its decoder must know."""

    spaces: list[AddressSpace] = field(default_factory=list)
    switches: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # CPU -> (ns, number of the address space)
    truncated: int = 0  # stretches that say so

    def write_spaces(self, path: Path) -> None:
        with path.open("w") as file:
            for space in self.spaces:
                for part in space.parts:
                    file.write(f"{space.number} {part.offset} {part.size} {part.address} {part.path}\n")

    def write_switches(self, path: Path, cpu: int, hz: int) -> None:
        """With times of the time stamp counter: `hz` of it."""
        start = MONOTONIC_AT_BOOT_NS // 1_000_000_000 * hz
        with path.open("w") as file:
            for ns, number in self.switches.get(cpu, ()):
                file.write(f"{start + (ns - MONOTONIC_AT_BOOT_NS) * hz // 1_000_000_000} {number}\n")


def read_recording(path: Path, traces: Path, record_bytes: int = 1) -> Recording:
    """Into `traces`, a directory, goes the trace of each CPU: a file by its number.

    Of each stretch whole records, of so many bytes: at the end of an area is room for a part of one.
    """
    reader = _Reader()
    stretches: dict[int, list[tuple[int, int, int]]] = {}  # CPU -> (offset in the trace, in the file, bytes)
    records: list[tuple[int, int, int, RawRecord]] = []
    with open_perf_data(str(path)) as file, path.open("rb") as data:
        for record in file.records():
            if record.type == UserRecord.AUXTRACE:
                size, offset = struct.unpack_from("<QQ", record.data, 8)
                (cpu,) = struct.unpack_from("<I", record.data, 40)
                stretches.setdefault(cpu, []).append((offset, record.offset + len(record.data), size))
            elif record.type == RecordType.AUX:
                aux = file.decode_record(record)
                assert isinstance(aux, Aux)
                reader.told.truncated += aux.flags & AuxFlag.TRUNCATED
            elif record.type in _ORDER:
                records.append((file.record_time(record) or 0, _ORDER.index(record.type), len(records), record))
        sample_type = file.events[-1].attr.sample_type
        for time, _, _, record in sorted(records):
            reader.take(time, record, file.decode_record(record), sample_type)
        for cpu, parts in stretches.items():
            with (traces / str(cpu)).open("wb") as trace:
                for _, at, size in sorted(parts):
                    data.seek(at)
                    trace.write(data.read(size // record_bytes * record_bytes))
    return reader.told


_ORDER = RecordType.FORK, RecordType.COMM, RecordType.MMAP2, RecordType.SWITCH  # of those of one time


class _Reader:
    def __init__(self) -> None:
        self.told = Recording()
        self._of: dict[int, AddressSpace] = {}  # by pid
        self._executing: dict[int, int] = {}  # by CPU: a pid

    def take(self, time: int, raw: RawRecord, record: Record, sample_type: int) -> None:
        if isinstance(record, Fork) and record.pid != record.ppid:
            parent = self._of.get(record.ppid)
            self._begin(record.pid, [] if parent is None else parent.parts, time)
        elif isinstance(record, Comm) and raw.misc & Misc.COMM_EXEC:
            self._begin(record.pid, [], time)
        elif isinstance(record, Mmap2) and record.prot & EXECUTABLE:
            self._map(record, time)
        elif isinstance(record, Switch) and not raw.misc & Misc.SWITCH_OUT:
            cpu, pid = (_trailer(raw.data, sample_type, bit) for bit in (SampleType.CPU, SampleType.TID))
            self._executing[cpu] = pid
            self.told.switches.setdefault(cpu, []).append((time, self._of[pid].number))

    def _begin(self, pid: int, parts: Sequence[Part], time: int) -> None:
        self._of[pid] = space = AddressSpace(len(self.told.spaces), [*parts])
        self.told.spaces.append(space)
        for cpu, executing in self._executing.items():
            if executing == pid:
                self.told.switches[cpu].append((time, space.number))

    def _map(self, record: Mmap2, time: int) -> None:
        part = Part(record.addr, record.len, record.pgoff, record.filename)
        if record.filename == "[vdso]":
            part = Part(record.addr, VDSO.stat().st_size, 0, str(VDSO))
        parts = self._of[record.pid].parts
        covered = [other for other in parts if other.overlaps(part)]
        if part in covered:
            return
        if covered:
            self._begin(record.pid, [other for other in parts if other not in covered], time)
        self._of[record.pid].parts.append(part)


def _trailer(data: bytes, sample_type: int, bit: SampleType) -> int:
    offset = sample_id_field_offset(sample_type, bit)
    assert offset is not None
    (value,) = struct.unpack_from("<I", data, len(data) + offset)
    return int(value)
