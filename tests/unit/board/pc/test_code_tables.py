"""A guest that changes the page tables of the very code that it executes, and says so to nobody: code stays where it
has been fetched from until INVLPG or CR3, whoever watches.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from emulator.probes import Probe
from perfemu.boards import BoardRequest, BoardSession
from perfemu.events.attributes import Sampling
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.scope import Scope
from tests.unit.board.pc.images import assembled

# The first 2 MiB are mapped at 64 MiB, too; then what executes is said to lie at 14 MiB, where RAM is zero: ADD [RAX],
# AL until the page ends. System instructions, that the processor reads for itself, and branches are still the old ones.
PROGRAM = """
        .set    ALIAS, 0x4000000
main:   movq    $0x87, tables + 0x2000 + 8 * 32
        mov     %cr3, %rax
        mov     %rax, %cr3
        movq    $0xe00087, tables + 0x2000
        mov     $3, %ebx
        jmp     1f
1:      dec     %ebx
        mov     %cr0, %rcx
        jnz     1b
        mov     %cr3, %rdx
        movq    $0x87, ALIAS + tables + 0x2000
        mov     %rdx, %cr3
        mov     $7, %eax
        ret
"""
STATUS = 7 << 1 | 1


def ended(path: Path, core: str, period: int | None) -> tuple[int, int, int]:
    """Status, instructions and cycles; each `period`th instruction is looked at."""
    session = BoardSession(
        Guest((str(path),), core=core, memory="64M", stdin=-1), BoardRequest("pc"), BytesIO(), lambda line: None
    )
    if period is None:
        status = session.run().exit_status
    else:
        recorded = record(session, ["instructions"], Sampling(None, period), BytesIO(), scope=Scope(cpus=(0,)))
        assert recorded.ending is not None
        status = recorded.ending.exit_status
    only = session.hardware.cpus[0].core
    return status, only.total(Probe.INST_RETIRED), only.cycles


@pytest.mark.parametrize("core", ["ideal", "skylake", "zen5"])
def test_it_goes_on_in_the_code_that_it_has_fetched(core: str, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(assembled(PROGRAM))
    alone = ended(path, core, None)
    assert alone[0] == STATUS
    assert {ended(path, core, period) for period in (1, 3)} == {alone}
