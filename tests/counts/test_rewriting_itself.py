"""An instruction that rewrites itself: its block is counted, folded, and found to have stopped at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.probes import Probe
from end_to_end.assembled import exits, program
from end_to_end.random_guests import BASE, CODE_OFFSET
from perfemu.guest import Guest
from perfemu.session import Session

ROUNDS = 40
CODE = BASE + CODE_OFFSET
WRITABLE = f"bf{CODE.to_bytes(4, 'little').hex()}be00100000ba07000000b80a0000000f05"  # mprotect(CODE, 4096, all)
# mov ecx, ROUNDS; 1: inc eax; add byte ptr [its own constant], 1; dec ecx; jnz 1b
REWRITES = f"b9{ROUNDS:02x}000000" + "ffc0" + "8005ffffffff01" + "ffc9" + "75f3"
INSTRUCTIONS = 5 + 1 + 4 * ROUNDS + 3


@pytest.mark.parametrize("core", ["ideal", "skylake"])
def test_what_an_instruction_that_rewrites_itself_counts(core: str, tmp_path: Path) -> None:
    path = program(tmp_path / "rewrites", "x86_64", WRITABLE + REWRITES + exits("x86_64", 0))
    session = Session(Guest((str(path),), core=core, stdin=-1, stdout=-1, stderr=-1))
    assert session.run().exit_status == 0
    totals = {probe: session.machine.cpus[0].core.total(probe) for probe in (Probe.LOAD, Probe.STORE, Probe.BR_COND)}
    assert totals == dict.fromkeys(totals, ROUNDS)
    assert session.instructions() == INSTRUCTIONS
