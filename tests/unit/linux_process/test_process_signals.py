"""Signals of a process outlive the thread that is to act on them: on this machine, for both ISAs, as natively."""

from __future__ import annotations

from pathlib import Path

import pytest

import same_as_linux
from guests import ISAS

SOURCE = Path(__file__).with_name("process_signals.c")


@pytest.mark.parametrize("isa", ISAS)
def test_execve_keeps_the_signals_of_the_process_and_its_timer(isa: str, tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, isa)
    assert printed == same_as_linux.native(SOURCE, tmp_path)
    assert len(printed) > 5
    assert messages == []
