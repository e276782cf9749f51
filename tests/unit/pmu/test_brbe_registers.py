"""The Branch Record Buffer Extension's registers: what they hold after a reset, which bits of a write, and what becomes
of records that software makes."""

from __future__ import annotations

import pytest

from emulator._native import RetirementListener
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.machine import MachineConfig
from emulator.probes import Probe
from emulator.sysregs import SysReg, UndefinedRegister
from pmu.arm import brbe_registers
from pmu.arm.branch_record_buffer import BranchRecordBuffer
from pmu.arm.brbe_registers import (
    BRB_IALL,
    BRB_INJ,
    BRBCR_EL1,
    BRBFCR_EL1,
    BRBIDR0_EL1,
    BRBINFINJ_EL1,
    BRBSRCINJ_EL1,
    BRBTGTINJ_EL1,
    BRBTS_EL1,
    BranchType,
    BrbeRegister,
    BRBINFn_EL1,
    BRBSRCn_EL1,
    BRBTGTn_EL1,
    Valid,
    cycle_count,
    cycles_of,
)
from pmu.arm.pmuv3 import ID_AA64DFR0_EL1, PmuV3
from pmu.arm.registers import PMCNTENSET_EL0, PMCR_EL0, PMOVSCLR_EL0, PMEVCNTRn_EL0, PMEVTYPERn_EL0
from pmu.models.neoverse_n1 import MODEL
from unit.pmu.fake_bank import FakeBank

ONES = (1 << 64) - 1
NOW = 123_456
DECLARED = [each for each in vars(brbe_registers).values() if isinstance(each, type) and issubclass(each, BrbeRegister)]
REGISTERS = [each for each in DECLARED if each.encoding is not None or each.bank is not None]
INSTRUCTIONS = (BRB_IALL, BRB_INJ)
IDENTITY = BRBIDR0_EL1


class Source:
    """A core in which nothing happens."""

    def __init__(self) -> None:
        self.listeners: list[RetirementListener] = []

    def listen(self, listener: RetirementListener) -> None:
        self.listeners.append(listener)

    def stop_listening(self, listener: RetirementListener) -> None:
        self.listeners.remove(listener)


def pmu(records: int = 32, source: Source | None = None) -> PmuV3:
    unit = BranchRecordBuffer(source or Source(), records, lambda: NOW)
    return PmuV3(FakeBank(MODEL.bank_size(MODEL.counters)), MODEL, branches=unit)


def inject(found: PmuV3, information: int, source: int, target: int) -> None:
    found.write(BRBINFINJ_EL1, information)
    found.write(BRBSRCINJ_EL1, source)
    found.write(BRBTGTINJ_EL1, target)
    found.write(BRB_INJ, 0)


def records(found: PmuV3, count: int) -> list[tuple[int, int, int]]:
    return [tuple(found.read(bank, n) for bank in (BRBINFn_EL1, BRBSRCn_EL1, BRBTGTn_EL1)) for n in range(count)]  # type: ignore[misc]


def test_encodings() -> None:
    """Arm ARM: op0 2, op1 1; CRn 9 for control, 8 for records; and two SYS instructions."""
    assert {each.__name__: each.encoding for each in REGISTERS if each.bank is None} == {
        "BRBCR_EL1": SysReg(2, 1, 9, 0, 0),
        "BRBFCR_EL1": SysReg(2, 1, 9, 0, 1),
        "BRBTS_EL1": SysReg(2, 1, 9, 0, 2),
        "BRBINFINJ_EL1": SysReg(2, 1, 9, 1, 0),
        "BRBSRCINJ_EL1": SysReg(2, 1, 9, 1, 1),
        "BRBTGTINJ_EL1": SysReg(2, 1, 9, 1, 2),
        "BRBIDR0_EL1": SysReg(2, 1, 9, 2, 0),
        "BRB_IALL": SysReg(1, 1, 7, 2, 4),
        "BRB_INJ": SysReg(1, 1, 7, 2, 5),
    }
    # the linker's own view of BRBSRC17_EL1: S2_1_C8_C1_5
    assert BRBSRCn_EL1.encoding_of(17) == SysReg(2, 1, 8, 1, 5)
    assert BRBINFn_EL1.encoding_of(31) == SysReg(2, 1, 8, 15, 4)
    assert BRBTGTn_EL1.encoding_of(0) == SysReg(2, 1, 8, 0, 2)
    assert len({each.encoding_of(n) for each in REGISTERS for n in range(each.bank.count if each.bank else 1)}) == 105


