"""Which PMU registers EL0 may read and write, for every value of PMUSERENR_EL0."""

from __future__ import annotations

import pytest

from emulator.probes import Probe
from emulator.sysregs import SysReg, SystemRegisters, UndefinedRegister
from pmu.arm.pmuv3 import PmuV3
from pmu.arm.registers import (
    PMCCNTR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMINTENSET_EL1,
    PMUSERENR_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.model import model
from unit.pmu.fake_bank import FakeBank

MODEL = model("armv8_pmuv3")
EN, SW, CR, ER = 1, 2, 4, 8
ALWAYS, NEVER = 16, 0

# op1, CRn, CRm, op2 of each register; the PMUSERENR bits that let EL0 read it, and write it.
# Arm ARM DDI 0487, the accessibility of each register
MATRIX = {
    "PMCR": ((3, 9, 12, 0), EN, EN),
    "PMCNTENSET": ((3, 9, 12, 1), EN, EN),
    "PMCNTENCLR": ((3, 9, 12, 2), EN, EN),
    "PMOVSCLR": ((3, 9, 12, 3), EN, EN),
    "PMSWINC": ((3, 9, 12, 4), NEVER, EN | SW),
    "PMSELR": ((3, 9, 12, 5), EN | ER, EN | ER),
    "PMCEID0": ((3, 9, 12, 6), EN, NEVER),
    "PMCEID1": ((3, 9, 12, 7), EN, NEVER),
    "PMCCNTR": ((3, 9, 13, 0), EN | CR, EN),
    "PMXEVTYPER": ((3, 9, 13, 1), EN, EN),
    "PMXEVCNTR": ((3, 9, 13, 2), EN | ER, EN),
    "PMUSERENR": ((3, 9, 14, 0), ALWAYS, NEVER),
    "PMOVSSET": ((3, 9, 14, 3), EN, EN),
    "PMEVCNTR0": ((3, 14, 8, 0), EN | ER, EN),
    "PMEVCNTR5": ((3, 14, 8, 5), EN | ER, EN),
    "PMEVTYPER0": ((3, 14, 12, 0), EN, EN),
    "PMEVTYPER5": ((3, 14, 12, 5), EN, EN),
    "PMCCFILTR": ((3, 14, 15, 7), EN, EN),
    "PMINTENSET_EL1": ((0, 9, 14, 1), NEVER, NEVER),
    "PMINTENCLR_EL1": ((0, 9, 14, 2), NEVER, NEVER),
    "PMEVCNTR6, which is not there": ((3, 14, 8, 6), NEVER, NEVER),
}


@pytest.fixture
def machine() -> tuple[PmuV3, SystemRegisters, FakeBank]:
    bank = FakeBank(7)
    pmu = PmuV3(bank, MODEL)
    system_registers = SystemRegisters()
    pmu.grant_user_access(system_registers)
    return pmu, system_registers, bank


@pytest.mark.parametrize("enabled", range(16))
@pytest.mark.parametrize("name", MATRIX)
def test_permissions(machine: tuple[PmuV3, SystemRegisters, FakeBank], name: str, enabled: int) -> None:
    pmu, system_registers, _ = machine
    (op1, crn, crm, op2), read, write = MATRIX[name]
    encoding = SysReg(3, op1, crn, crm, op2)
    pmu.write(PMUSERENR_EL0, enabled)
    if (enabled | ALWAYS) & read:
        system_registers.read(encoding)
    else:
        with pytest.raises(UndefinedRegister):
            system_registers.read(encoding)
    if (enabled | ALWAYS) & write:
        system_registers.write(encoding, 0)
    else:
        with pytest.raises(UndefinedRegister):
            system_registers.write(encoding, 0)
    assert pmu.read(PMUSERENR_EL0) == enabled


def test_a_refusal_names_the_register_and_the_enables(machine: tuple[PmuV3, SystemRegisters, FakeBank]) -> None:
    pmu, system_registers, _ = machine
    pmu.write(PMUSERENR_EL0, CR)
    with pytest.raises(UndefinedRegister, match=r"read of PMEVCNTR3_EL0 at EL0 with PMUSERENR_EL0\{CR=1\}"):
        system_registers.read(PMEVCNTRn_EL0.encoding_of(3))


def test_el0_reads_what_the_kernel_reads(machine: tuple[PmuV3, SystemRegisters, FakeBank]) -> None:
    pmu, system_registers, bank = machine
    pmu.write(PMEVTYPERn_EL0, 0x08, 1)
    pmu.write(PMCNTENSET_EL0, 1 << 31 | 1 << 1)
    pmu.write(PMCR_EL0, 1)
    pmu.write(PMUSERENR_EL0, ER | CR)  # as Linux grants it
    pmu.write(PMCCNTR_EL0, 1000)
    bank.fire(Probe.INST_RETIRED, 123)
    assert system_registers.read(PMEVCNTRn_EL0.encoding_of(1)) == pmu.read(PMEVCNTRn_EL0, 1) == 123
    assert system_registers.read(PMCCNTR_EL0.encoding_of()) == pmu.read(PMCCNTR_EL0) == 1123


def test_el0_increments_at_its_own_privilege(machine: tuple[PmuV3, SystemRegisters, FakeBank]) -> None:
    pmu, system_registers, _ = machine
    pmu.write(PMEVTYPERn_EL0, 1 << 31, 0)  # SW_INCR, not at EL1
    pmu.write(PMEVTYPERn_EL0, 1 << 30, 1)  # SW_INCR, not at EL0
    pmu.write(PMCNTENSET_EL0, 0b11)
    pmu.write(PMCR_EL0, 1)
    pmu.write(PMUSERENR_EL0, SW)
    system_registers.write(SysReg(3, 3, 9, 12, 4), 0b11)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in (0, 1)] == [1, 0]


def test_only_what_user_mode_may_reach_is_claimed(machine: tuple[PmuV3, SystemRegisters, FakeBank]) -> None:
    _, system_registers, _ = machine
    claimed = [register.encoding for register in system_registers.claimed() if isinstance(register, SysReg)]
    # 14 single registers (all of MATRIX but the EL1 ones and the banks), 6 counters, 6 types
    assert len(claimed) == 14 + 6 + 6
    interrupt_enables = PMINTENSET_EL1.encoding_of()
    assert isinstance(interrupt_enables, SysReg)
    assert interrupt_enables.encoding not in claimed
