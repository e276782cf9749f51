"""Registers of branch records: what they say after reset, what faults, and what recording does to them."""

from __future__ import annotations

import pytest

from emulator._native import RetirementListener
from pmu.amd.last_branch_stack import LastBranchStack
from pmu.amd.lbr_registers import DBG_EXTN_CFG, LBR_SELECT, LastBranchFromIpx, LastBranchToIpx
from pmu.branch_records import BranchUnit
from pmu.intel.arch_lbr_registers import IA32_LBR_CTL, IA32_LBR_DEPTH, IA32_LBR_x_FROM_IP, IA32_LBR_x_INFO
from pmu.intel.architectural_branches import ArchitecturalBranches, cpuid_of_branches
from pmu.intel.last_branches import LastBranches
from pmu.intel.lbr_registers import (
    MSR_LASTBRANCH_TOS,
    MSR_LBR_SELECT,
    MSR_LASTBRANCH_x_FROM_IP,
    MSR_LASTBRANCH_x_TO_IP,
    MSR_LBR_INFO_x,
)
from pmu.register import Register


class Source:
    """A core in which nothing happens."""

    def __init__(self) -> None:
        self.listeners: list[RetirementListener] = []

    def listen(self, listener: RetirementListener) -> None:
        self.listeners.append(listener)

    def stop_listening(self, listener: RetirementListener) -> None:
        self.listeners.remove(listener)


def read(unit: BranchUnit, register: type[Register], index: int = 0) -> int:
    access = unit.accesses()[register].read
    assert access is not None
    return access(index)


def write(unit: BranchUnit, register: type[Register], value: int, index: int = 0) -> None:
    access = unit.accesses()[register].write
    assert access is not None
    access(value, index)


@pytest.mark.parametrize("make", [LastBranches, ArchitecturalBranches, LastBranchStack])
def test_entries_keep_what_is_written(make: type[BranchUnit]) -> None:
    """Each bank's register n alone; everything is 0 before, but the number of the newest entry."""
    unit = make(Source())  # type: ignore[call-arg]
    banks = [register for register in unit.accesses() if register.bank is not None]
    assert all(read(unit, bank, n) == 0 for bank in banks for n in range(unit.entries))
    for number, bank in enumerate(banks):
        for n in range(unit.entries):
            write(unit, bank, 0x1000 * (number + 1) + n, n)
    for number, bank in enumerate(banks):
        assert [read(unit, bank, n) for n in range(unit.entries)] == [
            0x1000 * (number + 1) + n for n in range(unit.entries)
        ]


@pytest.mark.parametrize(
    ("make", "register", "bit"),
    [
        (LastBranches, MSR_LBR_SELECT, 10),
        (LastBranches, MSR_LASTBRANCH_TOS, 5),
        (ArchitecturalBranches, IA32_LBR_CTL, 4),
    ],
)
def test_reserved_bits_fault(make: type[BranchUnit], register: type[Register], bit: int) -> None:
    with pytest.raises(ValueError, match="reserved"):
        write(make(Source()), register, 1 << bit)  # type: ignore[call-arg]


def test_architectural_depth() -> None:
    """Another than there is faults; writing it empties the records."""
    unit = ArchitecturalBranches(Source())
    assert read(unit, IA32_LBR_DEPTH) == 32
    with pytest.raises(ValueError, match="there are 32 records"):
        write(unit, IA32_LBR_DEPTH, 16)
    write(unit, IA32_LBR_x_FROM_IP, 0x400000, 7)
    write(unit, IA32_LBR_DEPTH, 32)
    assert read(unit, IA32_LBR_x_FROM_IP, 7) == 0


def test_information() -> None:
    """Fields that hardware writes are kept as they are written: for a kernel that restores them."""
    legacy, architectural = LastBranches(Source()), ArchitecturalBranches(Source())
    info = MSR_LBR_INFO_x.make(CYC_CNT=0xFFFF, MISPRED=1)
    write(legacy, MSR_LBR_INFO_x, info, 3)
    assert read(legacy, MSR_LBR_INFO_x, 3) == info
    info = IA32_LBR_x_INFO.make(CYC_CNT=9, BR_TYPE=5, CYC_CNT_VALID=1, MISPRED=1)
    write(architectural, IA32_LBR_x_INFO, info, 3)
    assert read(architectural, IA32_LBR_x_INFO, 3) == info


def test_a_unit_hears_of_branches_while_it_is_enabled_and_not_frozen() -> None:
    source = Source()
    unit = LastBranchStack(source)
    write(unit, DBG_EXTN_CFG, DBG_EXTN_CFG.LBRV2EN.mask)
    assert len(source.listeners) == 1
    unit.freeze(True)
    assert not source.listeners
    unit.freeze(False)
    assert len(source.listeners) == 1
    write(unit, DBG_EXTN_CFG, 0)
    assert not source.listeners


def test_amds_entries() -> None:
    unit = LastBranchStack(Source())
    write(unit, LBR_SELECT, 0x1FF)
    assert read(unit, LBR_SELECT) == 0x1FF
    write(unit, LastBranchFromIpx, LastBranchFromIpx.make(LbrFrom=0x401000, MisPredict=1))
    write(unit, LastBranchToIpx, LastBranchToIpx.make(LbrTo=0x402000, Valid=1))
    assert LastBranchFromIpx(read(unit, LastBranchFromIpx)).MisPredict == 1
    assert LastBranchToIpx(read(unit, LastBranchToIpx)).Valid == 1


def test_skylakes_newest() -> None:
    unit = LastBranches(Source())
    write(unit, MSR_LASTBRANCH_TOS, 31)
    assert read(unit, MSR_LASTBRANCH_TOS) == 31
    write(unit, MSR_LASTBRANCH_x_FROM_IP, 1 << 63, 31)
    write(unit, MSR_LASTBRANCH_x_TO_IP, 2, 31)
    assert (read(unit, MSR_LASTBRANCH_x_FROM_IP, 31), read(unit, MSR_LASTBRANCH_x_TO_IP, 31)) == (1 << 63, 2)


def test_cpuid_has_a_leaf_of_architectural_records() -> None:
    """EAX bit 3: 32 entries, 8 * (3 + 1)."""
    assert cpuid_of_branches(0x1C, 0, (0, 0, 0, 0)) == (1 << 3, 0b111, 0b111, 0)
    assert cpuid_of_branches(7, 0, (0, 0, 0, 0))[3] == 1 << 19
    assert cpuid_of_branches(0, 0, (0x16, 0, 0, 0))[0] == 0x1C
