"""Which PMU registers EL0 may read and write, for every value of PMUSERENR_EL0."""

from __future__ import annotations

import pytest

from emulator.probes import Probe
from emulator.sysregs import SysReg, SystemRegisters, TrappedRegister, UndefinedRegister
from pmu.arm.pmuv3 import PmuV3
from pmu.arm.registers import (
    PMCCNTR_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMICFILTR_EL0,
    PMICNTR_EL0,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSELR_EL0,
    PMSWINC_EL0,
    PMUACR_EL1,
    PMUSERENR_EL0,
    PMZR_EL0,
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


# PMUv3p9. For a register, from the manual's pseudocode: the bits of PMUSERENR_EL0 of which one lets EL0 read it, and
# write it; the bit that forbids it in any case; the bit of PMUACR_EL1; the bit that with UEN means read only
UEN, IR, TID = 16, 32, 64
EVENT, CYCLE, INSTRUCTION = 1 << 3, 1 << 31, 1 << 32
WITH_UEN = {
    "PMCR": ((3, 9, 12, 0), EN, EN, UEN, 0, 0),
    "PMSELR": ((3, 9, 12, 5), UEN | EN | ER, UEN | EN | ER, 0, 0, 0),
    "PMCEID0": ((3, 9, 12, 6), UEN | EN, 0, TID, 0, 0),
    "PMCEID1": ((3, 9, 12, 7), UEN | EN, 0, TID, 0, 0),
    "PMCCNTR": ((3, 9, 13, 0), UEN | EN | CR, UEN | EN, 0, CYCLE, CR),
    "PMCCFILTR": ((3, 14, 15, 7), UEN | EN, UEN | EN, 0, CYCLE, CR),
    "PMICNTR": ((3, 9, 4, 0), UEN, UEN, 0, INSTRUCTION, IR),
    "PMICFILTR": ((3, 9, 6, 0), UEN, UEN, 0, INSTRUCTION, IR),
    "PMEVCNTR3": ((3, 14, 8, 3), UEN | EN | ER, UEN | EN, 0, EVENT, ER),
    "PMEVTYPER3": ((3, 14, 12, 3), UEN | EN, UEN | EN, 0, EVENT, ER),
    "PMXEVCNTR": ((3, 9, 13, 2), UEN | EN | ER, UEN | EN, 0, EVENT, ER),
    "PMXEVTYPER": ((3, 9, 13, 1), UEN | EN, UEN | EN, 0, EVENT, ER),
}
ONE_BY_ONE = {CYCLE: CR, INSTRUCTION: IR, EVENT: ER}  # bits of the set registers, and what makes them read only


@pytest.fixture
def newest() -> tuple[PmuV3, SystemRegisters]:
    pmu = PmuV3(FakeBank(8), model("pmuv3p9"))
    system_registers = SystemRegisters()
    pmu.grant_user_access(system_registers)
    pmu.write(PMSELR_EL0, 3)
    return pmu, system_registers


@pytest.mark.parametrize("enabled", range(128))
def test_with_uen_each_counter_is_by_itself(newest: tuple[PmuV3, SystemRegisters], enabled: int) -> None:
    pmu, system_registers = newest
    pmu.write(PMUSERENR_EL0, enabled)
    registers = {register.encoding_of(index): (register, index) for register, index in pmu._user_registers()}
    for (op1, crn, crm, op2), read, write, never, counter, read_only in WITH_UEN.values():
        encoding = SysReg(3, op1, crn, crm, op2)
        register, index = registers[encoding]
        for named in (0, counter):
            pmu.write(PMUACR_EL1, named)
            hidden = bool(enabled & UEN and counter and not named)
            if enabled & read and not enabled & never:
                assert system_registers.read(encoding) == (0 if hidden else pmu.read(register, index))
            else:
                with pytest.raises(TrappedRegister):
                    system_registers.read(encoding)
            if not write:
                continue
            if not enabled & write or enabled & never:
                with pytest.raises(TrappedRegister):
                    system_registers.write(encoding, 1)
                continue
            for value in (0, 1 << 30) if "TYPER" in register.__name__ or "FILTR" in register.__name__ else (0, 17):
                before = pmu.read(register, index)
                system_registers.write(encoding, value)
                ignored = hidden or (enabled & UEN and enabled & read_only)
                written = pmu.read(register, index)
                fixed = {PMICFILTR_EL0: 8, PMCR_EL0: 1 << 6 | 6 << 11}.get(register, 0)
                assert written == (before if ignored else value & (register.declared or -1) | fixed)
                pmu.write(PMSELR_EL0, 3)
            pmu.write(PMCR_EL0, 0)


@pytest.mark.parametrize("enabled", range(128))
def test_with_uen_bits_of_the_set_registers_are_by_themselves(
    newest: tuple[PmuV3, SystemRegisters], enabled: int
) -> None:
    """Without UEN, EN shows all but the instruction counter's."""
    pmu, system_registers = newest
    pmu.write(PMUSERENR_EL0, enabled)
    everything = EVENT | CYCLE | INSTRUCTION
    for setting, clearing in ((PMCNTENSET_EL0, PMCNTENCLR_EL0), (PMOVSSET_EL0, PMOVSCLR_EL0)):
        for named in (0, EVENT, CYCLE, INSTRUCTION, everything):
            pmu.write(PMUACR_EL1, named)
            if not enabled & (EN | UEN):
                with pytest.raises(TrappedRegister):
                    system_registers.write(setting.encoding_of(), 0)
                continue
            seen = named if enabled & UEN else EVENT | CYCLE
            fixed = sum(bit for bit, read_only in ONE_BY_ONE.items() if enabled & UEN and enabled & read_only)
            changed = seen & ~fixed
            pmu.write(clearing, everything)
            system_registers.write(setting.encoding_of(), everything)
            assert pmu.read(setting) == changed
            pmu.write(setting, everything)
            for register in (setting, clearing):
                assert system_registers.read(register.encoding_of()) == seen
            system_registers.write(clearing.encoding_of(), everything)
            assert pmu.read(setting) == everything & ~changed


@pytest.mark.parametrize("enabled", range(128))
def test_with_uen_commands_are_for_the_counters_that_are_named(
    newest: tuple[PmuV3, SystemRegisters], enabled: int
) -> None:
    pmu, system_registers = newest
    pmu.write(PMUSERENR_EL0, enabled)
    pmu.write(PMCNTENSET_EL0, 0b1100)  # both count SW_INCR
    pmu.write(PMCR_EL0, 1)
    pmu.write(PMUACR_EL1, EVENT | CYCLE | INSTRUCTION)
    for counter in (2, 3):
        pmu.write(PMEVCNTRn_EL0, 10, counter)
    pmu.write(PMCCNTR_EL0, 10)
    pmu.write(PMICNTR_EL0, 10)
    if enabled & (UEN | EN | SW):
        system_registers.write(PMSWINC_EL0.encoding_of(), 0b1100)
        named_alone = enabled & (UEN | SW) == UEN
        assert [pmu.read(PMEVCNTRn_EL0, n) for n in (2, 3)] == [10 if named_alone else 11, 11]
    else:
        with pytest.raises(TrappedRegister):
            system_registers.write(PMSWINC_EL0.encoding_of(), 0b1100)
    before = [pmu.read(PMEVCNTRn_EL0, n) for n in (2, 3)]
    if not enabled & (UEN | EN):
        with pytest.raises(TrappedRegister):
            system_registers.write(PMZR_EL0.encoding_of(), (1 << 33) - 1)
        return
    system_registers.write(PMZR_EL0.encoding_of(), (1 << 33) - 1)
    uen = enabled & UEN
    after = [
        before[0] if uen else 0,
        before[1] if uen and enabled & ER else 0,
        10 if uen and enabled & CR else 0,
        10 if not uen or enabled & IR else 0,
    ]
    counters = [pmu.read(PMEVCNTRn_EL0, 2), pmu.read(PMEVCNTRn_EL0, 3), pmu.read(PMCCNTR_EL0), pmu.read(PMICNTR_EL0)]
    assert counters == after


def test_pmuserenr_itself_is_undefined_to_write(newest: tuple[PmuV3, SystemRegisters]) -> None:
    """And not trapped, which QEMU says, too: guest_programs/board_pmu_el0."""
    pmu, _ = newest
    with pytest.raises(UndefinedRegister) as raised:
        pmu._user_write(PMUSERENR_EL0, 0, 0)
    assert not isinstance(raised.value, TrappedRegister)
