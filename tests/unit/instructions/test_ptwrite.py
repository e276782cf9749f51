"""PTWRITE: who listens is told of its operand when it retires, in order with branches; else it is a load or nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emulator._native import Core, PhysicalMemory, RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.cpu import ExceptionKind, ExitReason
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, PC, Bare

GEARS = ("whole blocks", "steps", "modelled", "modelled steps")
RAX, RSI = 0, 4  # emulator/_native.pyi
NOP, SYSCALL = b"\x90", b"\x0f\x05"
VALUE, WORD = 0x8877_6655_4433_2211, 0xF0E0_D0C0_B0A0_9080  # RAX's, and the one in memory
FORMS = {  # operand -> what it writes, its bytes
    "f30faee0": (VALUE & 0xFFFF_FFFF, 4),  # ptwrite eax
    "f3480faee0": (VALUE, 8),  # ptwrite rax
    "f30fae26": (WORD & 0xFFFF_FFFF, 4),  # ptwrite dword [rsi]
    "f3480fae26": (WORD, 8),  # ptwrite qword [rsi]
    "f3480fae24ce": (WORD, 8),  # ptwrite qword [rsi + 8 * rcx], of RCX 0
}


def loaded(code: bytes, gear: str) -> Bare:
    bare = Bare.load("x86_64", code)
    if gear.startswith("modelled"):
        bare.core = Core("x86_64", bare.memory, model=load_core("redwood-cove").model)
        bare.core.set_address_space(bare.space)
    bare.memory.view(bare.space.lookup(DATA)[0], 1)[:8] = WORD.to_bytes(8, "little")
    bare.core.write_register(RAX, VALUE)
    bare.core.write_register(RSI, DATA)
    bare.core.write_register(PC["x86_64"], CODE)
    return bare


def listened(bare: Bare, gear: str) -> RetirementRecorder:
    recorder = RetirementRecorder(keep=True)
    bare.core.listen(recorder)
    if gear.endswith("steps"):
        bare.core.select(recorder, 1 << Probe.INST_RETIRED, 1)
    return recorder


@pytest.mark.parametrize("gear", GEARS)
@pytest.mark.parametrize("form", FORMS)
def test_its_operand_is_told_and_it_counts_as_an_instruction(form: str, gear: str) -> None:
    """nop; ptwrite; nop; syscall: 4. In memory its operand is a load."""
    bare = loaded(NOP + bytes.fromhex(form) + NOP + SYSCALL, gear)
    bare.core.add_ptwrite()
    recorder = listened(bare, gear)
    assert bare.run() == ExitReason.SYSCALL
    assert [(pc, value, size) for pc, value, size, *_ in recorder.take_trace_writes()] == [(CODE + 1, *FORMS[form])]
    assert bare.total(Probe.INST_RETIRED) == 4
    assert bare.total(Probe.LOAD) == (0 if form.endswith("e0") else 1)
    assert bare.core.read_register(RAX) == VALUE


@pytest.mark.parametrize("gear", GEARS)
def test_it_is_told_between_the_branches_that_it_retires_between(gear: str) -> None:
    """mov ecx, 100; loop: ptwrite rcx; dec ecx; jz +3; ptwrite eax ...: of each round one before its first branch, and
    one between its two, at cycles that never go back."""
    rounds = 100
    body = bytes.fromhex("f3480faee1ffc97406f30faee0ebf1")
    bare = loaded(b"\xb9" + rounds.to_bytes(4, "little") + body + SYSCALL, gear)
    bare.core.add_ptwrite()
    recorder = listened(bare, gear)
    assert bare.run() == ExitReason.SYSCALL
    told = recorder.take_trace_writes()
    expected = []
    for number in range(rounds):
        expected.append((CODE + 5, rounds - number, 8, 2 * number))
        expected.append((CODE + 14, VALUE & 0xFFFF_FFFF, 4, 2 * number + 1))
    assert [(pc, value, size, before) for pc, value, size, _, before in told] == expected[:-1]
    branches = [branch[2] for branch in recorder.take_branches()]
    for _, _, _, cycle, before in told:
        assert (branches[before - 1] if before else 0) <= cycle <= branches[before]
    assert all(before[3] <= after[3] for before, after in pairwise(told))


@pytest.mark.parametrize("gear", ["whole blocks", "modelled"])
def test_cycles_are_those_at_which_it_retires(gear: str) -> None:
    """The same whether the core goes block by block or step by step; without models a cycle is an instruction."""
    code = NOP * 2 + bytes.fromhex("f3480fae26") + NOP * 5 + bytes.fromhex("f30faee0") + NOP * 3 + SYSCALL
    cycles = []
    for way in ("", " steps"):
        kind = "modelled" if gear == "modelled" else "whole blocks" if not way else "steps"
        bare = loaded(code, kind + (way if gear == "modelled" else ""))
        bare.core.add_ptwrite()
        recorder = listened(bare, way)
        bare.run()
        cycles.append([row[3] for row in recorder.take_trace_writes()])
    assert cycles[0] == cycles[1]
    if gear == "whole blocks":
        assert cycles[0] == [3, 9]


@pytest.mark.parametrize("gear", GEARS)
def test_a_fault_is_a_load_s_and_nothing_is_told(gear: str) -> None:
    bare = loaded(NOP + bytes.fromhex("f3480fae26") + SYSCALL, gear)
    bare.core.add_ptwrite()
    recorder = listened(bare, gear)
    bare.core.write_register(RSI, DATA - 4)  # its first half is nowhere
    assert bare.run() == ExitReason.FAULT
    assert (bare.core.pc, bare.core.fault_address, bare.core.fault_access) == (CODE + 1, DATA - 4, 1)
    assert bare.total(Probe.INST_RETIRED) == 1
    assert recorder.take_trace_writes() == []
    bare.core.write_register(RSI, DATA)
    assert bare.run() == ExitReason.SYSCALL
    assert [row[:3] for row in recorder.take_trace_writes()] == [(CODE + 1, WORD, 8)]
    assert bare.total(Probe.INST_RETIRED) == 3


@pytest.mark.parametrize("gear", ["whole blocks", "modelled"])
@pytest.mark.parametrize(
    ("form", "there"),
    [
        pytest.param("f30faee0", False, id="no core has it by itself"),
        pytest.param("66f30faee0", True, id="operand size"),
        pytest.param("f0f30fae26", True, id="lock"),
        pytest.param("f2f30faee0", True, id="f3 comes last"),
        pytest.param("0faee0", True, id="no prefix"),
    ],
)
def test_where_it_is_none_it_is_undefined(form: str, there: bool, gear: str) -> None:
    bare = loaded(NOP + bytes.fromhex(form) + SYSCALL, gear)
    if there:
        bare.core.add_ptwrite()
    recorder = listened(bare, gear)
    found = bare.run()
    if form.startswith("f2"):
        assert (found, len(recorder.take_trace_writes())) == (ExitReason.SYSCALL, 1)
        return
    assert (found, bare.core.exception, bare.core.pc) == (ExitReason.EXCEPTION, ExceptionKind.UNDEFINED, CODE + 1)
    assert recorder.take_trace_writes() == []


def test_other_instruction_sets_have_none() -> None:
    with pytest.raises(ValueError, match="x86-64"):
        Core("aarch64", PhysicalMemory(1 << 20)).add_ptwrite()
