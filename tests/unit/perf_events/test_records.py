"""Records other than samples, against bytes packed by hand."""

import struct
from dataclasses import fields

import pytest

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import BranchSampleType, Misc, ReadFormat, RecordType, SampleType
from perfcore.abi.read_format import ReadValues
from perfcore.abi.records import (
    RECORDS,
    Comm,
    Exit,
    Fork,
    Lost,
    Mmap,
    Mmap2,
    Mmap2BuildId,
    SwitchCpuWide,
    Throttle,
    decode_record,
)
from perfcore.abi.sample import (
    SAMPLE_FIELDS,
    BranchEntry,
    Sample,
    decode_sample,
    decode_sample_id,
    sample_encoder,
    sample_id_encoder,
    sample_id_size,
)

EXAMPLES = [
    (
        Mmap(1, 2, 0x1000, 0x2000, 3, "/lib/x"),
        Misc.USER,
        struct.pack("<IHHIIQQQ8s", 1, 2, 48, 1, 2, 0x1000, 0x2000, 3, b"/lib/x"),
    ),
    (
        Mmap2(1, 2, 3, 4, 5, 8, 1, 99, 7, 5, 2, "/bin/abc"),  # 8 characters and the NUL take 16 bytes
        Misc.USER,
        struct.pack("<IHHIIQQQIIQQII16s", 10, 2, 88, 1, 2, 3, 4, 5, 8, 1, 99, 7, 5, 2, b"/bin/abc"),
    ),
    (
        Mmap2BuildId(1, 2, 3, 4, 5, 20, 0, 0, bytes(range(20)), 5, 2, "a"),
        Misc.USER | Misc.MMAP_BUILD_ID,
        struct.pack("<IHHIIQQQBBH20sII8s", 10, 0x4002, 80, 1, 2, 3, 4, 5, 20, 0, 0, bytes(range(20)), 5, 2, b"a"),
    ),
    (Comm(1, 2, "sh"), Misc.COMM_EXEC, struct.pack("<IHHII8s", 3, 1 << 13, 24, 1, 2, b"sh")),
    (Fork(1, 2, 3, 4, 5), 0, struct.pack("<IHHIIIIQ", 7, 0, 32, 1, 2, 3, 4, 5)),
    (Exit(1, 2, 3, 4, 5), 0, struct.pack("<IHHIIIIQ", 4, 0, 32, 1, 2, 3, 4, 5)),
    (Lost(9, 10), 0, struct.pack("<IHHQQ", 2, 0, 24, 9, 10)),
    (Throttle(1, 2, 3), 0, struct.pack("<IHHQQQ", 5, 0, 32, 1, 2, 3)),
    (SwitchCpuWide(1, 2), Misc.SWITCH_OUT, struct.pack("<IHHII", 15, 1 << 13, 16, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("record", "misc", "data"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_a_record_has_the_abi_bytes(record, misc, data):
    assert record.encode(misc) == data
    assert decode_record(data) == record


def test_a_record_with_a_sample_id_ends_with_it():
    wanted = SampleType.IP | SampleType.TID | SampleType.TIME | SampleType.CPU | SampleType.IDENTIFIER
    sample = Sample(pid=1, tid=2, time=3, cpu=4, identifier=5)
    trailer = sample_id_encoder(wanted)(sample)
    assert trailer == struct.pack("<IIQIIQ", 1, 2, 3, 4, 0, 5)  # IP is no part of it
    assert sample_id_size(wanted) == 32
    data = Comm(1, 2, "long name").encode(0, trailer)
    assert struct.unpack_from("<IHH", data) == (3, 0, 8 + 8 + 16 + 32)
    assert decode_record(data, sample_id_size(wanted)) == Comm(1, 2, "long name")
    assert decode_sample_id(wanted, data) == sample


def test_every_record_class_has_a_layout_that_round_trips():
    for kind in RECORDS:
        values = []
        for name in (field.name for field in fields(kind)):
            values.append(
                {
                    "filename": "f",
                    "path": "f",
                    "comm": "c",
                    "build_id": bytes(20),
                    "values": b"12345678",
                    "links": b"1",
                }.get(name, 7)
            )
        record = kind(*values)
        misc = Misc.MMAP_BUILD_ID if kind is Mmap2BuildId else 0
        assert decode_record(record.encode(misc)) == record


def test_an_unknown_record_keeps_its_bytes():
    data = struct.pack("<IHH8s", 99, 3, 16, b"whatever")
    assert decode_record(data).encode(3) == data


def test_the_sample_table_is_in_abi_order():
    order = [row.bit for row in SAMPLE_FIELDS]
    assert set(order) == set(SampleType)
    assert order[:9] == [
        SampleType.IDENTIFIER,
        SampleType.IP,
        SampleType.TID,
        SampleType.TIME,
        SampleType.ADDR,
        SampleType.ID,
        SampleType.STREAM_ID,
        SampleType.CPU,
        SampleType.PERIOD,
    ]


def test_a_stack_gives_way_where_a_sample_would_be_too_long():
    attr = PerfEventAttr(sample_type=SampleType.IP | SampleType.STACK_USER, sample_stack_user=65_528)
    data = sample_encoder(attr)(Sample(ip=1, user_stack=bytes(65_528), user_stack_size=65_000))
    assert len(data) == 65_528
    # header 8, ip 8, size 8, dyn_size 8
    assert len(decode_sample(attr, data).user_stack) == 65_528 - 32


def test_a_sample_with_everything():
    attr = PerfEventAttr(
        sample_type=(1 << 25) - 1 & ~SampleType.WEIGHT_STRUCT,
        read_format=ReadFormat.GROUP | ReadFormat.ID,
        branch_sample_type=BranchSampleType.ANY | BranchSampleType.HW_INDEX,
        sample_regs_user=0b101,
        sample_regs_intr=0b1,
    )
    sample = Sample(
        misc=2, identifier=1, ip=2, pid=3, tid=4, time=5, addr=6, id=7, stream_id=8, cpu=9, period=10,
        read=[ReadValues(11, 0, 0, 12, 0), ReadValues(13, 0, 0, 14, 0)], callchain=[15, 16], raw=b"raw!",
        branches=[BranchEntry(17, 18, 19)], branch_hw_index=20, user_regs_abi=2, user_regs=[21, 22],
        user_stack=b"stack678", user_stack_size=8, weight=23, data_src=24, transaction=25, intr_regs_abi=2,
        intr_regs=[26], phys_addr=27, cgroup=28, data_page_size=29, code_page_size=30, aux=b"aux45678",
    )  # fmt: skip
    expected = b"".join(
        [
            struct.pack("<QQIIQQQQIIQ", 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 10),
            struct.pack("<5Q", 2, 11, 12, 13, 14),  # READ: nr, then value and id of each
            struct.pack("<3Q", 2, 15, 16),  # CALLCHAIN
            struct.pack("<I4s", 4, b"raw!"),  # RAW: size word and data fill 8 bytes
            struct.pack("<5Q", 1, 20, 17, 18, 19),  # BRANCH_STACK: nr, hw_idx, entries
            struct.pack("<3Q", 2, 21, 22),  # REGS_USER
            struct.pack("<Q8sQ", 8, b"stack678", 8),  # STACK_USER
            struct.pack("<3Q", 23, 24, 25),
            struct.pack("<2Q", 2, 26),  # REGS_INTR
            struct.pack("<4Q", 27, 28, 29, 30),
            struct.pack("<Q8s", 8, b"aux45678"),
        ]
    )
    data = sample_encoder(attr)(sample)
    assert data == struct.pack("<IHH", RecordType.SAMPLE, 2, 8 + len(expected)) + expected
    assert decode_sample(attr, data) == sample
