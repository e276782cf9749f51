"""Sample: PERF_RECORD_SAMPLE, and the sample_id that trails every other record.

Both are walked from one table in ABI order: the encoder of an event is composed once, when the event is opened.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import BranchSampleType, Misc, RecordType, SampleRegsAbi, SampleType
from perfcore.abi.read_format import ReadValues, decode_read, encode_read

HEADER = struct.Struct("<IHH")  # struct perf_event_header: type, misc, size in bytes
LONGEST_RECORD = 65_528  # bytes: the size field has 16 bits, and records are whole 8-byte words


class SampleTooLong(ValueError):
    """A record cannot say how long it is. (Linux writes it with a size of 16 bits, and its reader is lost.)"""


_U64 = struct.Struct("<Q")


def _u64(data: memoryview, offset: int) -> int:
    value: int = _U64.unpack_from(data, offset)[0]
    return value


class BranchEntry(NamedTuple):
    """struct perf_branch_entry; `flags`: mispred 0, predicted 1, in_tx 2, abort 3, cycles 4..19, type 20..23."""

    from_ip: int
    to_ip: int
    flags: int


class BranchStack(NamedTuple):
    """struct perf_branch_stack: the newest entry first."""

    hw_index: int
    entries: list[BranchEntry]


@dataclass(slots=True)
class Sample:
    """One sample, under the kernel's names. Fields that the event did not ask for stay as they are here."""

    misc: int = Misc.USER
    identifier: int = 0
    ip: int = 0
    pid: int = 0
    tid: int = 0
    time: int = 0  # ns
    addr: int = 0
    id: int = 0
    stream_id: int = 0
    cpu: int = 0
    period: int = 0
    read: list[ReadValues] = field(default_factory=list)  # leader first
    callchain: list[int] = field(default_factory=list)  # with PERF_CONTEXT_* markers
    raw: bytes = b""
    branches: list[BranchEntry] = field(default_factory=list)
    branch_hw_index: int = 0
    user_regs_abi: int = SampleRegsAbi.NONE
    user_regs: list[int] = field(default_factory=list)  # those of attr.sample_regs_user, lowest bit first
    user_stack: bytes = b""
    user_stack_size: int = 0  # bytes of user_stack that could be read (dyn_size)
    weight: int = 0  # WEIGHT_STRUCT: var1_dw | var2_w << 32 | var3_w << 48
    data_src: int = 0
    transaction: int = 0
    intr_regs_abi: int = SampleRegsAbi.NONE
    intr_regs: list[int] = field(default_factory=list)
    phys_addr: int = 0
    cgroup: int = 0
    data_page_size: int = 0
    code_page_size: int = 0
    aux: bytes = b""


Encode = Callable[[Sample, PerfEventAttr], bytes]
Decode = Callable[[Sample, PerfEventAttr, memoryview, int], int]  # (sample, attr, data, offset) -> offset after it


class SampleField(NamedTuple):
    """One row of the layout: either fixed words, or a pair of functions."""

    bit: SampleType
    format: str  # of the fixed words; "" where `encode` and `decode` do it
    names: tuple[str, ...]  # of the Sample's fields that the words hold; "" is padding
    encode: Encode | None = None
    decode: Decode | None = None


def _fixed(bit: SampleType, format: str, *names: str) -> SampleField:
    return SampleField(bit, format, names)


def _encode_read(sample: Sample, attr: PerfEventAttr) -> bytes:
    return encode_read(attr.read_format, sample.read)


