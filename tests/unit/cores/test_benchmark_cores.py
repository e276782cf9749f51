"""The benchmarks' own core files are as complete as those that come with perfemu."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator._native import Core, PhysicalMemory
from emulator.core_file.core_file import load_core

FILES = sorted((Path(__file__).resolve().parents[2] / "bench" / "cores").glob("*.toml"))


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_core_of_the_benchmarks_can_be_made(file: Path, isa: str) -> None:
    core = load_core(str(file))
    assert isa in core.isas
    assert Core(isa, PhysicalMemory(1 << 20), model=core.model).address_way == "slices"
