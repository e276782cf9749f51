"""What records of Arm's Statistical Profiling Extension say: a reader for tests, by the manual's tables of packets."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from emulator.probes import Probe

BRANCH, LOAD, STORE, OTHER = "branch", "load", "store", "other"
EVENTS = {  # bit of the events packet -> what fires it
    0: (Probe.EXC_TAKEN,),
    1: (Probe.INST_RETIRED,),
    2: (Probe.L1D_ACCESS_LOAD, Probe.L1D_ACCESS_STORE),
    3: (Probe.L1D_REFILL_LOAD, Probe.L1D_REFILL_STORE),
    4: (Probe.DTLB_ACCESS_LOAD, Probe.DTLB_ACCESS_STORE),
    5: (Probe.DTLB_WALK_LOAD, Probe.DTLB_WALK_STORE),
    7: (Probe.BR_MISPREDICTED,),
    8: (Probe.LL_ACCESS_LOAD, Probe.LL_ACCESS_STORE),
    9: (Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE),
    10: (Probe.FETCHED_HIT, Probe.FETCHED_HITM),
}
SOURCES = {1: 0x0, 2: 0x8, 3: 0xB, 4: 0x9, 5: 0xE}  # level that answered -> Neoverse N1's number
_ADDRESSES = {0: "pc", 1: "target", 2: "virtual", 3: "physical"}
_COUNTERS = {0: "total", 1: "issue", 2: "translation"}


@dataclass
class SpeRecord:
    """Cycles, addresses by their kinds; None: there was no such packet."""

    addresses: dict[str, int] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    level: int | None = None  # exception level
    kind: str | None = None
    payload: int | None = None  # of the operation type packet
    events: int | None = None
    source: int | None = None
    context: int | None = None
    timestamp: int | None = None


def read_records(data: bytes) -> list[SpeRecord]:
    """All that are in a buffer; padding is left out. ValueError for what is no packet."""
    records, record, at = [], SpeRecord(), 0
    while at < len(data):
        header = data[at]
        size = 0 if header in (0x00, 0x01) else 1 << (header >> 4 & 3)
        payload = int.from_bytes(data[at + 1 : at + 1 + size], "little")
        if header == 0x00:
            at += 1
            continue
        at += 1 + size
        if header in (0x01, 0x71):
            record.timestamp = payload if header == 0x71 else None
            records.append(record)
            record = SpeRecord()
        elif header & 0xF8 == 0xB0:
            kind = _ADDRESSES[header & 7]
            record.addresses[kind] = payload & (1 << 56) - 1 if kind != "virtual" else payload
            if kind == "pc":
                record.level = payload >> 61 & 3
        elif header & 0xF8 == 0x98:
            record.cycles[_COUNTERS[header & 7]] = payload
        elif header in (0x42, 0x52, 0x62, 0x72):
            record.events = payload
        elif header == 0x43:
            record.source = payload
        elif header in (0x64, 0x65):
            record.context = payload
        elif header in (0x48, 0x49, 0x4A):
            record.payload = payload
            record.kind = {0x48: OTHER, 0x4A: BRANCH}.get(header) or (STORE if payload & 1 else LOAD)
        else:
            raise ValueError(f"{header:#x} at byte {at - 1 - size} is no packet's header")
    if record != SpeRecord():
        raise ValueError("the last record has no end")
    return records


def traces_in(file: bytes) -> list[tuple[int, bytes]]:
    """What a perf.data holds of AUX areas: the CPU and the bytes of each PERF_RECORD_AUXTRACE, in order."""
    start, size = struct.unpack_from("<QQ", file, 40)  # struct perf_file_header: its section of data
    found, at = [], start
    while at < start + size:
        kind, _, length = struct.unpack_from("<IHH", file, at)
        at += length
        if kind == 71:
            behind, _, _, _, _, cpu = struct.unpack_from("<QQQIII", file, at - length + 8)
            found.append((cpu, file[at : at + behind]))
            at += behind
    return found
