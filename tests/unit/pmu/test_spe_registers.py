"""The Statistical Profiling Extension's registers: what they hold after a reset, and which bits of a write."""

from __future__ import annotations

import pytest

from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.machine import MachineConfig
from emulator.sysregs import SysReg, UndefinedRegister
from pmu.arm import spe_registers
from pmu.arm.spe import ID_AA64DFR0_EL1, SpeUnit
from pmu.arm.spe_registers import (
    EVENTS,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIDR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    PMSNEVFR_EL1,
    SpeRegister,
    SpeVersion,
)
from pmu.unit_memory import UnitMemory

ONES = (1 << 64) - 1
DECLARED = [each for each in vars(spe_registers).values() if isinstance(each, type) and issubclass(each, SpeRegister)]
REGISTERS = [each for each in DECLARED if each is not SpeRegister]


def unit(version: SpeVersion = SpeVersion.V1P2) -> SpeUnit:
    cpu = LinuxMachine(MachineConfig("aarch64", core=load_core("ideal"))).cpus[0]
    return SpeUnit(cpu, version, UnitMemory(), lambda cycle: cycle)


def test_encodings() -> None:
    """Arm ARM, the tables of system instructions: CRn is 9; CRm is 9 for sampling, 10 for the buffer."""
    assert {each.__name__: each.encoding_of() for each in REGISTERS} == {
        "PMSCR_EL1": SysReg(3, 0, 9, 9, 0),
        "PMSNEVFR_EL1": SysReg(3, 0, 9, 9, 1),
        "PMSICR_EL1": SysReg(3, 0, 9, 9, 2),
        "PMSIRR_EL1": SysReg(3, 0, 9, 9, 3),
        "PMSFCR_EL1": SysReg(3, 0, 9, 9, 4),
        "PMSEVFR_EL1": SysReg(3, 0, 9, 9, 5),
        "PMSLATFR_EL1": SysReg(3, 0, 9, 9, 6),
        "PMSIDR_EL1": SysReg(3, 0, 9, 9, 7),
        "PMBLIMITR_EL1": SysReg(3, 0, 9, 10, 0),
        "PMBPTR_EL1": SysReg(3, 0, 9, 10, 1),
        "PMBSR_EL1": SysReg(3, 0, 9, 10, 3),
        "PMBIDR_EL1": SysReg(3, 0, 9, 10, 7),
    }


def test_after_a_reset_nothing_is_enabled() -> None:
    found = unit()
    assert [each.__name__ for each in found.registers() if found.read(each)] == ["PMSIDR_EL1", "PMBIDR_EL1"]


def test_what_it_says_of_itself() -> None:
    """Interval 0b0100 is 1024, MaxSize and Align 6 are 64 bytes, CountSize 0b0010 is 12 bits that saturate."""
    identity = PMSIDR_EL1(unit().read(PMSIDR_EL1))
    assert identity == PMSIDR_EL1(0b0010 << 16 | 0b0110 << 12 | 0b0100 << 8 | 1 << 6 | 1 << 4 | 1 << 3 | 0b111)
    assert unit().read(PMBIDR_EL1) == 6
    assert {version: unit(version).identification[ID_AA64DFR0_EL1] >> 32 for version in SpeVersion} == {
        1: 1,
        2: 2,
        3: 3,
    }


@pytest.mark.parametrize(
    ("register", "kept"),
    [
        (PMSCR_EL1, 0xFB),
        (PMSIRR_EL1, 0xFFFF_FF01),
        (PMSICR_EL1, 0xFFFF_FFFF),
        (PMSFCR_EL1, 0x7_000F),
        (PMSLATFR_EL1, 0xFFF),
        (PMBLIMITR_EL1, 0xFFFF_FFFF_FFFF_F001),
        (PMBPTR_EL1, 0xFFFF_FFFF_FFFF_FFC0),
        (PMBSR_EL1, 0xFC0F_FFFF),
        (PMSEVFR_EL1, 0x8EA),  # events 1, 3, 5, 6, 7, 11
        (PMSNEVFR_EL1, 0x8EA),
    ],
)
def test_bits_that_a_write_keeps(register: type[SpeRegister], kept: int) -> None:
    found = unit()
    if register is PMBLIMITR_EL1:
        found.write(PMBSR_EL1, PMBSR_EL1.make(S=1))
    found.write(register, ONES)
    assert found.read(register) == kept
    found.write(register, 0)
    assert found.read(register) == 0


@pytest.mark.parametrize("version", [SpeVersion.V1, SpeVersion.V1P1])
def test_what_came_with_spe_v1p2(version: SpeVersion) -> None:
    found = unit(version)
    assert not found.can_read(PMSNEVFR_EL1)
    found.write(PMSFCR_EL1, ONES)
    assert PMSFCR_EL1(found.read(PMSFCR_EL1)).FnE == 0
    found.write(PMSEVFR_EL1, ONES)
    assert found.read(PMSEVFR_EL1) == EVENTS[version]


@pytest.mark.parametrize("register", [PMSIDR_EL1, PMBIDR_EL1])
def test_id_registers_are_not_written(register: type[SpeRegister]) -> None:
    with pytest.raises(ValueError, match=register.__name__):
        unit().write(register, 0)


@pytest.mark.parametrize("register", REGISTERS)
def test_user_mode_has_none(register: type[SpeRegister]) -> None:
    registers = LinuxMachine(MachineConfig("aarch64", core=load_core("neoverse-n1"))).cpus[0].system_registers
    with pytest.raises(UndefinedRegister):
        registers.read(register.encoding_of())
    with pytest.raises(UndefinedRegister):
        registers.write(register.encoding_of(), 0)
