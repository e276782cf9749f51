"""Time on the board virt does not depend on how near a limit is: the models may then hear of instructions before these
execute, and must not hear of one that does not retire. Nor does it matter whether the next one can be fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.probes import Probe
from tests.unit.board.booted import Booted, boot

MODELLED = ("cortex-a55", "neoverse-n1")
TURNS = 20
SKIPPING = """
        b       begin
        .balign 0x800
vectors: .org   vectors + 0x200         // synchronous, from EL1
        b       skip
        .org    vectors + 0x400         // synchronous, from EL0
        b       skip
        .org    vectors + 0x800
skip:   mrs     x16, esr_el1
        lsr     x16, x16, #26
        cmp     x16, #0x15              // SVC
        b.eq    off
        mrs     x17, elr_el1
        add     x17, x17, #4
        msr     elr_el1, x17
        eret
begin:  adr     x0, vectors
        msr     vbar_el1, x0
        adr     x19, vectors + 1
        mov     x9, #{turns}
        {prologue}
again:  {instruction}
        mul     x1, x9, x9
        mul     x1, x1, x1
        subs    x9, x9, #1
        b.ne    again
        svc     #0
"""
AT_EL0 = """
        adr     x2, again
        msr     elr_el1, x2
        msr     spsr_el1, xzr
        eret
"""
RAISING = {
    "LDSMAX": ("", ".inst 0xf8314264"),  # ldsmax x17, x4, [x19]
    "CAS": ("", ".inst 0xc8bf7e6e"),  # cas xzr, x14, [x19]
    "LDXR": ("", "ldxr x3, [x19]"),
    "IC IVAU at EL0": (AT_EL0, "ic ivau, x19"),
}


def seen(booted: Booted) -> tuple[int, ...]:
    core = booted.cpus[0].core
    probes = (Probe.INST_RETIRED, Probe.EXC_TAKEN, Probe.UOPS_RETIRED, Probe.UOPS_DISPATCHED)
    return core.cycles, *(core.total(probe) for probe in probes)


@pytest.mark.parametrize("core", MODELLED)
@pytest.mark.parametrize("name", RAISING)
def test_what_raises_an_exception_takes_no_other_time_near_a_limit(name: str, core: str, tmp_path: Path) -> None:
    prologue, instruction = RAISING[name]
    source = SKIPPING.format(turns=TURNS, prologue=prologue, instruction=instruction)
    far = boot(source, tmp_path, core=core)
    near = boot(source, tmp_path, core=core, instructions=1000)  # of which 400 are never reached
    assert (far.board.ended, near.board.ended) == (Ended.OFF, Ended.OFF)
    assert far.cpus[0].core.total(Probe.EXC_TAKEN) >= TURNS
    assert seen(near) == seen(far)


# START has one; then MOV, NOP, BR. (The Cortex-A55 issues the last two at once: limits are exact to a cycle there.)
@pytest.mark.parametrize("core", ["ideal", "neoverse-n1"])
def test_a_limit_behind_a_branch_to_nowhere_comes_before_the_abort(core: str, tmp_path: Path) -> None:
    booted = boot("mov x0, #0\nnop\nbr x0\n", tmp_path, core=core, instructions=4)
    assert booted.board.ended == Ended.LIMIT
    cpu = booted.cpus[0].core
    assert (cpu.total(Probe.INST_RETIRED), cpu.pc, cpu.total(Probe.EXC_TAKEN)) == (4, 0, 0)
