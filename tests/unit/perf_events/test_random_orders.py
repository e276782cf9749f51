"""What a guest's events answer in random orders is what this host's Linux answers: software events, which all have."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfemu
import same_as_linux
from c_programs import build
from guests import ISAS

SOURCE = Path(__file__).with_name("random_orders.c")


@pytest.mark.parametrize("isa", ISAS)
def test_orders_are_answered_as_linux_answers_them(isa: str, tmp_path: Path) -> None:
    """More seeds by hand: the program takes them as arguments."""
    theirs = same_as_linux.native(SOURCE, tmp_path)
    if theirs == ["denied"]:
        pytest.skip("this host's Linux gives nobody here perf events (perf_event_paranoid)")
    program = build(SOURCE, isa, tmp_path / "program")
    ours = perfemu.run(perfemu.Guest([program], core="ideal"), capture=True)
    assert ours.stdout is not None
    assert ours.stdout.decode().splitlines() == theirs
    assert len(theirs) > 1000
