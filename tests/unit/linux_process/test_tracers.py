"""What tracers hear of ends and reach of memory: the same on this machine, for both ISAs, as natively."""

from __future__ import annotations

from pathlib import Path

import pytest

import same_as_linux
from guests import ISAS

SOURCE = Path(__file__).with_name("tracers.c")


@pytest.mark.parametrize("isa", ISAS)
def test_tracers_hear_and_reach_what_they_do_natively(isa: str, tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, isa)
    assert printed == same_as_linux.native(SOURCE, tmp_path)
    assert len(printed) > 10
    assert messages == []
