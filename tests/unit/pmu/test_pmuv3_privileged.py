"""PMUv3 partitioned by EL2, prohibited by EL2 and EL3, and captured: the register model that no engine here executes.

Expectations: Arm ARM DDI 0487, pseudocode of "CountPMUEvents", "GetPMUAccessMask", "PMUCaptureEvent", and others.
"""

from __future__ import annotations

import pytest

from emulator.probes import Probe
from pmu.arm.privileged import EL0, EL1, EL2, EL3, MDCR_EL2, MDCR_EL3, PrivilegedPmuV3, Trap
from pmu.arm.registers import (
    PMCCFILTR_EL0,
    PMCCNTR_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMICFILTR_EL0,
    PMICNTR_EL0,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMUACR_EL1,
    PMUSERENR_EL0,
    PMZR_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.arm.snapshots import PMCCNTSVR_EL1, PMECR_EL1, PMICNTSVR_EL1, PMSSCR_EL1, PMEVCNTSVRn_EL1
from pmu.model import model
from unit.pmu.fake_bank import FakeBank

E, P, DP, LP, FZO = 1, 1 << 1, 1 << 5, 1 << 7, 1 << 9
CYCLES, INSTRUCTIONS = 1 << 31, 1 << 32
INST_RETIRED, CHAIN = 0x08, 0x1E
ALL_ONES = (1 << 64) - 1


def partitioned(version: int = 9, **fields: int) -> tuple[PrivilegedPmuV3, FakeBank]:
    """Six counters that count INST_RETIRED; the last two are EL2's."""
    bank = FakeBank(8)
    pmu = PrivilegedPmuV3(bank, model(f"pmuv3p{version}"))
    for counter in range(6):
        pmu.write_at(EL3, PMEVTYPERn_EL0, INST_RETIRED, counter)
    pmu.write_at(EL3, PMCNTENSET_EL0, CYCLES | 0x3F)
    pmu.write_at(EL2, MDCR_EL2, MDCR_EL2.make(HPMN=4, PMSSE=1, **fields))
    return pmu, bank


def counts(pmu: PrivilegedPmuV3) -> list[int]:
    return [pmu.read_at(EL3, PMEVCNTRn_EL0, counter) for counter in range(6)]


def test_each_range_has_its_own_enable() -> None:
    pmu, bank = partitioned()
    bank.fire(Probe.INST_RETIRED, 1)  # neither
    pmu.write_at(EL1, PMCR_EL0, E)
    bank.fire(Probe.INST_RETIRED, 10)
    pmu.write_at(EL1, PMCR_EL0, 0)
    pmu.write_at(EL2, MDCR_EL2, MDCR_EL2.make(HPMN=4, HPME=1))
    bank.fire(Probe.INST_RETIRED, 100)
    assert counts(pmu) == [10] * 4 + [100] * 2
    assert pmu.read_at(EL3, PMCCNTR_EL0) == 10
    pmu.write_at(EL2, MDCR_EL2, MDCR_EL2.make(HPMN=6, HPME=1))  # all are EL1's, and stand
    bank.fire(Probe.INST_RETIRED, 1000)
    assert counts(pmu) == [10] * 4 + [100] * 2


def test_el1_sees_its_own_counters_alone() -> None:
    pmu, _ = partitioned()
    assert [PMCR_EL0(pmu.read_at(level, PMCR_EL0)).N for level in (EL1, EL2, EL3)] == [4, 6, 6]
    assert pmu.read_at(EL1, PMCNTENSET_EL0) == CYCLES | 0xF
    pmu.write_at(EL1, PMCNTENCLR_EL0, ALL_ONES)
    assert (pmu.read_at(EL1, PMCNTENSET_EL0), pmu.read_at(EL2, PMCNTENSET_EL0)) == (0, 0b11_0000)
    for register in (PMOVSSET_EL0, PMINTENSET_EL1, PMUACR_EL1):
        pmu.write_at(EL1, register, ALL_ONES)
        assert pmu.read_at(EL2, register) == INSTRUCTIONS | CYCLES | 0xF
        pmu.write_at(EL2, register, ALL_ONES)
        assert pmu.read_at(EL2, register) == INSTRUCTIONS | CYCLES | 0x3F
        assert pmu.read_at(EL1, register) == INSTRUCTIONS | CYCLES | 0xF
    pmu.write_at(EL1, PMUACR_EL1, 0)
    assert pmu.read_at(EL2, PMUACR_EL1) == 0b11_0000
    with pytest.raises(Trap, match=r"read of PMEVCNTR4_EL0 at EL1 with MDCR_EL2\{HPMN=4 PMSSE=1\}"):
        pmu.read_at(EL1, PMEVCNTRn_EL0, 4)


@pytest.mark.parametrize("reserving", [0, 7, 31])
def test_a_number_of_counters_that_cannot_be_reserves_none(reserving: int) -> None:
    pmu, _ = partitioned()
    pmu.write_at(EL2, MDCR_EL2, reserving)
    assert PMCR_EL0(pmu.read_at(EL1, PMCR_EL0)).N == 6
    assert pmu.read_at(EL1, PMCNTENSET_EL0) == CYCLES | 0x3F


def test_resets_and_zeroes_reach_as_far_as_their_writer() -> None:
    pmu, _ = partitioned()

    def filled() -> None:
        for counter in range(6):
            pmu.write_at(EL3, PMEVCNTRn_EL0, 7, counter)

    filled()
    pmu.write_at(EL1, PMCR_EL0, P)
    assert counts(pmu) == [0] * 4 + [7] * 2
    pmu.write_at(EL2, PMCR_EL0, P)
    assert counts(pmu) == [0] * 6
    filled()
    pmu.write_at(EL1, PMZR_EL0, ALL_ONES)
    assert counts(pmu) == [0] * 4 + [7] * 2
    pmu.write_at(EL2, PMZR_EL0, ALL_ONES)
    assert counts(pmu) == [0] * 6


def test_each_range_has_its_own_width() -> None:
    pmu, bank = partitioned(HPME=1, HLP=1)
    pmu.write_at(EL1, PMCR_EL0, E)
    for counter in range(6):
        pmu.write_at(EL3, PMEVCNTRn_EL0, 0xFFFF_FFFF, counter)
    bank.fire(Probe.INST_RETIRED)
    assert pmu.read_at(EL3, PMOVSCLR_EL0) == 0b1111
    pmu.write_at(EL3, PMOVSCLR_EL0, ALL_ONES)
    pmu.write_at(EL1, PMCR_EL0, E | LP)
    pmu.write_at(EL2, MDCR_EL2, MDCR_EL2.make(HPMN=4, HPME=1))
    for counter in range(6):
        pmu.write_at(EL3, PMEVCNTRn_EL0, 0xFFFF_FFFF, counter)
    bank.fire(Probe.INST_RETIRED)
    assert pmu.read_at(EL3, PMOVSCLR_EL0) == 0b11_0000


def test_each_range_freezes_by_itself() -> None:
    pmu, bank = partitioned(HPME=1, HPMFZO=1)
    pmu.write_at(EL1, PMCR_EL0, E | FZO | DP)
    pmu.write_at(EL2, PMOVSSET_EL0, 1 << 5)
    bank.fire(Probe.INST_RETIRED, 1)
    pmu.write_at(EL2, PMOVSCLR_EL0, 1 << 5)
    pmu.write_at(EL2, PMOVSSET_EL0, 1 << 0)
    bank.fire(Probe.INST_RETIRED, 10)
    assert counts(pmu) == [1] * 4 + [10] * 2
    assert pmu.read_at(EL3, PMCCNTR_EL0) == 1


def test_no_pair_lies_in_two_ranges() -> None:
    pmu, bank = partitioned(HPME=1)
    pmu.write_at(EL2, MDCR_EL2, MDCR_EL2.make(HPMN=3, HPME=1))
    pmu.write_at(EL1, PMCR_EL0, E)
    for odd in (1, 3, 5):
        pmu.write_at(EL2, PMEVTYPERn_EL0, CHAIN, odd)
        pmu.write_at(EL2, PMEVCNTRn_EL0, 0xFFFF_FFFF, odd - 1)
    bank.fire(Probe.INST_RETIRED)
    assert [counts(pmu)[odd] for odd in (1, 3, 5)] == [1, 0, 1]


def test_the_interrupt_of_a_range_needs_its_enable() -> None:
    pmu, _ = partitioned()
    pmu.write_at(EL2, PMINTENSET_EL1, 0x3F)
    pmu.write_at(EL2, PMOVSSET_EL0, 1 << 4)
    pmu.write_at(EL1, PMCR_EL0, E)
    assert not pmu.interrupt_asserted()
    pmu.write_at(EL2, MDCR_EL2, MDCR_EL2.make(HPMN=4, HPME=1))
    assert pmu.interrupt_asserted()
    pmu.write_at(EL1, PMCR_EL0, 0)
    assert pmu.interrupt_asserted()


# (level, what is written to MDCR_EL2, MDCR_EL3 and PMCR_EL0) -> which of counters 0, 5 (EL2's), cycles count there.
# NSH lets all count at EL2; M and P are equal, so at EL3.
PROHIBITED = [
    (EL2, {}, {"SPME": 1}, 0, (1, 1, 1)),
    (EL2, {"HPMD": 1}, {"SPME": 1}, 0, (0, 1, 1)),
    (EL2, {"HPMD": 1}, {"SPME": 1}, DP, (0, 1, 0)),
    (EL2, {"HCCD": 1}, {"SPME": 1}, 0, (1, 1, 0)),
    (EL3, {}, {"SPME": 1}, 0, (1, 1, 1)),
    (EL3, {}, {}, 0, (0, 0, 1)),
    (EL3, {}, {}, DP, (0, 0, 0)),
    (EL3, {}, {"MPMX": 1}, 0, (0, 0, 1)),
    (EL3, {}, {"MPMX": 1, "SPME": 1}, 0, (0, 1, 1)),
    (EL3, {}, {"MPMX": 1, "SPME": 1}, DP, (0, 1, 0)),
    (EL3, {}, {"SPME": 1, "SCCD": 1}, 0, (1, 1, 0)),
    (EL3, {}, {"SPME": 1, "MCCD": 1}, 0, (1, 1, 0)),
    (EL1, {"HPMD": 1, "HCCD": 1}, {"MPMX": 1, "SCCD": 1, "MCCD": 1}, DP, (1, 1, 1)),
    (EL0, {"HPMD": 1, "HCCD": 1}, {"MPMX": 1, "SCCD": 1, "MCCD": 1}, DP, (1, 1, 1)),
]


@pytest.mark.parametrize(("level", "hypervisor", "monitor", "control", "expected"), PROHIBITED)
def test_where_counting_is_prohibited(
    level: int, hypervisor: dict[str, int], monitor: dict[str, int], control: int, expected: tuple[int, ...]
) -> None:
    pmu, _ = partitioned()
    for counter in (0, 5):
        pmu.write_at(EL3, PMEVTYPERn_EL0, PMEVTYPERn_EL0.make(NSH=1, evtCount=INST_RETIRED), counter)
    pmu.write_at(EL3, PMCCFILTR_EL0, PMCCFILTR_EL0.make(NSH=1))
    pmu.write_at(EL2, MDCR_EL2, MDCR_EL2.make(HPMN=4, **hypervisor))
    pmu.write_at(EL3, MDCR_EL3, MDCR_EL3.make(EnPM2=1, **monitor))
    pmu.write_at(EL1, PMCR_EL0, E | control)
    assert tuple(int(pmu.may_count(counter, [EL0, EL1, EL2, EL3][level])) for counter in (0, 5, 31)) == expected


def test_filters_of_all_levels() -> None:
    """Non-secure: EL0 by U and NSU, EL1 by P and NSK, EL2 by NSH, EL3 by P and M."""
    pmu, _ = partitioned()
    pmu.write_at(EL3, MDCR_EL3, MDCR_EL3.make(EnPM2=1, SPME=1))
    for bits in range(64):
        p, u, nsk, nsu, nsh, m = (bits >> n & 1 for n in range(6))
        value = PMEVTYPERn_EL0.make(P=p, U=u, NSK=nsk, NSU=nsu, NSH=nsh, M=m)
        pmu.write_at(EL3, PMEVTYPERn_EL0, value, 2)
        pmu.write_at(EL3, PMCCFILTR_EL0, value)
        pmu.write_at(EL3, PMICFILTR_EL0, value)
        for counter in (2, 31, 32):
            found = [pmu.may_count(counter, level) for level in (EL0, EL1, EL2, EL3)]
            assert found == [u == nsu, p == nsk, nsh == 1, m == p]


FIELDS = [(0, 0xFF, 0x2_0040), (9, 0xE482_00FF, 0x100C_C082_00C0)]


@pytest.mark.parametrize(("version", "hypervisor", "monitor"), FIELDS)
def test_fields_come_with_their_version(version: int, hypervisor: int, monitor: int) -> None:
    pmu = PrivilegedPmuV3(FakeBank(8), model(f"pmuv3p{version}"))
    for register, expected in ((MDCR_EL2, hypervisor), (MDCR_EL3, monitor)):
        pmu.write_at(EL3, register, ALL_ONES)
        assert pmu.read_at(EL3, register) == expected


# PMECR_EL1.SSE, MDCR_EL2.PMSSE, MDCR_EL3.PMSSE -> whether a capture happens; None: PMSSCR_EL1 ignores writes
@pytest.mark.parametrize(
    ("own", "hypervisor", "monitor", "captured"),
    [
        (0b11, 1, 1, True),
        (0b10, 1, 1, False),
        (0b00, 1, 1, None),
        (0b01, 1, 1, None),
        (0b11, 0b10, 1, False),
        (0b11, 0b00, 1, None),
        (0b00, 0b11, 1, True),
        (0b11, 0b11, 0b00, None),
        (0b00, 0b00, 0b11, True),
        (0b11, 0b11, 0b10, False),
    ],
)
def test_a_capture_needs_who_allows_it(own: int, hypervisor: int, monitor: int, captured: bool | None) -> None:
    pmu, _ = partitioned()
    pmu.write_at(EL3, MDCR_EL2, MDCR_EL2.make(HPMN=4, PMSSE=hypervisor))
    pmu.write_at(EL3, MDCR_EL3, MDCR_EL3.make(EnPM2=1, EnPMSS=1, PMSSE=monitor))
    pmu.write_at(EL1, PMECR_EL1, own << 3)
    pmu.write_at(EL3, PMEVCNTRn_EL0, 0x1_0000_0003, 3)
    pmu.write_at(EL3, PMCCNTR_EL0, 77)
    pmu.write_at(EL3, PMICNTR_EL0, 88)
    assert pmu.read_at(EL1, PMSSCR_EL1) == 1 << 32
    pmu.write_at(EL1, PMSSCR_EL1, 0)  # nothing is asked for
    assert pmu.read_at(EL1, PMSSCR_EL1) == (1 << 32 if captured is None else 0)
    pmu.write_at(EL1, PMSSCR_EL1, 1)
    assert pmu.read_at(EL1, PMSSCR_EL1) == (0 if captured else 1 << 32)
    saved = [
        pmu.read_at(EL1, PMEVCNTSVRn_EL1, 3),
        pmu.read_at(EL1, PMCCNTSVR_EL1),
        pmu.read_at(EL1, PMICNTSVR_EL1),
    ]
    assert saved == ([0x1_0000_0003, 77, 88] if captured else [0, 0, 0])
    pmu.write_at(EL3, PMCCNTR_EL0, 5)
    assert pmu.read_at(EL1, PMCCNTSVR_EL1) == saved[1]


def test_el0_of_a_guest_reaches_what_both_let_it() -> None:
    pmu, _ = partitioned()
    pmu.write_at(EL1, PMUSERENR_EL0, 1)  # EN
    assert pmu.read_at(EL0, PMCNTENSET_EL0) == CYCLES | 0xF
    assert PMCR_EL0(pmu.read_at(EL0, PMCR_EL0)).N == 4
    pmu.write_at(EL0, PMCNTENCLR_EL0, ALL_ONES)
    assert pmu.read_at(EL2, PMCNTENSET_EL0) == 0b11_0000
    with pytest.raises(Trap) as raised:
        pmu.read_at(EL0, PMEVCNTRn_EL0, 5)
    assert raised.value.level == EL2
