"""Calls and instructions that a task gives up (seccomp(2), PR_SET_TSC): on both ISAs what becomes of them natively."""

from __future__ import annotations

from pathlib import Path

import pytest

import same_as_linux
from guests import ISAS

SOURCE = Path(__file__).with_name("given_up.c")
FIRST_OF_X86 = "no mode:"  # of what is x86's alone, at the end


@pytest.mark.parametrize("isa", ISAS)
def test_what_is_given_up_is_refused_as_natively(isa: str, tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, isa)
    expected = same_as_linux.native(SOURCE, tmp_path)
    both = [next((at for at, line in enumerate(lines) if line.startswith(FIRST_OF_X86)), None) for lines in (
        printed, expected)]  # fmt: skip
    assert printed[: both[0]] == expected[: both[1]]
    assert len(printed) > 50
    if isa == same_as_linux.HOST_ISA:
        assert printed == expected
    assert messages == []