def _decode_read(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    sample.read, offset = decode_read(attr.read_format, data, offset)
    return offset


@cache
def _pack_u64s(count: int) -> Callable[..., bytes]:
    """Packs `count` words; a sample's lists have few different lengths."""
    return struct.Struct(f"<{count}Q").pack


def _encode_callchain(sample: Sample, attr: PerfEventAttr) -> bytes:
    chain = sample.callchain
    count = len(chain)
    return _pack_u64s(count + 1)(count, *chain)


def _decode_callchain(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    count = _u64(data, offset)
    sample.callchain = list(struct.unpack_from(f"<{count}Q", data, offset + 8))
    return offset + 8 + 8 * count


def _encode_raw(sample: Sample, attr: PerfEventAttr) -> bytes:
    """The size counts the padding, so that size word and data together fill 8-byte words."""
    size = (4 + len(sample.raw) + 7) // 8 * 8 - 4
    return struct.pack("<I", size) + sample.raw.ljust(size, b"\0")


def _decode_raw(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    size: int = struct.unpack_from("<I", data, offset)[0]
    sample.raw = bytes(data[offset + 4 : offset + 4 + size])
    return offset + 4 + size


def _encode_branches(sample: Sample, attr: PerfEventAttr) -> bytes:
    words = [len(sample.branches)]
    if attr.branch_sample_type & BranchSampleType.HW_INDEX:
        words.append(sample.branch_hw_index)
    for entry in sample.branches:
        words += entry
    return _pack_u64s(len(words))(*words)


def _decode_branches(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    count = _u64(data, offset)
    offset += 8
    if attr.branch_sample_type & BranchSampleType.HW_INDEX:
        sample.branch_hw_index = _u64(data, offset)
        offset += 8
    words = struct.unpack_from(f"<{3 * count}Q", data, offset)
    sample.branches = [BranchEntry(*words[i : i + 3]) for i in range(0, len(words), 3)]
    return offset + 24 * count


def _encode_registers(abi: int, registers: Sequence[int]) -> bytes:
    if abi == SampleRegsAbi.NONE:
        return _U64.pack(abi)
    return _pack_u64s(len(registers) + 1)(abi, *registers)


def _decode_registers(mask: int, data: memoryview, offset: int) -> tuple[int, list[int], int]:
    abi = _u64(data, offset)
    if abi == SampleRegsAbi.NONE:
        return abi, [], offset + 8
    count = mask.bit_count()
    return abi, list(struct.unpack_from(f"<{count}Q", data, offset + 8)), offset + 8 + 8 * count


def _encode_user_regs(sample: Sample, attr: PerfEventAttr) -> bytes:
    return _encode_registers(sample.user_regs_abi, sample.user_regs)


def _decode_user_regs(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    sample.user_regs_abi, sample.user_regs, offset = _decode_registers(attr.sample_regs_user, data, offset)
    return offset


def _encode_intr_regs(sample: Sample, attr: PerfEventAttr) -> bytes:
    return _encode_registers(sample.intr_regs_abi, sample.intr_regs)


def _decode_intr_regs(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    sample.intr_regs_abi, sample.intr_regs, offset = _decode_registers(attr.sample_regs_intr, data, offset)
    return offset


def _encode_user_stack(sample: Sample, attr: PerfEventAttr) -> bytes:
    """u64 size; and, if it is not 0, so many bytes and u64 dyn_size."""
    stack = sample.user_stack
    if not stack:
        return _U64.pack(0)
    return _U64.pack(len(stack)) + stack + _U64.pack(sample.user_stack_size)


def _decode_user_stack(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    size = _u64(data, offset)
    offset += 8
    if size:
        sample.user_stack = bytes(data[offset : offset + size])
        sample.user_stack_size = _u64(data, offset + size)
        offset += size + 8
    return offset


def _encode_aux(sample: Sample, attr: PerfEventAttr) -> bytes:
    return _U64.pack(len(sample.aux)) + sample.aux


def _decode_aux(sample: Sample, attr: PerfEventAttr, data: memoryview, offset: int) -> int:
    size = _u64(data, offset)
    sample.aux = bytes(data[offset + 8 : offset + 8 + size])
    return offset + 8 + size


# uapi/linux/perf_event.h, the comment above PERF_RECORD_SAMPLE
SAMPLE_FIELDS: tuple[SampleField, ...] = (
    _fixed(SampleType.IDENTIFIER, "Q", "identifier"),
    _fixed(SampleType.IP, "Q", "ip"),
    _fixed(SampleType.TID, "II", "pid", "tid"),
    _fixed(SampleType.TIME, "Q", "time"),
    _fixed(SampleType.ADDR, "Q", "addr"),
    _fixed(SampleType.ID, "Q", "id"),
    _fixed(SampleType.STREAM_ID, "Q", "stream_id"),
    _fixed(SampleType.CPU, "I4x", "cpu"),
    _fixed(SampleType.PERIOD, "Q", "period"),
    SampleField(SampleType.READ, "", ("read",), _encode_read, _decode_read),
    SampleField(SampleType.CALLCHAIN, "", ("callchain",), _encode_callchain, _decode_callchain),
    SampleField(SampleType.RAW, "", ("raw",), _encode_raw, _decode_raw),
    SampleField(SampleType.BRANCH_STACK, "", ("branches",), _encode_branches, _decode_branches),
    SampleField(SampleType.REGS_USER, "", ("user_regs",), _encode_user_regs, _decode_user_regs),
    SampleField(SampleType.STACK_USER, "", ("user_stack",), _encode_user_stack, _decode_user_stack),
    _fixed(SampleType.WEIGHT, "Q", "weight"),
    _fixed(SampleType.WEIGHT_STRUCT, "Q", "weight"),
    _fixed(SampleType.DATA_SRC, "Q", "data_src"),
    _fixed(SampleType.TRANSACTION, "Q", "transaction"),
    SampleField(SampleType.REGS_INTR, "", ("intr_regs",), _encode_intr_regs, _decode_intr_regs),
    _fixed(SampleType.PHYS_ADDR, "Q", "phys_addr"),
    _fixed(SampleType.CGROUP, "Q", "cgroup"),
    _fixed(SampleType.DATA_PAGE_SIZE, "Q", "data_page_size"),
    _fixed(SampleType.CODE_PAGE_SIZE, "Q", "code_page_size"),
    SampleField(SampleType.AUX, "", ("aux",), _encode_aux, _decode_aux),
)

# struct sample_id, the comment above PERF_RECORD_MMAP: the end of every record but SAMPLE if attr.sample_id_all
SAMPLE_ID_FIELDS: tuple[SampleField, ...] = (
    _fixed(SampleType.TID, "II", "pid", "tid"),
    _fixed(SampleType.TIME, "Q", "time"),
    _fixed(SampleType.ID, "Q", "id"),
    _fixed(SampleType.STREAM_ID, "Q", "stream_id"),
    _fixed(SampleType.CPU, "I4x", "cpu"),
    _fixed(SampleType.IDENTIFIER, "Q", "identifier"),
)


class _Words(NamedTuple):
    """Neighbouring fixed fields as one struct."""

    layout: struct.Struct
    names: tuple[str, ...]

    def getter(self) -> Callable[[Sample], tuple[int, ...]]:
        """The values of the names."""
        if len(self.names) > 1:
            return attrgetter(*self.names)
        if not self.names:
            return lambda sample: ()
        get = attrgetter(self.names[0])
        return lambda sample: (get(sample),)


def _chosen(fields: Sequence[SampleField], sample_type: int) -> list[SampleField]:
    return [row for row in fields if row.bit & sample_type]


def _words(rows: Sequence[SampleField]) -> _Words:
    return _Words(struct.Struct("<" + "".join(row.format for row in rows)), sum((row.names for row in rows), ()))


def sample_encoder(attr: PerfEventAttr) -> Callable[[Sample], bytes]:
    """The function that makes a PERF_RECORD_SAMPLE, header included, of a Sample by `attr`'s sample_type."""
    rows = _chosen(SAMPLE_FIELDS, attr.sample_type)
    lead = 0
    while lead < len(rows) and rows[lead].encode is None:
        lead += 1
    first = _words(rows[:lead])
    layout = struct.Struct("<IHH" + first.layout.format[1:])
    values = first.getter()
    rest: list[Encode] = []
    for row in rows[lead:]:
        rest.append(row.encode or _fixed_encoder(row))
    record_type = int(RecordType.SAMPLE)
    pack, fixed_size = layout.pack, layout.size

    if not rest:

        def encode_fixed(sample: Sample) -> bytes:
            return pack(record_type, sample.misc, fixed_size, *values(sample))

        return encode_fixed

    def encode(sample: Sample) -> bytes:
        tail = b"".join([part(sample, attr) for part in rest])
        size = fixed_size + len(tail)
        if size > LONGEST_RECORD:
            _shorten_stack(sample, size - LONGEST_RECORD)
            return encode(sample)
        return pack(record_type, sample.misc, size, *values(sample)) + tail

    if rest != [_encode_callchain]:
        return encode
    packs: dict[int, Callable[..., bytes]] = {}  # by the chain's length
    longest = (LONGEST_RECORD - fixed_size) // 8 - 1  # chain that fits

    def encode_with_callchain(sample: Sample) -> bytes:
        chain = sample.callchain
        count = len(chain)
        pack = packs.get(count)
        if pack is None:
            if count > longest:
                return encode(sample)
            pack = packs[count] = struct.Struct(f"{layout.format}{count + 1}Q").pack
        return pack(record_type, sample.misc, fixed_size + 8 + 8 * count, *values(sample), count, *chain)

    return encode_with_callchain


def _shorten_stack(sample: Sample, excess: int) -> None:
    """perf_sample_ustack_size: the stack gives way where a sample would not fit a header's 16 bits of size."""
    length = len(sample.user_stack) - excess & ~7
    if length < 0:
        raise SampleTooLong(f"a sample is {excess} bytes longer than {LONGEST_RECORD}, even without its stack")
    sample.user_stack = sample.user_stack[:length]
    sample.user_stack_size = min(sample.user_stack_size, length)


def _fixed_encoder(row: SampleField) -> Encode:
    words = _words([row])
    pack = words.layout.pack
    values = words.getter()

    def encode(sample: Sample, attr: PerfEventAttr) -> bytes:
        return pack(*values(sample))

    return encode


def decode_sample(attr: PerfEventAttr, record: bytes | memoryview) -> Sample:
    """The Sample in a whole PERF_RECORD_SAMPLE `record` of an event opened with `attr`."""
    data = memoryview(record)
    type_, misc, size = HEADER.unpack_from(data)
    if type_ != RecordType.SAMPLE:
        raise ValueError(f"record type {type_} is not PERF_RECORD_SAMPLE ({int(RecordType.SAMPLE)})")
    sample = Sample(misc=misc)
    offset = HEADER.size
    for row in _chosen(SAMPLE_FIELDS, attr.sample_type):
        if row.decode is not None:
            offset = row.decode(sample, attr, data, offset)
        else:
            offset = _decode_words(sample, row, data, offset)
    if offset != size:
        raise ValueError(f"PERF_RECORD_SAMPLE: its fields take {offset} bytes but its header says {size}")
    return sample


def _decode_words(sample: Sample, row: SampleField, data: memoryview, offset: int) -> int:
    layout = struct.Struct("<" + row.format)
    for name, value in zip(row.names, layout.unpack_from(data, offset), strict=True):
        setattr(sample, name, value)
    return offset + layout.size


def sample_id_size(sample_type: int) -> int:
    """Bytes of the sample_id trailer."""
    return _words(_chosen(SAMPLE_ID_FIELDS, sample_type)).layout.size


def sample_id_encoder(sample_type: int) -> Callable[[Sample], bytes]:
    """The function that makes the sample_id trailer of a Sample's fields."""
    words = _words(_chosen(SAMPLE_ID_FIELDS, sample_type))
    pack = words.layout.pack
    values = words.getter()

    def encode(sample: Sample) -> bytes:
        return pack(*values(sample))

    return encode


def decode_sample_id(sample_type: int, record: bytes | memoryview) -> Sample:
    """The sample_id at the end of a whole record that has one."""
    data = memoryview(record)
    sample = Sample()
    offset = len(data) - sample_id_size(sample_type)
    for row in _chosen(SAMPLE_ID_FIELDS, sample_type):
        offset = _decode_words(sample, row, data, offset)
    return sample
