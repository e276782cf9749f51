"""Linux's descriptors as LAR, LSL, VERR and VERW tell user mode of them: as natively."""

from __future__ import annotations

from pathlib import Path

import pytest

import same_as_linux

SOURCE = Path(__file__).with_name("descriptors.c")


@pytest.mark.skipif(same_as_linux.HOST_ISA != "x86_64", reason="the host is no x86-64 machine")
def test_descriptors_are_linuxs(tmp_path: Path) -> None:
    printed, messages = same_as_linux.ours(SOURCE, tmp_path, "x86_64")
    assert printed == same_as_linux.native(SOURCE, tmp_path)
    assert any(line.startswith("0x33: 0xaffb00 0xffffffff 1 ") for line in printed)  # code of 64 bits
    assert messages == []
