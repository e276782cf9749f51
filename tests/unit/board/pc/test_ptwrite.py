"""PTWRITE on the board pc: libipt finds it in the guest's own trace, of the levels that it is of; else it is #UD."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from libipt import instructions
from pmu.intel.pt_registers import IA32_RTIT_CTL
from tests.unit.board.pc import test_intel_pt as traces
from tests.unit.board.pc.images import assembled
from tests.unit.board.pc.test_branch_records import Made
from tests.unit.board.pc.test_intel_pt import ON, OS, RAM, ROUNDS, TIMED, USER, decoder, retired_of

__all__ = ["decoder"]
WRITES = IA32_RTIT_CTL.make(PTW_EN=1, FUP_ON_PTW=1)
IN_KERNEL, IN_USER = (
    "        ptwritel status(%rip)\n",
    "        ptwrite %r15\n",
)  # of zero; of a round, each second time
PROGRAM = traces.PROGRAM.replace("system_call:\n", "system_call:\n" + IN_KERNEL).replace(
    "        nop\n3:", IN_USER + "3:"
)
_WRITE = re.compile(r"(0x[0-9a-f]+) writes (\w+), (\d) bytes")


def image(control: int) -> bytes:
    values = {"CONTROL": control, "REGION": 6, "MARKS": 0, "SECOND_MARKS": 0}
    return assembled("".join(f"        .set {name}, {value}\n" for name, value in values.items()) + PROGRAM)


@pytest.mark.parametrize("untimed", [True, False])
@pytest.mark.parametrize("levels", [USER | OS, USER, OS])
def test_libipt_finds_it(decoder: Path, tmp_path: Path, levels: int, untimed: bool) -> None:
    run, retired = retired_of(Made("redwood-cove", image(ON | TIMED | WRITES | levels), untimed=untimed))
    (tmp_path / "ram").write_bytes(run.ram)
    trace = run.trace(traces.BIG)
    found, told = instructions(decoder, trace, [tmp_path / "ram", "0", str(RAM), "0"], tmp_path)
    assert found == [pc for pc in retired if levels & (USER if run.in_user(pc) else OS)]
    writes = [match.groups() for match in map(_WRITE.fullmatch, told) if match]
    assert len(writes) == len(told)
    in_user = [(int(value, 16), int(size)) for at, value, size in writes if run.in_user(int(at, 16))]
    in_kernel = [(int(value, 16), int(size)) for at, value, size in writes if not run.in_user(int(at, 16))]
    assert in_user == ([(number, 8) for number in range(ROUNDS - 1, 0, -2)] if levels & USER else [])
    assert in_kernel == ([(0, 4)] * ROUNDS if levels & OS else [])


@pytest.mark.parametrize(("core", "exceptions"), [("redwood-cove", 0), ("skylake", 1), ("zen5", 1)])
def test_a_core_without_it_has_an_exception(core: str, exceptions: int) -> None:
    """Whether it traces or not."""
    program = """
main:   handle  6, undefined
        ptwrite %rax
        mov     found, %rax
        call    puthex
        call    newline
        xor     %edi, %edi
        jmp     exit
undefined:
        incq    found
        addq    $5, 16(%rbx)                    # bytes of PTWRITE
        ret
        .bss
found:  .skip   8
        .text
"""
    assert Made(core, assembled(program)).lines() == [[exceptions]]
