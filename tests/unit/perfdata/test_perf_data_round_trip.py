"""What PerfDataWriter writes, PerfDataFile reads; and the header lies as the format says."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from perfcore.abi.constants import RecordType, SampleType
from perfcore.abi.records import Comm, Mmap2
from perfcore.abi.sample import HEADER
from perfcore.perfdata.features import CpuCount, EventGroup, Features
from perfcore.perfdata.header import Feature
from perfcore.perfdata.ordering import in_time_order
from perfcore.perfdata.reader import open_perf_data
from perfcore.perfdata.records import BuildId
from perfcore.perfdata.writer import PerfDataWriter
from synthetic_perf_data import PID, START_NS, Recording, event, features


def recording(samples: int = 3) -> Recording:
    made = Recording([event()])
    made.start("/bin/prog", 0x1000)
    for number in range(samples):
        made.sample(0x400000 + 4 * number)
    return made


@pytest.mark.parametrize("pipe", [False, True])
def test_records_come_back_byte_for_byte(tmp_path: Path, pipe: bool) -> None:
    made = recording()
    with open_perf_data(str(made.write(tmp_path / "perf.data", pipe=pipe))) as file:
        records = [record.data for record in file.records() if record.type < 64]
        assert file.is_pipe is pipe
        assert [(described.name, described.ids) for described in file.events] == [("instructions:u", (10,))]
        assert file.features.hostname == "perfemu"
        assert file.features.cpus == CpuCount(available=1, online=1)
        assert file.features.command_line == ("perfemu", "record", "./prog")
    assert records == made.records


def test_bodies_decode_by_the_abi_table(tmp_path: Path) -> None:
    with open_perf_data(str(recording(1).write(tmp_path / "perf.data"))) as file:
        comm, mapping, sample = file.records()
        assert file.decode_record(comm) == Comm(PID, PID, "prog")
        assert file.decode_record(mapping) == Mmap2(PID, PID, 0x400000, 0x1000, 0, 0, 0, 0, 0, 5, 2, "/bin/prog")
        decoded = file.decode_sample(sample, file.event_number(sample))
        assert (decoded.ip, decoded.pid, decoded.time, decoded.period) == (0x400000, PID, START_NS + 3000, 1000)


def test_layout_is_header_ids_attrs_data_features(tmp_path: Path) -> None:
    path = recording().write(tmp_path / "perf.data")
    data = path.read_bytes()
    magic, size, attr_size, attrs, attrs_size, start, length, _, _, bitmap = struct.unpack_from("<8s9Q", data)
    assert (magic, size, attr_size) == (b"PERFILE2", 104, 128 + 16)
    assert attrs == 104 + 8  # one id
    assert (attrs_size, start) == (144, 104 + 8 + 144)
    assert data[start : start + length] == b"".join(recording().records)
    kinds = (3, 4, 5, 6, 7, 8, 10, 11, 12, 21)  # HOSTNAME OSRELEASE VERSION ARCH NRCPUS CPUDESC TOTAL_MEM CMDLINE ...
    assert bitmap == sum(1 << kind for kind in kinds)
    first, first_size = struct.unpack_from("<QQ", data, start + length)
    assert first == start + length + 16 * len(kinds)
    assert (first_size, data[first + 4 : first + 12]) == (4 + 64, b"perfemu\0")


def test_two_writes_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = recording().write(tmp_path / "a"), recording().write(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


def test_features_survive(tmp_path: Path) -> None:
    wanted = features("aarch64")
    wanted.cpuid = "0x00000000410fd083"
    wanted.build_ids = (BuildId("/bin/prog", bytes(range(20))), BuildId("/lib/short.so", b"\1" * 8))
    wanted.pmu_mappings = ((1, "software"), (8, "armv8_cortex_a72"))
    wanted.groups = (EventGroup(leader_index=0, members=2),)
    wanted.other = {Feature.STAT: b""}
    path = tmp_path / "perf.data"
    PerfDataWriter(path, [event(), event("cycles:u", 2)], wanted).close()
    with open_perf_data(str(path)) as file:
        assert file.features == wanted
        assert list(file.records()) == []


def test_sample_time_and_mapped_files_are_gathered_from_the_records(tmp_path: Path) -> None:
    made = recording(3)
    written = Features()
    with PerfDataWriter(tmp_path / "perf.data", made.events, written) as writer:
        writer.write(b"".join(made.records[:3]))
        writer.write(b"".join(made.records[3:]))
        assert writer.mapped_files == ("/bin/prog",)
    # COMM and MMAP2 took the first two microseconds
    assert written.sample_time_ns == (START_NS + 3000, START_NS + 5000)


def test_half_a_record_is_refused(tmp_path: Path) -> None:
    made = recording(1)
    with (
        PerfDataWriter(tmp_path / "perf.data", made.events) as writer,
        pytest.raises(ValueError, match="not whole records"),
    ):
        writer.write(made.records[0][:-4])


def test_a_killed_recorder_leaves_what_it_had_flushed(tmp_path: Path) -> None:
    made = recording(1)
    path = tmp_path / "perf.data"
    writer = PerfDataWriter(path, made.events)
    sample = made.records[-1]  # 8 + 8 + 8 + 8 + 8 + 8 bytes
    assert len(sample) == 48
    block = sample * 1000
    for _ in range(30):  # 1.44 MB: one flush, after the first mebibyte
        writer.write(block)
    writer._file.flush()  # what the operating system has when the process dies
    with open_perf_data(str(path)) as file:
        samples = sum(1 for _ in file.records())
    writer.close()
    assert samples == 22_000  # the first multiple of 1000 samples that reaches 2**20 / 48 = 21845
    with open_perf_data(str(path)) as file:
        assert sum(1 for _ in file.records()) == 30_000


def test_a_recorder_killed_before_its_first_flush_reads_as_interrupted(tmp_path: Path) -> None:
    made = recording(3)
    path = tmp_path / "perf.data"
    writer = PerfDataWriter(path, made.events)
    writer.write(b"".join(made.records))
    writer._file.flush()
    with open_perf_data(str(path)) as file:
        assert file.interrupted
        assert [record.data for record in file.records()] == made.records
    writer.close()


def test_samples_find_their_event_by_identifier(tmp_path: Path) -> None:
    made = Recording([event(), event("cycles:u", 2)])
    made.sample(0x400000, number=1)
    made.sample(0x400004, number=0)
    with open_perf_data(str(made.write(tmp_path / "perf.data"))) as file:
        assert [file.event_number(record) for record in file.records()] == [1, 0]


def test_samples_find_their_event_by_id_too(tmp_path: Path) -> None:
    kind = SampleType.IP | SampleType.TID | SampleType.TIME | SampleType.ID | SampleType.PERIOD
    made = Recording([event(sample_type=kind), event("cycles:u", 2, sample_type=kind)])
    made.sample(0x400000, number=1)
    made.add(Comm(PID, PID, "x"), number=1)
    with open_perf_data(str(made.write(tmp_path / "perf.data"))) as file:
        assert [file.event_number(record) for record in file.records()] == [1, 1]


def test_rounds_are_sorted_by_time(tmp_path: Path) -> None:
    made = Recording([event()])
    for ip in range(6):
        made.sample(ip)
    a, b, c, d, e, f = made.records
    with PerfDataWriter(tmp_path / "perf.data", made.events) as writer:
        writer.write(b + a + d)
        writer.finish_round()
        writer.write(c + f)
        writer.finish_round()
        writer.write(e)
    with open_perf_data(str(tmp_path / "perf.data")) as file:
        samples = [record for record in in_time_order(file) if record.type == RecordType.SAMPLE]
        assert [record.data for record in samples] == [a, b, c, d, e, f]


def test_attrs_of_every_published_size_are_read(tmp_path: Path) -> None:
    body = recording(1).records[-1]
    for size in (64, 72, 80, 96, 104, 112, 120, 128, 136):
        attr = event().attr.copy(size=size).pack()
        attrs = attr + struct.pack("<QQ", 104, 8)
        header = struct.pack("<8s3Q", b"PERFILE2", 104, size + 16, 112)
        header += struct.pack("<9Q", len(attrs), 112 + len(attrs), len(body), 0, 0, 0, 0, 0, 0)
        path = tmp_path / str(size)
        path.write_bytes(header + struct.pack("<Q", 10) + attrs + body)
        with open_perf_data(str(path)) as file:
            assert file.events[0].attr.sample_period == 1000
            assert [HEADER.unpack_from(record.data)[0] for record in file.records()] == [9]
