"""Hardware breakpoints that an x86-64 tracer sets by struct user's debug registers: as on this host's Linux."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfemu
import same_as_linux
from c_programs import build

SOURCE = Path(__file__).with_name("debug_registers.c")
ISA = "x86_64"


@pytest.mark.parametrize("core", ["ideal", "skylake"])
@pytest.mark.skipif(same_as_linux.HOST_ISA != ISA, reason="the program is of x86-64, and is asked natively, too")
def test_each_stop_is_as_on_linux(core: str, tmp_path: Path) -> None:
    theirs = same_as_linux.native(SOURCE, tmp_path)
    program = build(SOURCE, ISA, tmp_path / "program", "-w")
    ours = perfemu.run(perfemu.Guest([program], core=core), capture=True)
    assert ours.stdout is not None
    assert ours.stdout.decode().splitlines() == theirs
    assert sum("signal 5 code 4" in line for line in theirs) > 20
