"""What sampling units recorded of whole programs, as tables: each record is compared with an instruction's truth.

The truth of those that had to be sampled is of another run (runs.write_ops). Whose turn it was is not asked of the
unit: it follows from the period, and from the shift register where a unit adds something random.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from emulator.probes import Probe
from perfcore.abi.constants import RecordType, SampleType
from perfcore.perfdata.reader import open_perf_data
from perfcore.perfdata.records import UserRecord

Table = npt.NDArray[np.void]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.uint64]
OP = np.dtype(  # RetirementRecorder.write_to, whole
    [
        *((name, "<u8") for name in ("pc", "next", "address", "physical", "cycle", "dispatched", "issued")),
        *((name, "<u8") for name in ("completed", "walked", "waited", "fired", "fired_64")),
        *(("size", "<u2"), ("level", "u1"), ("branch", "u1"), ("known", "<u4")),
    ]
)
_MISSING = RecordType.LOST, RecordType.LOST_SAMPLES, RecordType.THROTTLE
_AT_ONCE = 1 << 16
_HEADER = struct.Struct("<IHH")
_FIELDS = (  # of a sample, in the ABI's order
    (SampleType.IDENTIFIER, [("identifier", "<u8")]),
    (SampleType.IP, [("ip", "<u8")]),
    (SampleType.TID, [("pid", "<u4"), ("tid", "<u4")]),
    (SampleType.TIME, [("time", "<u8")]),
    (SampleType.ADDR, [("addr", "<u8")]),
    (SampleType.ID, [("id", "<u8")]),
    (SampleType.CPU, [("cpu", "<u4"), ("cpu_reserved", "<u4")]),
    (SampleType.PERIOD, [("period", "<u8")]),
    (SampleType.RAW, [("raw_size", "<u4"), ("capabilities", "<u4")]),  # of IBS; its registers follow
    (SampleType.WEIGHT_STRUCT, [("weight", "<u4"), ("weight_2", "<u2"), ("weight_3", "<u2")]),
    (SampleType.DATA_SRC, [("data_src", "<u8")]),
    (SampleType.PHYS_ADDR, [("phys_addr", "<u8")]),
)


def fired(ops: Table, *probes: Probe) -> Flags:
    """Whether each has fired one of these."""
    found = np.zeros(len(ops), bool)
    for probe in probes:
        word = ops["fired" if probe < 64 else "fired_64"]
        found |= (word >> np.uint64(probe % 64) & np.uint64(1)).astype(bool)
    return found


def shift_register(state: int, bits: int) -> Iterator[int]:
    """x**31 + x**28 + 1, a step for each bit; the lowest bits are the next number."""
    while True:
        for _ in range(bits):
            state = (state << 1 | (state >> 30 ^ state >> 27) & 1) & 0x7FFF_FFFF
        yield state & (1 << bits) - 1


def random_numbers(state: int, bits: int, count: int) -> Numbers:
    return np.fromiter(islice(shift_register(state, bits), count), np.uint64, count)


def _records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Of a perf.data: the type, offset and bytes of each record."""
    at, size = struct.unpack_from("<QQ", data, 40)
    end = at + size
    while at < end:
        kind, _, length = _HEADER.unpack_from(data, at)
        yield kind, at, length
        at += length
        if kind == UserRecord.AUXTRACE:
            at += struct.unpack_from("<Q", data, at - length + 8)[0]


def _layout(sample_type: int, registers: int) -> np.dtype[np.void]:
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("header", "<u8")]
    for bit, found in _FIELDS:
        if sample_type & bit:
            fields += found
            if bit is SampleType.RAW:
                fields.append(("registers", "<u8", (registers,)))
    return np.dtype(fields)


def samples_in(path: Path, *registers: int) -> tuple[list[Table], int]:
    """Those of each event, in the file's order; and how many records say that there would have been more.

    `registers`: of each event of IBS, so many are in its samples' raw data.
    """
    with open_perf_data(str(path)) as file:
        events = file.events
    layouts = [
        _layout(event.attr.sample_type, count)
        for event, count in zip(events, registers or (0,) * len(events), strict=True)
    ]
    numbers = {number: index for index, event in enumerate(events) for number in event.ids}
    where = {layout.fields["id"][1] for layout in layouts if layout.fields is not None and "id" in layout.fields}
    (id_at,) = where or {0}
    data = path.read_bytes()
    places: list[list[int]] = [[] for _ in events]
    missing = 0
    for kind, at, length in _records(data):
        if kind == RecordType.SAMPLE:
            index = numbers[int.from_bytes(data[at + id_at : at + id_at + 8], "little")] if id_at else 0
            assert length == layouts[index].itemsize
            places[index].append(at)
        missing += kind in _MISSING
    return [_gathered(data, each, layout) for each, layout in zip(places, layouts, strict=True)], missing


def _gathered(data: bytes, places: list[int], layout: np.dtype[np.void]) -> Table:
    whole, at = np.frombuffer(data, np.uint8), np.asarray(places, np.int64)
    rows = np.empty((len(places), layout.itemsize), np.uint8)
    for first in range(0, len(places), _AT_ONCE):
        rows[first : first + _AT_ONCE] = whole[at[first : first + _AT_ONCE, None] + np.arange(layout.itemsize)]
    return rows.view(layout)[:, 0]