@pytest.mark.parametrize("size", [8, 16, 32, 64])
def test_after_a_reset_there_is_nothing(size: int) -> None:
    found = pmu(size)
    readable = [each for each in REGISTERS if found.can_read(each)]
    assert set(REGISTERS) - set(readable) == set(INSTRUCTIONS)
    values = {each: found.read(each, n) for each in readable for n in range(found.registers_of(each))}
    assert {each: value for each, value in values.items() if value} == {IDENTITY: 0x5000 | size}
    assert found.identification[ID_AA64DFR0_EL1] >> 52 == 1
    without = PmuV3(FakeBank(MODEL.bank_size(MODEL.counters)), MODEL)
    assert without.identification[ID_AA64DFR0_EL1] >> 52 == 0
    assert not any(without.can_read(each) or without.can_write(each) for each in REGISTERS)


@pytest.mark.parametrize(
    ("register", "kept"),
    [
        (BRBCR_EL1, 0xC0_017B),
        (BRBFCR_EL1, 0x307F_0080),
        (BRBTS_EL1, ONES),
        (BRBINFINJ_EL1, 0x7FFF_0000_3FE3),
        (BRBSRCINJ_EL1, ONES),
        (BRBTGTINJ_EL1, ONES),
    ],
)
def test_bits_that_a_write_keeps(register: type[BrbeRegister], kept: int) -> None:
    found = pmu()
    found.write(register, ONES)
    assert found.read(register) == kept
    found.write(register, 0)
    assert found.read(register) == 0


@pytest.mark.parametrize("register", [IDENTITY, BRBINFn_EL1, BRBSRCn_EL1, BRBTGTn_EL1])
def test_records_are_not_written(register: type[BrbeRegister]) -> None:
    with pytest.raises(ValueError, match=register.__name__):
        pmu().write(register, 0)


@pytest.mark.parametrize("register", REGISTERS)
def test_user_mode_has_none(register: type[BrbeRegister]) -> None:
    registers = LinuxMachine(MachineConfig("aarch64", core=load_core("neoverse-n1"))).cpus[0].system_registers
    pmu().grant_user_access(registers)
    with pytest.raises(UndefinedRegister):
        registers.read(register.encoding_of())
    with pytest.raises(UndefinedRegister):
        registers.write(register.encoding_of(), 0)


@pytest.mark.parametrize("cycles", [0, 1, 255, 256, 257, 511, 512, 513, 1022, 1023, 65_535, 65_536, 1_048_575])
def test_cycle_counts(cycles: int) -> None:
    """Nine bits are kept, the first of which is 1 and not written: rounded down to a multiple of 2^(bits - 9)."""
    shift = max(cycles.bit_length() - 9, 0)
    assert cycles_of(cycle_count(cycles)) == cycles >> shift << shift
    assert cycle_count(cycles) < 0x3FFF


def test_cycle_counts_by_hand() -> None:
    assert cycle_count(0xFF) == 0xFF
    assert cycle_count(0x100) == 1 << 8
    assert cycle_count(0x1FF) == 1 << 8 | 0xFF
    assert cycle_count(0x3FF) == 2 << 8 | 0xFF  # 0x3FE
    assert cycle_count(0xF_FFFF) == 12 << 8 | 0xFF
    assert cycle_count(1 << 20) == 0x3FFF  # more than the counter's 20 bits


