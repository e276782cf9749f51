"""RecordStream: bytes are cut into records; many equal samples come together."""

from __future__ import annotations

import io
import struct

import pytest

from perfcore.abi.constants import RecordType
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.record_stream import RawRecord, RecordStream, SampleRun
from perfcore.perfdata.records import UserRecord


def record(kind: int, payload: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload


def stream(file: io.BytesIO, size: int | None, *, interrupted: bool = False) -> tuple[RecordStream, list[object]]:
    taken: list[object] = []
    made = RecordStream(
        file, "file", 0, size, interrupted=interrupted, take_user_record=taken.append, take_tracing_data=taken.append
    )
    return made, taken


SAMPLE, COMM = int(RecordType.SAMPLE), int(RecordType.COMM)


def test_records_lie_one_behind_the_other() -> None:
    data = record(COMM, b"x" * 24) + record(SAMPLE, b"y" * 16, misc=2)
    wanted = [RawRecord(0, COMM, 0, data[:32]), RawRecord(32, SAMPLE, 2, data[32:])]
    assert list(stream(io.BytesIO(data), len(data))[0].walk(0)) == wanted


def test_equal_samples_come_in_runs_and_others_between_them_alone() -> None:
    """Eight are many: RecordStream's own choice."""
    data = record(SAMPLE, b"s" * 8) * 10 + record(COMM, b"c" * 8) + record(SAMPLE, b"s" * 8) * 3
    run, *rest = stream(io.BytesIO(data), len(data))[0].walk(16)
    assert isinstance(run, SampleRun)
    assert (run.offset, run.words.shape) == (0, (10, 2))
    assert [(one.offset, one.type) for one in rest if isinstance(one, RawRecord)] == [
        (160, COMM), (176, SAMPLE), (192, SAMPLE), (208, SAMPLE),
    ]  # fmt: skip


def test_records_of_perfs_own_and_what_stands_behind_them_are_taken_first() -> None:
    traced = record(UserRecord.HEADER_TRACING_DATA, struct.pack("<I", 12)) + b"tracing data"
    data = traced + record(COMM, b"c" * 8)
    made, taken = stream(io.BytesIO(data), None)
    walk = made.walk(0)
    first = next(walk)
    assert taken == [first, b"tracing data"]
    assert [one.offset for one in walk] == [len(traced)]


@pytest.mark.parametrize("cut", [3, 12])
def test_what_ends_within_a_record_is_an_error_unless_the_recorder_was_killed(cut: int) -> None:
    data = (record(COMM, b"c" * 8) + record(COMM, b"c" * 8))[:-cut]
    made, _ = stream(io.BytesIO(data), 32)
    with pytest.raises(PerfDataError, match="file: "):
        list(made.walk(0))
    made, _ = stream(io.BytesIO(data), 32, interrupted=True)
    assert len(list(made.walk(0))) == 1
