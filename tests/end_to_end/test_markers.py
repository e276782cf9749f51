"""--marker: a program says itself where its regions are, by instructions that real CPUs execute as nothing."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

import require
from c_programs import build
from end_to_end.command import complaint, perfemu
from guests import DIRECTORY, ISAS
from perfcore.events.markers import Marker, find_markers
from perfemu import api
from perfemu.errors import PerfemuError, UsageError

MODELLED = {"aarch64": "neoverse-n1", "x86_64": "skylake"}


def work(times: int) -> int:
    """Instructions of a loop in markers.c: the one that begins it, and two each time round."""
    return 1 + 2 * times


@pytest.fixture(scope="module", params=ISAS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp(request.param)
    source = Path(__file__).with_name("markers.c")
    return build(source, request.param, directory / request.param, f"-I{DIRECTORY / 'include'}")


def counted(program: Path, what: str, marker: Any = "any", core: str = "ideal", **options: Any) -> int:
    run = api.Guest([program, what], core=core)
    return api.stat(run, ["instructions:u"], marker=marker, capture=True, **options)["instructions"]


def test_between_markers(program: Path) -> None:
    """The marker that begins a region counts, the one that ends it does not."""
    assert counted(program, "twice", 0) == 1 + work(100)
    assert counted(program, "twice", 3) == 1 + work(10)
    assert counted(program, "twice") == 2 + work(100) + work(10)


def test_the_first_end_ends(program: Path) -> None:
    assert counted(program, "nested", 0) == 2 + work(100)


def test_each_thread_has_its_own(program: Path) -> None:
    assert counted(program, "threads", 1) == 4 * (1 + work(50))
    assert counted(program, "threads", 1, per_thread=True) == 4 * (1 + work(50))


def test_a_child_of_fork_is_inside(program: Path) -> None:
    parent, child = {"aarch64": (8, 3), "x86_64": (4, 5)}[program.name]
    assert counted(program, "fork", 0) == 1 + parent + child


def test_a_modelled_core_counts_the_same(program: Path) -> None:
    assert counted(program, "twice", core=MODELLED[program.name]) == 2 + work(100) + work(10)


def test_record_and_exact(program: Path, tmp_path: Path) -> None:
    for exact in (False, True):
        recorded = api.record(
            api.Guest([program, "twice"], core="ideal"), ["instructions:u"], output=tmp_path / "perf.data", period=1,
            exact=exact, marker="any", capture=True,
        )  # fmt: skip
        assert sum(sample.period for _, sample in recorded.samples()) == 2 + work(100) + work(10)


def test_they_change_nothing(program: Path) -> None:
    """Neither that they are there, on a real CPU or in QEMU, nor that somebody heeds them."""
    qemu = [] if platform.machine() == program.name else [require.command(f"qemu-{program.name}", package="qemu-user")]
    assert subprocess.run([*qemu, program, "twice"], check=False).returncode == 0
    run = api.Guest([program, "threads"], core=MODELLED[program.name], cpus=2)
    assert api.stat(run, [], marker=1).elapsed_ns == api.stat(run, []).elapsed_ns


def test_a_program_without_is_an_error(program: Path) -> None:
    with pytest.raises(PerfemuError, match="no file that the program has mapped has markers of number 7"):
        counted(program, "twice", 7)
    with pytest.raises(PerfemuError, match=r"has come to none of the \d markers of number 1"):
        counted(program, "twice", 1)
    with pytest.raises(UsageError, match="not with -a or -C"):
        counted(program, "twice", all_cpus=True)


def test_the_command(program: Path) -> None:
    done = perfemu("stat", "-x,", "-e", "instructions:u", "--marker=3", program, "twice")
    assert done.stderr.decode().startswith(f"{1 + work(10)},")
    done = perfemu("stat", "-x,", "-e", "instructions:u", "--marker", program, "twice")
    assert done.stderr.decode().startswith(f"{2 + work(10) + work(100)},")
    assert "'8' is no marker's number: 0 to 7" in complaint(perfemu("stat", "--marker=8", program))
    assert "exclude each other" in complaint(perfemu("stat", "--marker", "--from-symbol", "main", program))


@pytest.mark.parametrize("isa", ISAS)
def test_only_markers_are_found(isa: str) -> None:
    """On AArch64 where instructions are; of other HINTs none."""
    begin, end = {
        "aarch64": (bytes.fromhex("5f2e03d5"), bytes.fromhex("ff2f03d5")),  # HINT #114, HINT #127
        "x86_64": (bytes.fromhex("0f1f8400b250454d"), bytes.fromhex("0f1f8400e750454d")),
    }[isa]
    nops = {"aarch64": bytes.fromhex("1f2003d5df2d03d5"), "x86_64": bytes.fromhex("0f1f840000000000")}[isa]
    code = nops + begin + nops + end
    at = len(nops)
    assert list(find_markers(code, isa)) == [
        Marker(at, 2, True),
        Marker(2 * at + len(begin), 7, False),
    ]
    assert len(list(find_markers(b"\0\0" + code, isa))) == (0 if isa == "aarch64" else 2)
