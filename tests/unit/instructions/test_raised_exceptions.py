"""An instruction of ours that raises an exception has not retired, in whatever way the core runs, and runs again."""

from __future__ import annotations

import pytest

from emulator._native import PAGE_SIZE, Core
from emulator.core_file.core_file import load_core
from emulator.cpu import ExceptionKind, ExitReason
from emulator.linux.arch.x86_64 import MXCSR
from emulator.probes import Probe
from tests.unit.native.bare import CODE, DATA, EXECUTE, PC, READ, Bare

GEARS = ("whole blocks", "steps", "modelled")
RAX, RSI = 0, 4  # emulator/_native.pyi
MASKED, NO_ZERO_DIVIDE = 0x1F80, 0x1D80
BEFORE, REPEATS = 3, 40  # instructions before the one that raises; times that the code runs, first without raising
# nop; nop; nop; <the instruction>; nop; syscall
NOP, SYSCALL = b"\x90", b"\x0f\x05"
CASES = {
    "divsd xmm1, xmm2": ("f20f5eca", ExceptionKind.SIMD),
    "movaps xmm1, [rsi]": ("0f280e", ExceptionKind.PRIVILEGED),
    "movaps [rsi], xmm1": ("0f290e", ExceptionKind.PRIVILEGED),
    "addps xmm1, [rsi]": ("0f580e", ExceptionKind.PRIVILEGED),
    "ldmxcsr [rsi]": ("0fae16", ExceptionKind.PRIVILEGED),
}


def load(gear: str, code: bytes) -> Bare:
    bare = Bare.load("x86_64", code)
    if gear == "modelled":
        bare.core = Core("x86_64", bare.memory, model=load_core("zen5").model)
        bare.core.set_address_space(bare.space)
    return bare


def prepare(bare: Bare, raising: bool) -> None:
    """XMM1 is 1, XMM2 is 0 or 1; RSI is aligned or not, and what lies there is an MXCSR or none."""
    one = bytes.fromhex("000000000000f03f") + bytes(8)
    bare.core.write_vector(1, one)
    bare.core.write_vector(2, bytes(16) if raising else one)
    bare.core.write_register(RSI, DATA + 8 * raising)
    bare.core.write_register(MXCSR, NO_ZERO_DIVIDE if raising else MASKED)
    bare.core.write_register(PC["x86_64"], CODE)


def run(bare: Bare, gear: str) -> ExitReason:
    if gear != "steps":
        return bare.run()
    bank = bare.core.add_bank(1)
    bank.set_width(0, 48)
    bank.connect(0, 1 << Probe.INST_RETIRED)
    while True:
        bank.write(0, 2**48 - 1)
        bank.arm(1)
        if (reason := bare.run()) != ExitReason.OVERFLOW:
            return reason
        bank.clear_overflowed(1)


@pytest.mark.parametrize("gear", GEARS)
@pytest.mark.parametrize("case", CASES)
def test_the_instruction_that_raises_has_not_retired(case: str, gear: str) -> None:
    instruction, kind = bytes.fromhex(CASES[case][0]), CASES[case][1]
    bare = load(gear, NOP * BEFORE + instruction + NOP + SYSCALL)
    page = bare.memory.view(bare.space.lookup(DATA)[0], 1)
    page[:16] = MASKED.to_bytes(4, "little") + bytes(12)
    page[8:12] = (0xFFFF0000).to_bytes(4, "little")  # no MXCSR
    retired = 0
    for _ in range(1 if gear == "steps" else REPEATS):
        prepare(bare, raising=False)
        assert run(bare, gear) == ExitReason.SYSCALL
        retired += BEFORE + 3
        assert bare.total(Probe.INST_RETIRED) == retired
    for _ in range(3):
        prepare(bare, raising=True)
        assert run(bare, gear) == ExitReason.EXCEPTION
        retired += BEFORE
        assert (bare.core.exception, bare.core.pc) == (kind, CODE + BEFORE)
        assert bare.total(Probe.INST_RETIRED) == retired
        assert bare.core.read_vector(1)[:8] == bytes.fromhex("000000000000f03f")


@pytest.mark.parametrize("gear", GEARS)
def test_an_instruction_that_is_not_translated_faults_as_others(gear: str) -> None:
    bare = load(gear, NOP * BEFORE + bytes.fromhex("c4e2f8f31e") + SYSCALL)  # blsi rax, [rsi]
    bare.core.write_register(PC["x86_64"], CODE)
    bare.core.write_register(RSI, DATA - 4)  # its first half is nowhere
    assert run(bare, gear) == ExitReason.FAULT
    assert (bare.core.pc, bare.core.fault_address, bare.core.fault_access) == (CODE + BEFORE, DATA - 4, 1)
    assert bare.total(Probe.INST_RETIRED) == BEFORE
    bare.core.write_register(RSI, DATA)
    assert run(bare, gear) == ExitReason.SYSCALL
    assert bare.total(Probe.INST_RETIRED) == BEFORE + 2


def test_an_instruction_that_is_not_translated_crosses_into_a_page_that_is_not_there() -> None:
    bare = Bare.load("x86_64", NOP * (PAGE_SIZE - 2) + bytes.fromhex("c4e2"))
    assert bare.run() == ExitReason.FAULT
    assert (bare.core.pc, bare.core.fault_address, bare.core.fault_access) == (
        CODE + PAGE_SIZE - 2,
        CODE + PAGE_SIZE,
        4,
    )
    assert bare.total(Probe.INST_RETIRED) == PAGE_SIZE - 2
    frame = bare.memory.allocate()
    bare.memory.view(frame)[:5] = bytes.fromhex("f8f3d80f05")  # blsi rax, rax; syscall
    bare.space.map(CODE + PAGE_SIZE, frame, 1, READ)
    assert bare.run() == ExitReason.FAULT  # it cannot be executed
    bare.space.map(CODE + PAGE_SIZE, frame, 1, READ | EXECUTE)
    bare.core.write_register(RAX, 0x50)
    assert bare.run() == ExitReason.SYSCALL
    assert bare.core.read_register(RAX) == 0x10
    assert bare.total(Probe.INST_RETIRED) == PAGE_SIZE
