"""record's files: several of them, the last samples alone, a limit; and the guest that sees nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import require
from end_to_end.command import perfemu
from guests import DIRECTORY
from perfcore.abi.constants import RecordType
from perfcore.perfdata.reader import open_perf_data

SORT = DIRECTORY / "sort" / "aarch64.elf"
SAMPLED = ("-e", "instructions:u", "-c", "97", "-m", "1")


def samples(path: Path) -> int:
    with open_perf_data(str(path)) as file:
        return sum(raw.type == RecordType.SAMPLE for raw in file.records())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    path = tmp_path_factory.mktemp("whole") / "perf.data"
    assert perfemu("record", *SAMPLED, "-o", path, SORT, "1000").returncode == 0
    return samples(path)


@pytest.mark.parametrize("switch", ["8K", "50us"])
def test_together_they_have_all_samples(switch: str, whole: int, tmp_path: Path) -> None:
    done = perfemu("record", *SAMPLED, f"--switch-output={switch}", SORT, "1000", cwd=tmp_path)
    assert done.returncode == 0, done
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert sum(map(samples, files)) == whole
    said = done.stderr.decode()
    assert [f"[ perfemu record: Dump {file.name} ]" in said for file in files] == [True] * len(files)


def test_the_guest_says_when(tmp_path: Path) -> None:
    """By the signal that perf knows; of others nobody is there, nor of this one without the option."""
    busybox = require.command("busybox", package="busybox-static")
    work = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); done; "
    script = work + "kill -USR2 $PPID && echo heard; " + work + "kill -USR1 $PPID || echo not heard"
    for options, said, files in (
        (("--switch-output",), b"heard\nnot heard\n", 2),
        (("--timestamp-filename",), b"not heard\n", 1),
    ):
        directory = tmp_path / str(files)
        directory.mkdir()
        done = perfemu(
            "record", "-e", "instructions:u", "-c", "97", *options, busybox, "sh", "-c", script, cwd=directory
        )
        assert done.stdout == said
        found = sorted(directory.iterdir())
        assert len(found) == files
        assert all(samples(file) > 100 for file in found)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    every = tmp_path / "every"
    last = tmp_path / "last"
    for directory, limit in ((every, ()), (last, ("--switch-max-files", "2"))):
        directory.mkdir()
        options = (*SAMPLED, "--switch-output=50us", *limit)
        assert perfemu("record", *options, SORT, "1000", cwd=directory).returncode == 0
    kept = sorted(last.iterdir())
    assert [file.name for file in kept] == [file.name for file in sorted(every.iterdir())[-2:]]
    assert [samples(file) for file in kept] == [samples(every / file.name) for file in kept]


def test_a_file_that_is_full_ends_the_run(whole: int, tmp_path: Path) -> None:
    done = perfemu("record", *SAMPLED, "--max-size", "8K", SORT, "1000", cwd=tmp_path)
    assert done.returncode == 124
    assert "bytes of records are written (--max-size)" in done.stderr.decode()
    data = tmp_path / "perf.data"
    assert 8 << 10 <= data.stat().st_size < 16 << 10
    assert 0 < samples(data) < whole


def test_the_guest_finds_its_directory_as_without_us(tmp_path: Path) -> None:
    """Whatever has been written by then has no name."""
    busybox = require.command("busybox", package="busybox-static")
    command = (busybox, "sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); done; echo *")
    done = perfemu("record", *SAMPLED, "--switch-output=4K", *command, cwd=tmp_path)
    assert done.stdout == b"*\n"
    assert len(list(tmp_path.iterdir())) > 3


def test_no_samples_are_counts_alone(tmp_path: Path) -> None:
    assert perfemu("record", "-n", "-s", "-e", "instructions", SORT, "100", cwd=tmp_path).returncode == 0
    assert samples(tmp_path / "perf.data") == 0
