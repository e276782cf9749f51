"""Pending signals of a process, which outlive the thread that is to act on them: for both ISAs, as natively."""

from __future__ import annotations

from pathlib import Path

import pytest

import same_as_linux
from guests import ISAS

SOURCE = Path(__file__).with_name("process_signals.c")


@pytest.mark.parametrize("isa", ISAS)
def test_pending_signals_are_the_processs_own_and_execve_keeps_them(isa: str, tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, isa)
    assert printed == same_as_linux.native(SOURCE, tmp_path)
    assert len(printed) > 5
    assert messages == []
