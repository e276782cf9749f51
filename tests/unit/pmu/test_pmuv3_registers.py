"""Every register and field of PMUv3's declarations: against what Linux knows, and by access at each exception level.

Made from the declarations, which must not be their own judge: encodings and fields come from Linux (vendor/
arm-registers.txt), and what may be accessed where from the manual's "Accessing" sections, as the tables here have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.sysregs import SysReg, TrappedRegister, UndefinedRegister
from pmu.arm.privileged import EL0, EL1, EL2, EL3, MDCR_EL2, MDCR_EL3, ExceptionLevel, PrivilegedPmuV3, Trap
from pmu.arm.registers import PMSELR_EL0, PMUACR_EL1, PMUSERENR_EL0, ArmRegister
from pmu.model import model
from pmu.register import OnWrite
from unit.pmu.fake_bank import FakeBank

ALL_ONES = (1 << 64) - 1
COUNTERS = 6
EN, SW, CR, ER, UEN, TID = 1, 2, 4, 8, 16, 64


def device() -> PrivilegedPmuV3:
    return PrivilegedPmuV3(FakeBank(COUNTERS + 2), model("pmuv3p9"), COUNTERS)


REGISTERS = {register.__name__: register for register in device().registers() if issubclass(register, ArmRegister)}


def facts() -> Iterator[tuple[str, list[str], list[str]]]:
    """Name, five parts of the encoding, fields."""
    text = (Path(__file__).parent / "vendor" / "arm-registers.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            name, *rest = line.split()
            yield name, rest[:5], rest[5:]


@pytest.mark.parametrize(("name", "encoding", "fields"), [pytest.param(*fact, id=fact[0]) for fact in facts()])
def test_linux_has_the_same_registers(name: str, encoding: list[str], fields: list[str]) -> None:
    register = REGISTERS[name]
    for n in range(COUNTERS) if register.bank else [0]:
        parts = [eval(part.replace("/", "//"), {"n": n}) for part in encoding]
        assert register.encoding_of(n) == SysReg(*parts)
    for field in fields:
        field_name, _, bits = field.partition("=")
        high, _, low = bits.partition(":")
        modelled = register.fields.get(field_name)
        if field.startswith("-"):
            assert modelled is None
            continue
        assert modelled is not None
        assert (modelled.hi, modelled.lo) == (int(high), int(low or high))


def test_linux_knows_all_but_these() -> None:
    assert REGISTERS.keys() - {name for name, _, _ in facts()} == {"PMEVCNTSVRn_EL1", "MDCR_EL3"}
    assert REGISTERS["PMEVCNTSVRn_EL1"].encoding_of(5) == SysReg(2, 0, 14, 8, 5)
    assert REGISTERS["PMEVCNTSVRn_EL1"].encoding_of(30) == SysReg(2, 0, 14, 11, 6)
    assert MDCR_EL3.encoding == SysReg(3, 6, 1, 3, 1)


# Values at a reset that are not zero, of six counters. The manual leaves most UNKNOWN; PMSSCR_EL1.NC is one
AT_RESET = {
    "PMCR_EL0": 1 << 6 | COUNTERS << 11,  # LC, N
    "PMICFILTR_EL0": 8,
    "PMMIR_EL1": 12 << 20 | 2 << 24,  # THWIDTH: FEAT_PMUv3_TH has all bits of TH; EDGE: with FEAT_PMUv3_TH2
    "PMSSCR_EL1": 1 << 32,
    "MDCR_EL2": COUNTERS | 1 << 30,  # HPMN; PMSSE: as below it says
    "MDCR_EL3": 1 << 7 | 1 << 17 | 1 << 30 | 1 << 44,  # EnPM2, SPME, PMSSE, EnPMSS: as firmware leaves it
}
# Bits that are not there: of counters above six
HIDDEN = {"P": ((1 << COUNTERS) - 1)}


@pytest.mark.parametrize("name", REGISTERS)
def test_reset_values(name: str) -> None:
    pmu = device()
    register = REGISTERS[name]
    if register not in pmu._readers:
        return
    expected = AT_RESET.get(name, 0)
    if name.startswith("PMCEID"):
        expected = pmu.model.events.pmceid()[int(name[6])]
    assert pmu.read_at(EL3, register) == expected


FIELDS = [
    pytest.param(register, field, id=f"{name}.{field}")
    for name, register in REGISTERS.items()
    for field in register.fields
]


@pytest.mark.parametrize(("register", "name"), FIELDS)
def test_each_field_is_of_its_kind(register: type[ArmRegister], name: str) -> None:
    """Written with ones and zeros at EL3, between neighbours that are written with the other."""
    pmu = device()
    field = register.fields[name]
    if register not in pmu._writers:
        assert field.on_write is OnWrite.IGNORE
        return
    if register.__name__ == "PMSSCR_EL1":  # needs captures that are enabled
        pmu.write_at(EL3, REGISTERS["PMECR_EL1"], 0b11 << 3)
    per_counter = name == "P" and field.width > 1
    there = field.mask & (HIDDEN["P"] if per_counter else ALL_ONES)
    readable = register in pmu._readers

    index = int(name == "TLC")  # which only odd counters have

    def read() -> int:
        return pmu.read_at(EL3, register, index) & field.mask if readable else 0

    for value, others in ((ALL_ONES, 0), (0, 0), (ALL_ONES, 0), (0, ALL_ONES)):
        before = read()
        pmu.write_at(EL3, register, value & field.mask | others & ~field.mask, index)
        match field.on_write:
            case OnWrite.STORE:
                expected = value & there
            case OnWrite.IGNORE:
                expected = before
            case OnWrite.COMMAND:
                expected = 0
            case OnWrite.SET:
                expected = (before | value) & there
            case OnWrite.CLEAR:
                expected = before & ~value
        assert read() == expected


# From the manual. Of EL0: bits of PMUSERENR_EL0 of which one is needed to read, to write; one that forbids. "" is none.
R, W = "R", "W"
FOR_ALL = UEN | EN
EL0_MAY = {
    "PMCR_EL0": (EN, EN, UEN),
    "PMCNTENSET_EL0": (FOR_ALL, FOR_ALL, 0),
    "PMCNTENCLR_EL0": (FOR_ALL, FOR_ALL, 0),
    "PMOVSCLR_EL0": (FOR_ALL, FOR_ALL, 0),
    "PMOVSSET_EL0": (FOR_ALL, FOR_ALL, 0),
    "PMSWINC_EL0": (None, FOR_ALL | SW, 0),
    "PMSELR_EL0": (FOR_ALL | ER, FOR_ALL | ER, 0),
    "PMCEID0_EL0": (FOR_ALL, None, TID),
    "PMCEID1_EL0": (FOR_ALL, None, TID),
    "PMCCNTR_EL0": (FOR_ALL | CR, FOR_ALL, 0),
    "PMCCFILTR_EL0": (FOR_ALL, FOR_ALL, 0),
    "PMXEVTYPER_EL0": (FOR_ALL, FOR_ALL, 0),
    "PMXEVCNTR_EL0": (FOR_ALL | ER, FOR_ALL, 0),
    "PMEVTYPERn_EL0": (FOR_ALL, FOR_ALL, 0),
    "PMEVCNTRn_EL0": (FOR_ALL | ER, FOR_ALL, 0),
    "PMZR_EL0": (None, FOR_ALL, 0),
    "PMICNTR_EL0": (UEN, UEN, 0),
    "PMICFILTR_EL0": (UEN, UEN, 0),
    "PMUSERENR_EL0": (127 | 128, None, 0),  # always
}
WRITE_ONLY = {"PMSWINC_EL0", "PMZR_EL0"}
READ_ONLY = {"PMCEID0_EL0", "PMCEID1_EL0", "PMMIR_EL1", "PMCCNTSVR_EL1", "PMICNTSVR_EL1", "PMEVCNTSVRn_EL1"}
NOT_BY_TPM = {"PMSSCR_EL1", "PMCCNTSVR_EL1", "PMICNTSVR_EL1", "PMEVCNTSVRn_EL1"}
BY_EN_PM2 = {"PMICNTR_EL0", "PMICFILTR_EL0", "PMUACR_EL1", "PMECR_EL1"}
OF_ONE_COUNTER = {"PMEVTYPERn_EL0", "PMEVCNTRn_EL0", "PMEVCNTSVRn_EL1", "PMXEVTYPER_EL0", "PMXEVCNTR_EL0"}

UNDEFINED, FINE = "undefined", "fine"
# A control: what it writes to MDCR_EL2 and MDCR_EL3, from what they are at the reset
CONTROLS = {
    "none": (0, 0),
    "MDCR_EL2.TPM": (1 << 6, 0),
    "MDCR_EL2.TPMCR": (1 << 5, 0),
    "MDCR_EL2.HPMN=2": (COUNTERS ^ 2, 0),
    "MDCR_EL3.TPM": (0, 1 << 6),
    "MDCR_EL3.EnPM2=0": (0, 1 << 7),
    "MDCR_EL3.EnPMSS=0": (0, 1 << 44),
    "both TPM": (1 << 6, 1 << 6),
}


def expected_of(name: str, access: str, level: ExceptionLevel, control: str, enabled: int) -> object:
    """UNDEFINED, FINE, or the level that the access traps to. The counter, where it matters, is number 4."""
    if (access == R and name in WRITE_ONLY) or (access == W and name in READ_ONLY):
        return UNDEFINED
    if level < {"MDCR_EL2": EL2, "MDCR_EL3": EL3}.get(name, EL0):
        return UNDEFINED
    if level == EL0:
        read, write, never = EL0_MAY.get(name, (None, None, 0))
        needed = read if access == R else write
        if needed is None:
            return UNDEFINED
        if not (enabled | 128) & needed or enabled & never:
            return EL1
    if name.startswith("MDCR"):
        return FINE
    if level < EL2:
        by_hypervisor = {
            "MDCR_EL2.TPM": name not in NOT_BY_TPM,
            "both TPM": name not in NOT_BY_TPM,
            "MDCR_EL2.TPMCR": name == "PMCR_EL0",
            "MDCR_EL2.HPMN=2": name in OF_ONE_COUNTER,
        }
        if by_hypervisor.get(control):
            return EL2
    if level < EL3:
        by_monitor = {
            "MDCR_EL3.TPM": name not in NOT_BY_TPM,
            "both TPM": name not in NOT_BY_TPM,
            "MDCR_EL3.EnPM2=0": name in BY_EN_PM2,
            "MDCR_EL3.EnPMSS=0": name in NOT_BY_TPM,
        }
        if by_monitor.get(control):
            return EL3
    return FINE


def outcome(pmu: PrivilegedPmuV3, register: type[ArmRegister], access: str, level: ExceptionLevel) -> object:
    index = 4 if register.bank else 0
    try:
        if access == R:
            pmu.read_at(level, register, index)
        else:
            pmu.write_at(level, register, 0, index)
    except Trap as trap:
        return trap.level
    except TrappedRegister:
        return EL1
    except UndefinedRegister:
        return UNDEFINED
    return FINE


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", REGISTERS)
def test_who_may_access_it(name: str, control: str) -> None:
    hypervisor, monitor = CONTROLS[control]
    for level in ExceptionLevel:
        for enabled in (0, EN, SW, CR, ER, UEN, TID | EN, TID | UEN, EN | UEN, 127) if level == EL0 else (0,):
            for access in (R, W):
                pmu = device()
                pmu.write(PMSELR_EL0, 4)
                pmu.write(PMUSERENR_EL0, enabled)
                pmu.write(PMUACR_EL1, ALL_ONES)
                pmu.write(MDCR_EL2, pmu.read(MDCR_EL2) ^ hypervisor)
                pmu.write(MDCR_EL3, pmu.read(MDCR_EL3) ^ monitor)
                found = outcome(pmu, REGISTERS[name], access, level)
                assert found == expected_of(name, access, level, control, enabled), (access, level, enabled)
