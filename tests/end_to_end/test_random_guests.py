"""Whatever a guest does, it ends as a program ends: no error of ours, no trace on the host, no unbounded memory."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from end_to_end.random_guests import run_code, run_pieces, run_syscalls
from guests import ISAS

SEEDS = range(12)
MODELLED_CORES = {"neoverse-n1": "aarch64", "cortex-a55": "aarch64", "zen5": "x86_64", "skylake": "x86_64"}
MEMORY_MEGABYTES = 2000


@pytest.mark.parametrize("isa", ISAS)
def test_random_code(isa: str, tmp_path: Path) -> None:
    """It runs the same when it is watched, and is never stopped by something that nobody can explain."""
    for seed in SEEDS:
        status = run_code(isa, seed, tmp_path)
        assert 0 <= status <= 255, f"seed {seed}"


@pytest.mark.parametrize("core", MODELLED_CORES)
def test_random_code_where_time_is_modelled(core: str, tmp_path: Path) -> None:
    for seed in SEEDS[:3]:
        run_code(MODELLED_CORES[core], seed, tmp_path, core)


@pytest.mark.parametrize("isa", ISAS)
def test_pieces_of_random_code(isa: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        assert run_pieces(isa, seed, tmp_path), f"seed {seed}"


@pytest.mark.parametrize("isa", ISAS)
def test_random_syscalls(isa: str, tmp_path: Path) -> None:
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; of all tests before this one
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    for seed in SEEDS:
        inside.mkdir(exist_ok=True)
        log: list[str] = []
        try:
            run_syscalls(isa, seed, inside, log)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {log[-1:]}") from error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "outside"]
    assert [path.read_text() for path in outside.iterdir()] == ["untouched"]
    assert not Path("/tmp/perfemu-fuzz").exists()
    assert not Path("/etc/perfemu-fuzz").exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < peak_before + MEMORY_MEGABYTES * 1024