def test_injected_records_and_banks() -> None:
    """70 into 64: record 0 is the newest; number 32 and up are in the second bank."""
    found = pmu(64)
    for n in range(70):
        inject(found, BRBINFINJ_EL1.make(VALID=Valid.FULL, TYPE=BranchType.RET, EL=1), 0x1000 + n, 0x2000 + n)
    made = BRBINFn_EL1.make(VALID=3, TYPE=5, EL=1)
    assert records(found, 32) == [(made, 0x1000 + 69 - n, 0x2000 + 69 - n) for n in range(32)]
    found.write(BRBFCR_EL1, BRBFCR_EL1.make(BANK=1))
    assert records(found, 32) == [(made, 0x1000 + 37 - n, 0x2000 + 37 - n) for n in range(32)]
    found.write(BRBFCR_EL1, BRBFCR_EL1.make(BANK=2))
    assert records(found, 32) == [(0, 0, 0)] * 32
    found.write(BRBFCR_EL1, 0)
    found.write(BRB_IALL, 0)
    assert records(found, 32) == [(0, 0, 0)] * 32


def test_an_injection_takes_what_it_is_given() -> None:
    found = pmu(8)
    inject(found, ONES, ONES, 0)
    assert records(found, 2) == [(BRBINFINJ_EL1.declared, ONES, 0), (0, 0, 0)]
    assert found.read(BRBINFINJ_EL1) == found.read(BRBSRCINJ_EL1) == 0
    inject(found, BRBINFINJ_EL1.make(VALID=Valid.TARGET, TYPE=BranchType.DATA_FAULT), 0, 0x8000)
    assert records(found, 2)[0] == (0x2C01, 0, 0x8000)
    assert records(found, 32)[8:] == [(0, 0, 0)] * 24  # there are 8


def test_who_listens() -> None:
    """The core is listened to while EL0 or EL1 is recorded and nothing pauses that."""
    source = Source()
    found = pmu(source=source)
    found.write(BRBCR_EL1, BRBCR_EL1.make(CC=1, MPRED=1))
    assert not source.listeners
    found.write(BRBCR_EL1, BRBCR_EL1.make(E1BRE=1))
    assert len(source.listeners) == 1
    found.write(BRBCR_EL1, BRBCR_EL1.make(E0BRE=1))
    assert len(source.listeners) == 1
    found.write(BRBFCR_EL1, BRBFCR_EL1.make(PAUSED=1))
    assert not source.listeners
    found.write(BRBFCR_EL1, BRBFCR_EL1.make(DIRECT=1))
    assert len(source.listeners) == 1


@pytest.mark.parametrize("freezes", [False, True])
def test_an_overflow_freezes(freezes: bool) -> None:
    """With FZP: a counter that wraps, whether it interrupts or not, and once for each time."""
    source = Source()
    found = pmu(source=source)
    bank = found._bank
    assert isinstance(bank, FakeBank)
    found.write(PMEVTYPERn_EL0, 0x0008, 0)  # INST_RETIRED
    found.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
    found.write(PMCNTENSET_EL0, 1)
    found.write(PMCR_EL0, PMCR_EL0.make(E=1))
    found.write(BRBCR_EL1, BRBCR_EL1.make(E0BRE=1, FZP=int(freezes)))
    bank.fire(Probe.INST_RETIRED)
    assert bank.stops == freezes
    assert not found.interrupt_asserted()
    paused = BRBFCR_EL1.PAUSED.mask if freezes else 0
    assert found.read(BRBFCR_EL1) == paused
    assert found.read(BRBTS_EL1) == (NOW if freezes else 0)
    assert len(source.listeners) == (not freezes)
    found.write(BRBFCR_EL1, 0)
    assert not found.interrupt_asserted()
    assert found.read(BRBFCR_EL1) == 0  # the overflow is an old one
    found.write(PMOVSCLR_EL0, 1)
    found.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
    bank.fire(Probe.INST_RETIRED)
    assert not found.interrupt_asserted()
    assert found.read(BRBFCR_EL1) == paused
