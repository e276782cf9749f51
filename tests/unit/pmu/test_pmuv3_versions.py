"""What the versions of PMUv3 have: wide counters, freezing, the instruction counter, registers that come with them.

Expectations: Arm ARM DDI 0487, pseudocode of "AArch64.IncrementEventCounter", "CountPMUEvents", and the registers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from pmu.arm.pmuv3 import ID_AA64DFR0_EL1, ID_AA64DFR1_EL1, PmuV3
from pmu.arm.registers import (
    PMCCNTR_EL0,
    PMCEID0_EL0,
    PMCEID1_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMICFILTR_EL0,
    PMICNTR_EL0,
    PMINTENSET_EL1,
    PMMIR_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSELR_EL0,
    PMSWINC_EL0,
    PMUACR_EL1,
    PMUSERENR_EL0,
    PMXEVCNTR_EL0,
    PMZR_EL0,
    ArmRegister,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.model import model
from unit.pmu.conftest import NewBank
from unit.pmu.fake_bank import FakeBank

VERSIONS = {0: 1, 1: 4, 4: 5, 5: 6, 7: 7, 8: 8, 9: 9}  # PMUv3pN -> PMUVer
INST_RETIRED, SW_INCR, CHAIN = 0x08, 0x00, 0x1E
E, P, C, DP, LP, FZO = 1, 1 << 1, 1 << 2, 1 << 5, 1 << 7, 1 << 9
CYCLES, INSTRUCTIONS = 1 << 31, 1 << 32
ALL_ONES = (1 << 64) - 1

Fire = Callable[..., None]


def new_pmu(new_bank: NewBank, version: int, counters: int = 6) -> tuple[PmuV3, Fire]:
    kind = model(f"pmuv3p{version}")
    bank, fire = new_bank(kind.bank_size(counters))
    return PmuV3(bank, kind, counters), fire


def fake(version: int) -> PmuV3:
    return PmuV3(FakeBank(8), model(f"pmuv3p{version}"))


def count_with(pmu: PmuV3, counter: int, event: int = INST_RETIRED) -> None:
    pmu.write(PMEVTYPERn_EL0, event, counter)
    pmu.write(PMCNTENSET_EL0, 1 << counter)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_says_what_it_is(version: int) -> None:
    pmu = fake(version)
    assert pmu.identification[ID_AA64DFR0_EL1] == VERSIONS[version] << 8 | (1 << 16 if version == 9 else 0)  # PMSS
    assert pmu.identification[ID_AA64DFR1_EL1] == (1 << 36 if version == 9 else 0)  # PMICNTR
    assert PMCR_EL0(pmu.read(PMCR_EL0)).IMP == (0x41 if version < 7 else 0)
    low, high = pmu.model.events.pmceid()
    seen = pmu.read(PMCEID0_EL0), pmu.read(PMCEID1_EL0)
    assert seen == ((low, high) if version else (low & 0xFFFF_FFFF, high & 0xFFFF_FFFF))


COMES_WITH: dict[type[ArmRegister], int] = {
    PMMIR_EL1: 4,
    PMUACR_EL1: 9,
    PMZR_EL0: 9,
    PMICNTR_EL0: 9,
    PMICFILTR_EL0: 9,
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("register", COMES_WITH)
def test_a_register_is_there_from_its_version_on(register: type[ArmRegister], version: int) -> None:
    assert (register in fake(version).registers()) == (version >= COMES_WITH[register])


@pytest.mark.parametrize("version", VERSIONS)
def test_bits_of_later_versions_stay_zero(version: int) -> None:
    pmu = fake(version)
    pmu.write(PMCR_EL0, ALL_ONES)
    expected = E | 1 << 4 | DP | 1 << 6 | 6 << 11  # X; LC; N
    expected |= (LP if version >= 5 else 0) | (FZO if version >= 7 else 0) | (0x41 << 24 if version < 7 else 0)
    assert pmu.read(PMCR_EL0) == expected
    pmu.write(PMUSERENR_EL0, ALL_ONES)
    assert pmu.read(PMUSERENR_EL0) == (0x7F if version >= 9 else 0xF)
    pmu.write(PMEVTYPERn_EL0, ALL_ONES, 0)
    condition = 0xE000_0FFF_0000_0000 if version >= 8 else 0  # TC, TH
    condition |= 1 << 60 if version >= 9 else 0  # TE
    expected = condition | (0xFC00_FFFF if version else 0xFC00_03FF)  # P U NSK NSU NSH M; evtCount
    assert pmu.read(PMEVTYPERn_EL0, 0) == expected
    pmu.write(PMCNTENSET_EL0, ALL_ONES)
    assert pmu.read(PMCNTENSET_EL0) == CYCLES | 0x3F | (INSTRUCTIONS if version >= 9 else 0)
    pmu.write(PMEVCNTRn_EL0, ALL_ONES, 1)
    assert pmu.read(PMEVCNTRn_EL0, 1) == (ALL_ONES if version >= 5 else 0xFFFF_FFFF)


# (LP, start) -> overflows after two more; the counter counts on to 64 bits in any case
@pytest.mark.parametrize(
    ("long", "start", "overflows"),
    [
        (0, 0xFFFF_FFFF, True),
        (0, 0x7_FFFF_FFFF, True),
        (0, 0xFFFF_FFFD, False),
        (0, ALL_ONES, True),
        (LP, 0xFFFF_FFFF, False),
        (LP, ALL_ONES, True),
        (LP, ALL_ONES - 2, False),
    ],
)
def test_a_wide_counter_overflows_at_bit_31_or_63(new_bank: NewBank, long: int, start: int, overflows: bool) -> None:
    pmu, fire = new_pmu(new_bank, 5)
    count_with(pmu, 3)
    pmu.write(PMEVCNTRn_EL0, start, 3)
    pmu.write(PMCR_EL0, E | long)
    pmu.write(PMSELR_EL0, 3)
    fire(Probe.INST_RETIRED, 2)
    assert pmu.read(PMEVCNTRn_EL0, 3) == pmu.read(PMXEVCNTR_EL0) == (start + 2) % (1 << 64)
    assert pmu.read(PMOVSCLR_EL0) == (1 << 3 if overflows else 0)
    pmu.write(PMCR_EL0, E | P | long)  # all 64 bits, and no flag
    assert pmu.read(PMEVCNTRn_EL0, 3) == 0
    assert pmu.read(PMOVSCLR_EL0) == (1 << 3 if overflows else 0)


def test_the_bit_may_change_while_it_counts(new_bank: NewBank) -> None:
    pmu, fire = new_pmu(new_bank, 5)
    count_with(pmu, 0)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFE, 0)
    pmu.write(PMCR_EL0, E | LP)
    fire(Probe.INST_RETIRED, 3)
    pmu.write(PMCR_EL0, E)
    assert (pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMOVSSET_EL0)) == (0x1_0000_0001, 0)
    pmu.write(PMEVCNTRn_EL0, 0x1_FFFF_FFFF, 0)
    fire(Probe.INST_RETIRED)
    assert (pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMOVSSET_EL0)) == (0x2_0000_0000, 1)


def test_the_interrupt_comes_at_the_bit_that_is_chosen(new_bank: NewBank) -> None:
    pmu, fire = new_pmu(new_bank, 5)
    count_with(pmu, 0)
    pmu.write(PMINTENSET_EL1, 1)
    pmu.write(PMCR_EL0, E)
    pmu.write(PMEVCNTRn_EL0, 0x5_FFFF_FFFE, 0)
    fire(Probe.INST_RETIRED)
    assert not pmu.interrupt_asserted()
    fire(Probe.INST_RETIRED)
    assert pmu.interrupt_asserted()


@pytest.mark.parametrize("long", [0, LP])
def test_chain_counts_overflows_at_bit_31_alone(new_bank: NewBank, long: int) -> None:
    pmu, fire = new_pmu(new_bank, 5)
    count_with(pmu, 2)
    count_with(pmu, 3, CHAIN)
    pmu.write(PMCR_EL0, E | long)
    pmu.write(PMEVCNTRn_EL0, ALL_ONES, 2)  # overflows, whatever LP is
    pmu.write(PMEVCNTRn_EL0, 0x1_FFFF_FFFF, 3)
    fire(Probe.INST_RETIRED)
    assert pmu.read(PMEVCNTRn_EL0, 2) == 0
    assert pmu.read(PMEVCNTRn_EL0, 3) == (0x1_FFFF_FFFF if long else 0x2_0000_0000)
    assert pmu.read(PMOVSCLR_EL0) == (0b0100 if long else 0b1100)


def test_a_running_counter_is_promoted_to_a_pair(new_bank: NewBank) -> None:
    """The odd one is added while the even one counts: nothing is lost, and nothing counted twice."""
    pmu, fire = new_pmu(new_bank, 1)
    count_with(pmu, 0)
    pmu.write(PMCR_EL0, E)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFF0, 0)
    fire(Probe.INST_RETIRED, 8)
    count_with(pmu, 1, CHAIN)
    fire(Probe.INST_RETIRED, 10)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in (0, 1)] == [2, 1]
    pmu.write(PMCNTENCLR_EL0, 0b10)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
    fire(Probe.INST_RETIRED, 1)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in (0, 1)] == [0, 1]


def test_wide_pairs_agree_with_two_numbers(new_bank: NewBank) -> None:
    """Random writes, steps, switches and widths against the definition, computed here."""
    pmu, fire = new_pmu(new_bank, 5)
    rng = random.Random(18)
    pmu.write(PMEVTYPERn_EL0, INST_RETIRED, 4)
    pmu.write(PMEVTYPERn_EL0, CHAIN, 5)
    pmu.write(PMCR_EL0, E)
    even = odd = enabled = long = flags = 0
    for _ in range(2_000):
        match rng.randrange(7):
            case 0:
                even = rng.choice([0, 0xFFFF_FFFF, 0x1_FFFF_FFF0, ALL_ONES, ALL_ONES - 7])
                pmu.write(PMEVCNTRn_EL0, even, 4)
            case 1:
                odd = rng.choice([0, 5, 0xFFFF_FFFF, ALL_ONES])
                pmu.write(PMEVCNTRn_EL0, odd, 5)
            case 2:
                enabled = rng.randrange(4)
                pmu.write(PMCNTENCLR_EL0, 0b11 << 4)
                pmu.write(PMCNTENSET_EL0, enabled << 4)
            case 3:
                long = rng.choice([0, LP])
                pmu.write(PMCR_EL0, E | long)
            case 4:
                flags = 0
                pmu.write(PMOVSCLR_EL0, ALL_ONES)
            case _:
                amount = rng.randrange(40)
                fire(Probe.INST_RETIRED, amount)
                if enabled & 1:
                    bits = 64 if long else 32
                    wraps = even % (1 << bits) + amount >> bits
                    even = (even + amount) % (1 << 64)
                    flags |= 1 << 4 if wraps else 0
                    if enabled & 2 and wraps and not long:
                        flags |= 1 << 5 if odd % (1 << 32) + wraps >> 32 else 0
                        odd = (odd + wraps) % (1 << 64)
        assert (pmu.read(PMEVCNTRn_EL0, 4), pmu.read(PMEVCNTRn_EL0, 5)) == (even, odd)
        assert pmu.read(PMOVSSET_EL0) == flags


@pytest.mark.parametrize("with_cycles", [0, DP])
def test_an_overflow_freezes(new_bank: NewBank, with_cycles: int) -> None:
    pmu, fire = new_pmu(new_bank, 7)
    for counter in (0, 1):
        count_with(pmu, counter)
    pmu.write(PMCNTENSET_EL0, CYCLES)
    pmu.write(PMCR_EL0, E | FZO | with_cycles)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 1)
    fire(Probe.INST_RETIRED, 1)
    assert not pmu.interrupt_asserted()  # as the core asks where it stops; none is enabled
    fire(Probe.INST_RETIRED, 10)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in (0, 1)] == [1, 0x1_0000_0000]
    assert pmu.read(PMCCNTR_EL0) == (1 if with_cycles else 11)
    pmu.write(PMOVSCLR_EL0, 0b10)
    fire(Probe.INST_RETIRED, 5)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in (0, 1)] == [6, 0x1_0000_0005]


def test_what_freezes_is_the_flag(new_bank: NewBank) -> None:
    """Software's own flag does, the cycle counter's does not; without FZO nothing does."""
    pmu, fire = new_pmu(new_bank, 7)
    count_with(pmu, 0)
    pmu.write(PMCR_EL0, E | FZO)
    pmu.write(PMOVSSET_EL0, CYCLES)
    fire(Probe.INST_RETIRED)
    pmu.write(PMOVSSET_EL0, 1 << 5)
    fire(Probe.INST_RETIRED, 10)
    assert pmu.read(PMEVCNTRn_EL0, 0) == 1
    pmu.write(PMCR_EL0, E)
    fire(Probe.INST_RETIRED, 100)
    pmu.write(PMCR_EL0, E | FZO)
    fire(Probe.INST_RETIRED, 1000)
    assert pmu.read(PMEVCNTRn_EL0, 0) == 101


def test_a_frozen_counter_takes_no_software_increment() -> None:
    pmu = fake(7)
    count_with(pmu, 0, SW_INCR)
    pmu.write(PMCR_EL0, E | FZO)
    pmu.write(PMSWINC_EL0, 1)
    pmu.write(PMOVSSET_EL0, 1 << 1)
    pmu.write(PMSWINC_EL0, 1)
    assert pmu.read(PMEVCNTRn_EL0, 0) == 1


def test_only_a_freezing_overflow_stops_the_core_without_an_interrupt() -> None:
    bank = FakeBank(8)
    pmu = PmuV3(bank, model("pmuv3p7"))
    count_with(pmu, 0)
    for control, stops in ((E, 0), (E | FZO, 1)):
        pmu.write(PMCR_EL0, control)
        pmu.write(PMOVSCLR_EL0, 1)
        pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
        bank.fire(Probe.INST_RETIRED)
        assert bank.stops == stops


def test_the_instruction_counter(new_bank: NewBank) -> None:
    pmu, fire = new_pmu(new_bank, 9)
    assert pmu.read(PMICFILTR_EL0) == INST_RETIRED
    pmu.write(PMICNTR_EL0, ALL_ONES - 1)
    pmu.write(PMCNTENSET_EL0, INSTRUCTIONS)
    pmu.write(PMINTENSET_EL1, INSTRUCTIONS)
    fire(Probe.INST_RETIRED, 7)  # PMCR_EL0.E is 0
    pmu.write(PMCR_EL0, E)  # LP is not for it
    fire(Probe.INST_RETIRED, 1)
    assert (pmu.read(PMICNTR_EL0), pmu.interrupt_asserted()) == (ALL_ONES, False)
    fire(Probe.INST_RETIRED, 3)
    assert (pmu.read(PMICNTR_EL0), pmu.read(PMOVSSET_EL0), pmu.interrupt_asserted()) == (2, INSTRUCTIONS, True)
    pmu.write(PMCR_EL0, E | P | C)  # neither is for it
    assert pmu.read(PMICNTR_EL0) == 2
    pmu.write(PMOVSCLR_EL0, INSTRUCTIONS)
    assert not pmu.interrupt_asserted()
    pmu.write(PMICFILTR_EL0, ALL_ONES)
    assert pmu.read(PMICFILTR_EL0) == 0xFC00_0008  # P U NSK NSU NSH M, and the event
    pmu.write(PMICFILTR_EL0, PMICFILTR_EL0.U.mask)
    fire(Probe.INST_RETIRED, 10)
    fire(Probe.INST_RETIRED, 20, Level.KERNEL)
    assert pmu.read(PMICNTR_EL0) == 22


def test_zeroing_by_a_mask(new_bank: NewBank) -> None:
    pmu, _ = new_pmu(new_bank, 9)
    for counter in range(6):
        pmu.write(PMEVCNTRn_EL0, 0x1_0000_0001 + counter, counter)
    pmu.write(PMCCNTR_EL0, 9)
    pmu.write(PMICNTR_EL0, 8)
    pmu.write(PMOVSSET_EL0, 1)
    pmu.write(PMZR_EL0, CYCLES | 0b101)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in range(4)] == [0, 0x1_0000_0002, 0, 0x1_0000_0004]
    assert (pmu.read(PMCCNTR_EL0), pmu.read(PMICNTR_EL0), pmu.read(PMOVSCLR_EL0)) == (0, 8, 1)
    pmu.write(PMZR_EL0, INSTRUCTIONS)
    assert (pmu.read(PMICNTR_EL0), pmu.read(PMEVCNTRn_EL0, 1)) == (0, 0x1_0000_0002)


def test_slots_are_the_cores() -> None:
    kind = replace(model("pmuv3p4"), slots=8)
    assert PMMIR_EL1(PmuV3(FakeBank(8), kind).read(PMMIR_EL1)) == PMMIR_EL1(8)  # no thresholds, no edges
    kind = replace(model("pmuv3p8"), slots=8)
    assert PMMIR_EL1(PmuV3(FakeBank(8), kind).read(PMMIR_EL1)) == PMMIR_EL1(8 | 12 << 20)


def test_what_a_version_cannot_have_is_refused_by_name() -> None:
    options = frozenset({"FEAT_PMUv3_ICNTR"})
    with pytest.raises(ValueError, match="pmuv3p8: PMUv3p8 has no FEAT_PMUv3_ICNTR; PMUv3p9 has"):
        PmuV3(FakeBank(9), replace(model("pmuv3p8"), options=options))
    with pytest.raises(ValueError, match="FEAT_PMUv3_SME: PMUv3 here has the options FEAT_PMUv3_ICNTR"):
        PmuV3(FakeBank(9), replace(model("pmuv3p9"), options=frozenset({"FEAT_PMUv3_SME"})))
    with pytest.raises(ValueError, match="pmuv3p5: event counters of PMUv3p5 have 64 bits"):
        PmuV3(FakeBank(9), replace(model("pmuv3p5"), counter_width_bits=32))
