"""Buffers that are written from the end on, and records by other clocks: as this host's Linux has them."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfemu
import same_as_linux
from c_programs import build
from guests import ISAS

SOURCE = Path(__file__).with_name("buffers.c")


@pytest.mark.parametrize("isa", ISAS)
def test_what_is_written_where_is_as_on_linux(isa: str, tmp_path: Path) -> None:
    theirs = same_as_linux.native(SOURCE, tmp_path)
    if theirs == ["denied"]:
        pytest.skip("this host's Linux gives nobody here perf events (perf_event_paranoid)")
    program = build(SOURCE, isa, tmp_path / "program", "-w")
    ours = perfemu.run(perfemu.Guest([program], core="ideal"), capture=True)
    assert ours.stdout is not None
    assert ours.stdout.decode().splitlines() == theirs
    assert len(theirs) == 4 * 6 + 1 + 14
