"""Every register of PMUv3 read and written by guest code on the board virt, at EL1 and at EL0 with PMUSERENR_EL0's
settings; the code is made from the declarations.

Which accesses are undefined, trap or do what they ask is what the manual's table in unit/pmu/test_pmuv3_registers.py
says, the syndrome what the manual makes of the encoding, and values are those of the register model, for the same
accesses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator.board.board import Ended
from emulator.sysregs import SysReg
from pmu.arm.privileged import EL0, EL1, ExceptionLevel, PrivilegedPmuV3
from pmu.arm.registers import PMUSERENR_EL0, ArmRegister
from tests.unit.board.booted import boot
from unit.pmu.test_pmuv3_registers import (
    COUNTERS,
    CR,
    EN,
    ER,
    FINE,
    REGISTERS,
    SW,
    TID,
    UEN,
    UNDEFINED,
    R,
    W,
    device,
    expected_of,
)

ONES = (1 << 64) - 1
DONE = 0x600D  # what x9 is behind a write that was let through
SELECTED = 4
SETTINGS = (0, EN, SW, CR, ER, UEN, TID | EN, TID | UEN, EN | UEN, 127)

# Before each access: nothing counts, nothing is set, and EL0 may have any counter that PMUSERENR_EL0 gives it
RESET = [
    ("PMCR_EL0", 0, 0),
    *((name, 0, ONES) for name in ("PMCNTENCLR_EL0", "PMINTENCLR_EL1", "PMOVSCLR_EL0", "PMZR_EL0", "PMUACR_EL1")),
    *(("PMEVTYPERn_EL0", counter, 0) for counter in range(COUNTERS)),
    *((name, 0, 0) for name in ("PMCCFILTR_EL0", "PMICFILTR_EL0", "PMECR_EL1")),
    ("PMSELR_EL0", 0, SELECTED),
]
VECTORS = """
        b       begin
        .balign 0x800
vectors: .org   vectors + 0x200         // synchronous, from EL1
        mrs     x9, esr_el1
        b       behind
        .org    vectors + 0x400         // synchronous, from EL0: SVC is its end
        mrs     x11, esr_el1
        lsr     x12, x11, #26
        cmp     x12, #0x15
        b.eq    back
        mov     x9, x11
behind: mrs     x11, elr_el1
        add     x11, x11, #4
        msr     elr_el1, x11
        eret
back:   br      x21
        .org    vectors + 0x800
put:    mov     w12, #8                 // x9, the lowest byte first
1:      strb    w9, [x20]
        lsr     x9, x9, #8
        subs    w12, w12, #1
        b.ne    1b
        ret
"""


@dataclass(frozen=True)
class Try:
    register: type[ArmRegister]
    index: int
    access: str

    @property
    def encoding(self) -> SysReg:
        found = self.register.encoding_of(self.index)
        assert isinstance(found, SysReg)
        return found

    @property
    def is_readable(self) -> bool:
        return expected_of(self.register.__name__, R, EL1, "none", 0) is FINE


def tries() -> Iterator[Try]:
    for name, register in REGISTERS.items():
        for index in range(COUNTERS if register.bank else 1):
            if not name.startswith("MDCR"):  # the board executes no EL2 or EL3
                yield Try(register, index, R)
                yield Try(register, index, W)


def operand(encoding: SysReg) -> str:
    return f"s{encoding.op0}_{encoding.op1}_c{encoding.crn}_c{encoding.crm}_{encoding.op2}"


def code_of(each: Try, level: ExceptionLevel, setting: int) -> str:
    name = operand(each.encoding)
    access = f"mrs x9, {name}" if each.access == R else f"msr {name}, x10"
    there = "adr x0, 1f\nmsr elr_el1, x0\nmsr spsr_el1, xzr\nadr x21, 2f\neret\n" if level == EL0 else ""
    return f"""
        bl      reset
        mov     x0, #{setting}
        msr     {operand(PMUSERENR_EL0.encoding)}, x0
        mov     x9, #{DONE}
        mov     x10, #-1
        {there}
1:      {access}
        {"svc #0" if level == EL0 else ""}
2:      bl      put
        {f"mrs x9, {name}" if each.is_readable else "mov x9, #0"}
        bl      put
"""


def program(level: ExceptionLevel, setting: int) -> str:
    writes = "".join(
        f"ldr x0, ={value:#x}\nmsr {operand(REGISTERS[name].encoding_of(index))}, x0\n" for name, index, value in RESET
    )
    accesses = "".join(code_of(each, level, setting) for each in tries())
    return f"{VECTORS}reset:\n{writes}ret\n.ltorg\nbegin: adr x0, vectors\nmsr vbar_el1, x0\nisb\n{accesses}b off\n"


def syndrome(each: Try, outcome: object) -> int:
    """ESR_EL1: an unknown reason, or an access that was trapped: op0, op2, op1, CRn, Rt, CRm, and 1 for a read."""
    if outcome is UNDEFINED:
        return 1 << 25
    of = each.encoding
    place = of.op0 << 20 | of.op2 << 17 | of.op1 << 14 | of.crn << 10 | of.crm << 1
    return 0x18 << 26 | 1 << 25 | place | (9 << 5 | 1 if each.access == R else 10 << 5)


def by_the_model(each: Try, level: ExceptionLevel, setting: int) -> tuple[int, int]:
    """What `code_of` prints."""
    pmu: PrivilegedPmuV3 = device()
    for name, index, value in RESET:
        pmu.write(REGISTERS[name], value, index)
    pmu.write(PMUSERENR_EL0, setting)
    outcome = expected_of(each.register.__name__, each.access, level, "none", setting)
    if outcome is not FINE:
        result = syndrome(each, outcome)
    elif each.access == R:
        result = pmu.read_at(level, each.register, each.index)
    else:
        pmu.write_at(level, each.register, ONES, each.index)
        result = DONE
    return result, pmu.read(each.register, each.index) if each.is_readable else 0


@pytest.mark.parametrize(("level", "setting"), [(EL1, 0), *((EL0, setting) for setting in SETTINGS)])
def test_guest_code_finds_what_the_manual_and_the_model_say(
    level: ExceptionLevel, setting: int, tmp_path: Path
) -> None:
    booted = boot(program(level, setting), tmp_path, counters=COUNTERS, pmu="pmuv3p9")
    assert booted.board.ended is Ended.OFF
    expected = [by_the_model(each, level, setting) for each in tries()]
    found = list(struct.iter_unpack("<QQ", booted.output))
    different = [
        f"{each.access} {each.register.name_of(each.index)}: {there}, not {here}"
        for each, there, here in zip(tries(), found, expected, strict=True)
        if there != here
    ]
    assert different == []
