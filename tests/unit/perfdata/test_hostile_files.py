"""Whatever the bytes are, reading ends in records or in one PerfDataError line, and memory stays bounded."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from perfcore.abi.constants import RecordType, SampleType
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.features import EventGroup, JitFile
from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import open_perf_data
from perfcore.perfdata.records import BuildId, UserRecord, pack_record
from perfcore.perfdata.writer import PerfDataWriter
from synthetic_perf_data import SAMPLE_TYPE, Recording, event, features


def good_file(path: Path, pipe: bool = False) -> bytes:
    made = Recording([event(sample_type=SAMPLE_TYPE | SampleType.CALLCHAIN), event("cycles:u", 2)])
    made.start("/bin/prog", 0x1000)
    made.fork(1001)
    for number in range(4):
        made.sample(0x400000 + 4 * number, [0x400100, 0x400200])
    told = features()
    told.build_ids = (BuildId("/bin/prog", b"\1" * 20),)
    told.pmu_mappings = ((1, "software"),)
    told.groups = (EventGroup(0, 2),)
    told.jit_files = () if pipe else (JitFile("/tmp/perf-1.map", b"400000 4 f\n"), JitFile("jit-1.dump", b"DTiJ"))
    with open(path, "wb") as file, PerfDataWriter(file, made.events, told, pipe=pipe) as writer:
        writer.write(b"".join(made.records))
    return path.read_bytes()


def read_all(path: Path) -> None:
    with open_perf_data(str(path)) as file:
        for record in in_time_order(file):
            if record.type == RecordType.SAMPLE:
                file.decode_sample(record, file.event_number(record))
            elif record.type < UserRecord.HEADER_ATTR:
                file.decode_record(record)


def complaint(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(PerfDataError) as caught:
        read_all(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF" + bytes(200), "not a perf.data file: it starts with b'\\x7fELF\\x00\\x00\\x00\\x00'"),
        (b"PERFILE2", "the header ends after 8 bytes"),
        (b"2ELIFREP" + bytes(200), "big-endian files are not supported"),
        (b"PERFILE2" + struct.pack("<Q", 77) + bytes(200), "header size 77"),
        (b"PERFILE2" + struct.pack("<Q", 104) + bytes(20), "the header ends after"),
        (b"PERFILE2" + struct.pack("<3Q", 104, 1 << 40, 104) + bytes(200), "attr size"),
        (b"PERFILE2" + struct.pack("<4Q", 104, 144, 1 << 62, 1 << 62) + bytes(200), "the attr section"),
        (b"PERFILE2" + struct.pack("<4Q", 104, 144, 104, 0) + bytes(200), "the attr section has 0 bytes"),
    ],
)
def test_a_wrong_header_is_named(tmp_path: Path, data: bytes, text: str) -> None:
    assert text in complaint(tmp_path / "x", data)


def test_a_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(PerfDataError, match="a directory"):
        open_perf_data(str(tmp_path))


def test_a_cut_file_says_so(tmp_path: Path) -> None:
    data = good_file(tmp_path / "good")
    offset, size = struct.unpack_from("<QQ", data, 40)
    assert "it was cut off" in complaint(tmp_path / "x", data[: offset + size - 8])
    assert "the feature table" in complaint(tmp_path / "x", data[: offset + size + 8])


def test_records_that_cannot_be_are_named_with_their_place(tmp_path: Path) -> None:
    data = bytearray(good_file(tmp_path / "good"))
    offset = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<H", data, offset + 6, 4)
    assert f"record at {offset:#x}: type 3, size 4 is less than its header" in complaint(tmp_path / "x", bytes(data))
    struct.pack_into("<H", data, offset + 6, 0xFFF8)
    assert f"record at {offset:#x}: type 3, 65528 bytes, only" in complaint(tmp_path / "x", bytes(data))


def test_a_callchain_longer_than_its_sample_is_named(tmp_path: Path) -> None:
    made = Recording([event(sample_type=SAMPLE_TYPE | SampleType.CALLCHAIN)])
    made.sample(0x400000)
    at = made.records[0].index(struct.pack("<Q", 2), 40)  # the count before PERF_CONTEXT_USER and ip
    for count in (3, 1 << 20, 1 << 63, (1 << 64) - 1):
        body = made.records[0][:at] + struct.pack("<Q", count) + made.records[0][at + 8 :]
        with PerfDataWriter(tmp_path / "x", made.events) as writer:
            writer.write(body)
        assert "sample of" in complaint(tmp_path / "x", (tmp_path / "x").read_bytes())


def test_compressed_records_are_refused_by_name(tmp_path: Path) -> None:
    with PerfDataWriter(tmp_path / "x", [event()]) as writer:
        writer.write(pack_record(UserRecord.COMPRESSED, bytes(16)))
    assert "compressed" in complaint(tmp_path / "x", (tmp_path / "x").read_bytes())


@pytest.mark.parametrize("pipe", [False, True])
def test_every_truncation_reads_or_complains(tmp_path: Path, pipe: bool) -> None:
    data = good_file(tmp_path / "good", pipe)
    path = tmp_path / "x"
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        try:
            read_all(path)
        except PerfDataError as error:
            assert "\n" not in str(error)  # noqa: PT017  # both outcomes are right


@pytest.mark.parametrize("pipe", [False, True])
def test_random_damage_reads_or_complains(tmp_path: Path, pipe: bool) -> None:
    data = good_file(tmp_path / "good", pipe)
    path = tmp_path / "x"
    chance = random.Random(1)
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            value = chance.choice((0, 0xFF, 0x7F, 0x80, chance.randrange(256)))
            damaged[chance.randrange(len(damaged))] = value
        path.write_bytes(damaged)
        try:
            read_all(path)
        except PerfDataError as error:
            assert "\n" not in str(error)  # noqa: PT017  # both outcomes are right
