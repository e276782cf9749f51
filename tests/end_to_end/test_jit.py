"""Code that a guest makes at run time has the names that the guest gives it, in our report and in perf's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import c_programs
from end_to_end.command import complaint, perfemu
from guests import DIRECTORY, ISAS
from perfemu.symbols.jit import jit_symbols
from real_perf import RealPerf

# Both loops are two instructions: 200,000 and 600,000 of them, and a few thousand around.
SHARES = {"slow_function": 0.73, "fast function": 0.24}


@pytest.fixture(scope="module", params=ISAS)
def jit_guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp(request.param) / "jit"
    return c_programs.build(Path(__file__).with_name("jit_guest.c"), request.param, program)


def record(cwd: Path, *program: str | Path) -> None:
    done = perfemu("record", "-q", "-k", "mono", "-e", "instructions", "-c", "1000", *program, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b"")


def shares(cwd: Path) -> dict[str, float]:
    done = perfemu("report", "-i", "perf.data", "-q", "-s", "sym", "--format", "csv", cwd=cwd)
    assert done.stderr == b""
    rows = [line.split(",") for line in done.stdout.decode().splitlines()[1:]]
    return {row[-1].removeprefix("[.] "): float(row[1]) / 100 for row in rows}


@pytest.mark.parametrize("argument", [(), ("/tmp",), (".",)])
def test_names(argument: tuple[str, ...], jit_guest: Path, tmp_path: Path) -> None:
    """From the map in the guest's own /tmp, a jitdump there, and one in the host's directory."""
    record(tmp_path, jit_guest, *argument)
    told = shares(tmp_path)
    assert {name: told[name] for name in SHARES} == pytest.approx(SHARES, abs=0.02)
    done = perfemu("report", "-i", "perf.data", "--jit-files", ".", cwd=tmp_path)
    name = "jit-1000.dump" if argument else "perf-1000.map"
    assert done.stdout.decode() == f"./{name}\n"
    assert b"slow_function" in (tmp_path / name).read_bytes()


def test_perf_injects_them(jit_guest: Path, tmp_path: Path) -> None:
    record(tmp_path, jit_guest, ".")
    (tmp_path / "home").mkdir()
    perf = RealPerf(tmp_path / "home")
    here = os.getcwd()
    try:
        os.chdir(tmp_path)  # where it makes its files
        perf.run("inject", "--jit", "-i", "perf.data", "-o", "jitted.data")
        report = perf.report("jitted.data", "-q", "-s", "sym")
    finally:
        os.chdir(here)
    assert report[0].split()[-1] == "slow_function"
    assert report[1].split()[-2:] == ["fast", "function"]


def test_a_program_without_any(tmp_path: Path) -> None:
    record(tmp_path, DIRECTORY / "loop_1k" / "x86_64.elf")
    done = perfemu("report", "-i", "perf.data", "--jit-files", ".", cwd=tmp_path)
    assert complaint(done) == "the recording has no perf-PID.map, no jitdump and no kallsyms"


def names(map_contents: bytes, *dumps: bytes) -> list[tuple[int, int, str]]:
    return [(each.start, each.end, each.name) for each in jit_symbols(map_contents, dumps, 7).symbols]


def test_lines_of_maps() -> None:
    assert names(b"10 5 a b\n0x20 0x5 c\n") == [(0x10, 0x15, "a b"), (0x20, 0x25, "c")]
    assert names(b"10 5 old\n12 2 new\n") == [(0x10, 0x12, "old"), (0x12, 0x14, "new"), (0x14, 0x15, "old")]
    assert names(b"10 5 a\n15 5 b\n1a 5 c\n12 a d\n") == [
        *((0x10, 0x12, "a"), (0x12, 0x1C, "d")),
        (0x1C, 0x1F, "c"),
    ]
    assert names(b"20 5 b\n10 5 a\n10 5 c\n") == [(0x10, 0x15, "c"), (0x20, 0x25, "b")]


def test_maps_that_make_no_sense() -> None:
    for line in (
        b"",
        b"x",
        b"10",
        b"10 5",
        b"zz 5 a",
        b"10 0 a",
        b"-10 5 a",
        b"10 -5 a",
        b"1" * 40 + b" 1 a",
        b"\xff\0",
    ):
        assert names(line + b"\n30 1 good\n" + line) == [(0x30, 0x31, "good")]
