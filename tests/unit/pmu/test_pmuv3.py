"""PMUv3 as software sees it: enables, selection, filters, overflow and interrupt, chaining, software increments."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from pmu.arm import registers as arm
from pmu.arm.pmuv3 import PmuV3
from pmu.arm.registers import (
    PMCCFILTR_EL0,
    PMCCNTR_EL0,
    PMCEID0_EL0,
    PMCEID1_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMINTENCLR_EL1,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMOVSSET_EL0,
    PMSELR_EL0,
    PMSWINC_EL0,
    PMUSERENR_EL0,
    PMXEVCNTR_EL0,
    PMXEVTYPER_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.model import model
from unit.pmu.conftest import NewBank
from unit.pmu.fake_bank import FakeBank

MODEL = model("armv8_pmuv3")
INST_RETIRED, BR_RETIRED, SW_INCR, CHAIN, CPU_CYCLES, MEM_ACCESS = 0x08, 0x21, 0x00, 0x1E, 0x11, 0x13
E, P, C, LC = PMCR_EL0.E.mask, PMCR_EL0.P.mask, PMCR_EL0.C.mask, PMCR_EL0.LC.mask
CYCLES = 1 << 31
NOT_EL0, NOT_EL1 = PMEVTYPERn_EL0.U.mask, PMEVTYPERn_EL0.P.mask

Fire = Callable[..., None]


def new_pmu(new_bank: NewBank, counters: int = 6) -> tuple[PmuV3, Fire]:
    bank, fire = new_bank(MODEL.bank_size(counters))
    return PmuV3(bank, MODEL, counters), fire


@pytest.fixture
def device(new_bank: NewBank) -> tuple[PmuV3, Fire]:
    return new_pmu(new_bank)


def count_with(pmu: PmuV3, counter: int, event: int) -> None:
    """Counter `counter` counts `event`, in user mode."""
    pmu.write(PMEVTYPERn_EL0, event, counter)
    pmu.write(PMCNTENSET_EL0, 1 << counter)
    pmu.write(PMCR_EL0, E)


def test_identification(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    value = PMCR_EL0(pmu.read(PMCR_EL0))
    assert (value.N, value.LC, value.E, value.IMP) == (6, 1, 0, 0x41)
    pmu.write(PMCR_EL0, 0xFFFF_FFFF)  # N, IMP, IDCODE, D, LC are read-only; P and C read as zero
    assert str(PMCR_EL0(pmu.read(PMCR_EL0))) == "PMCR_EL0{E=1 X=1 DP=1 LC=1 N=6 IMP=0x41}"
    assert (pmu.read(PMCEID0_EL0), pmu.read(PMCEID1_EL0)) == MODEL.events.pmceid()
    with pytest.raises(ValueError, match="PmuV3 has no register PMCEID0_EL0 to write"):
        pmu.write(PMCEID0_EL0, 0)


def test_a_counter_counts_while_it_and_the_pmu_are_enabled(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    pmu.write(PMEVTYPERn_EL0, INST_RETIRED, 2)
    fire(Probe.INST_RETIRED, 1)  # neither enabled
    pmu.write(PMCNTENSET_EL0, 1 << 2)
    fire(Probe.INST_RETIRED, 10)  # PMCR.E is 0
    pmu.write(PMCR_EL0, E)
    fire(Probe.INST_RETIRED, 100)  # counted
    fire(Probe.BR_RETIRED, 1_000)  # another event
    pmu.write(PMCNTENCLR_EL0, 1 << 2)
    fire(Probe.INST_RETIRED, 10_000)  # disabled
    assert pmu.read(PMEVCNTRn_EL0, 2) == 100
    pmu.write(PMCNTENSET_EL0, 1 << 2)
    fire(Probe.INST_RETIRED, 5)
    pmu.write(PMCR_EL0, 0)
    fire(Probe.INST_RETIRED, 100_000)
    assert pmu.read(PMEVCNTRn_EL0, 2) == 105


def test_an_event_is_the_sum_of_its_probes(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    count_with(pmu, 0, MEM_ACCESS)
    fire(Probe.LOAD, 3)
    fire(Probe.STORE, 4)
    assert pmu.read(PMEVCNTRn_EL0, 0) == 7


def test_an_event_that_the_pmu_lacks_counts_nothing(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    count_with(pmu, 0, 0x0003)  # L1D_CACHE_REFILL
    for probe in Probe:
        fire(probe)
    assert pmu.read(PMEVCNTRn_EL0, 0) == 0
    assert pmu.event_of(0) is None
    assert pmu.read(PMEVTYPERn_EL0, 0) == 0x0003


def test_enable_registers_set_and_clear(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    pmu.write(PMCNTENSET_EL0, CYCLES | 0b000101)
    pmu.write(PMCNTENSET_EL0, 0b010000)
    assert pmu.read(PMCNTENSET_EL0) == pmu.read(PMCNTENCLR_EL0) == CYCLES | 0b010101
    pmu.write(PMCNTENCLR_EL0, 0b000100)
    assert pmu.read(PMCNTENSET_EL0) == CYCLES | 0b010001
    pmu.write(PMINTENSET_EL1, 0b11)
    pmu.write(PMINTENCLR_EL1, 0b01)
    assert pmu.read(PMINTENSET_EL1) == pmu.read(PMINTENCLR_EL1) == 0b10


def test_bits_of_counters_that_do_not_exist_stay_zero(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    for register in (PMCNTENSET_EL0, PMINTENSET_EL1, PMOVSSET_EL0):
        pmu.write(register, 0xFFFF_FFFF)
        assert pmu.read(register) == CYCLES | 0b11_1111


def test_retyping_a_running_counter_keeps_its_value(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    count_with(pmu, 0, INST_RETIRED)
    fire(Probe.INST_RETIRED, 7)
    pmu.write(PMEVTYPERn_EL0, BR_RETIRED, 0)
    fire(Probe.INST_RETIRED, 100)
    fire(Probe.BR_RETIRED, 2)
    assert pmu.read(PMEVCNTRn_EL0, 0) == 9


@pytest.mark.parametrize(
    ("filters", "user", "kernel"),
    [
        (0, True, True),
        (PMEVTYPERn_EL0.P.mask, True, False),
        (PMEVTYPERn_EL0.U.mask, False, True),
        (PMEVTYPERn_EL0.NSU.mask, False, True),  # Non-secure EL0 counts where NSU equals U
        (PMEVTYPERn_EL0.U.mask | PMEVTYPERn_EL0.NSU.mask, True, True),
        (PMEVTYPERn_EL0.NSK.mask, True, False),
        (PMEVTYPERn_EL0.P.mask | PMEVTYPERn_EL0.NSK.mask, True, True),
        (PMEVTYPERn_EL0.NSH.mask | PMEVTYPERn_EL0.M.mask, True, True),
    ],
)
def test_filters(device: tuple[PmuV3, Fire], filters: int, user: bool, kernel: bool) -> None:
    pmu, fire = device
    count_with(pmu, 0, filters | INST_RETIRED)
    count_with(pmu, 1, filters | CPU_CYCLES)
    fire(Probe.INST_RETIRED, 5)  # and a cycle with each
    fire(Probe.CYCLES, 3, Level.KERNEL)  # the modelled Linux works
    assert pmu.read(PMEVCNTRn_EL0, 0) == (5 if user else 0)
    assert pmu.read(PMEVCNTRn_EL0, 1) == (5 if user else 0) + (3 if kernel else 0)
    fire(Probe.INST_RETIRED, 2, Level.KERNEL)  # another kernel executes
    assert pmu.read(PMEVCNTRn_EL0, 0) == (5 if user else 0) + (2 if kernel else 0)
    assert pmu.read(PMEVTYPERn_EL0, 0) == filters | INST_RETIRED


def test_the_cycle_counter_is_64_bits_and_filtered(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    pmu.write(PMCCNTR_EL0, 0xFFFF_FFFF)
    pmu.write(PMCNTENSET_EL0, CYCLES)
    pmu.write(PMCR_EL0, E | LC)
    fire(Probe.CYCLES, 2)
    assert pmu.read(PMCCNTR_EL0) == 0x1_0000_0001
    assert pmu.read(PMOVSCLR_EL0) == 0
    pmu.write(PMCCFILTR_EL0, PMCCFILTR_EL0.U.mask)
    fire(Probe.CYCLES, 2)
    assert pmu.read(PMCCNTR_EL0) == 0x1_0000_0001
    pmu.write(PMCCFILTR_EL0, PMCCFILTR_EL0.P.mask)
    pmu.write(PMCCNTR_EL0, (1 << 64) - 1)
    fire(Probe.CYCLES)
    assert (pmu.read(PMCCNTR_EL0), pmu.read(PMOVSCLR_EL0)) == (0, CYCLES)


def test_resets_leave_the_other_counters_and_the_overflow_bits(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    for counter in range(6):
        pmu.write(PMEVCNTRn_EL0, counter + 1, counter)
    pmu.write(PMCCNTR_EL0, 99)
    pmu.write(PMOVSSET_EL0, CYCLES | 1)
    pmu.write(PMCR_EL0, P)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in range(6)] == [0] * 6
    assert pmu.read(PMCCNTR_EL0) == 99
    pmu.write(PMEVCNTRn_EL0, 5, 0)
    pmu.write(PMCR_EL0, C)
    assert (pmu.read(PMCCNTR_EL0), pmu.read(PMEVCNTRn_EL0, 0)) == (0, 5)
    assert pmu.read(PMOVSSET_EL0) == CYCLES | 1


def test_overflow_sets_its_bit_and_the_interrupt_where_enabled(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    count_with(pmu, 3, INST_RETIRED)
    pmu.write(PMINTENSET_EL1, 1 << 3)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFE, 3)
    fire(Probe.INST_RETIRED)
    assert not pmu.interrupt_asserted()
    fire(Probe.INST_RETIRED)
    assert pmu.read(PMEVCNTRn_EL0, 3) == 0
    assert pmu.read(PMOVSCLR_EL0) == pmu.read(PMOVSSET_EL0) == 1 << 3
    assert pmu.interrupt_asserted()
    pmu.write(PMINTENCLR_EL1, 1 << 3)
    assert not pmu.interrupt_asserted()  # the bit stays, the interrupt is off
    pmu.write(PMINTENSET_EL1, 1 << 3)
    assert pmu.interrupt_asserted()
    pmu.write(PMCR_EL0, 0)
    assert not pmu.interrupt_asserted()  # PMUIRQ needs PMCR.E
    pmu.write(PMCR_EL0, E)
    pmu.write(PMOVSCLR_EL0, 1 << 2)  # another counter's bit
    assert pmu.interrupt_asserted()
    pmu.write(PMOVSCLR_EL0, 1 << 3)
    assert not pmu.interrupt_asserted()
    assert pmu.read(PMOVSCLR_EL0) == 0


def test_the_cycle_counters_overflow_is_bit_31_of_the_registers(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    pmu.write(PMINTENSET_EL1, CYCLES)
    pmu.write(PMCNTENSET_EL0, CYCLES)
    pmu.write(PMCR_EL0, E)
    pmu.write(PMCCNTR_EL0, (1 << 64) - 3)
    fire(Probe.CYCLES, 3)
    assert pmu.interrupt_asserted()
    assert pmu.read(PMOVSSET_EL0) == CYCLES
    pmu.write(PMOVSCLR_EL0, CYCLES)
    assert not pmu.interrupt_asserted()


def test_only_enabled_interrupts_stop_the_core() -> None:
    bank = FakeBank(7)
    pmu = PmuV3(bank, MODEL)
    for counter in (0, 1):
        count_with(pmu, counter, INST_RETIRED)
        pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, counter)
    pmu.write(PMINTENSET_EL1, 0b10)
    bank.fire(Probe.INST_RETIRED)
    assert pmu.read(PMOVSSET_EL0) == 0b11
    assert bank.stops == 1


def test_selected_registers(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    pmu.write(PMSELR_EL0, 4)
    pmu.write(PMXEVTYPER_EL0, NOT_EL1 | INST_RETIRED)
    pmu.write(PMXEVCNTR_EL0, 77)
    assert pmu.read(PMEVTYPERn_EL0, 4) == pmu.read(PMXEVTYPER_EL0) == NOT_EL1 | INST_RETIRED
    assert pmu.read(PMEVCNTRn_EL0, 4) == pmu.read(PMXEVCNTR_EL0) == 77
    pmu.write(PMSELR_EL0, 31)
    pmu.write(PMXEVTYPER_EL0, NOT_EL1)
    assert pmu.read(PMCCFILTR_EL0) == pmu.read(PMXEVTYPER_EL0) == NOT_EL1
    for selected in (31, 6):  # PMXEVCNTR of the cycle counter, and a counter that is not there: zero, and no effect
        pmu.write(PMSELR_EL0, selected)
        pmu.write(PMXEVCNTR_EL0, 5)
        assert pmu.read(PMXEVCNTR_EL0) == 0
    assert pmu.read(PMXEVTYPER_EL0) == 0
    assert pmu.read(PMCCNTR_EL0) == 0
    pmu.write(PMSELR_EL0, 0xFFFF_FFE3)  # only bits 4:0
    assert pmu.read(PMSELR_EL0) == 3


def test_software_increments_count_on_sw_incr_counters_only(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    count_with(pmu, 0, SW_INCR)
    count_with(pmu, 1, INST_RETIRED)
    pmu.write(PMEVTYPERn_EL0, SW_INCR, 2)  # not enabled
    count_with(pmu, 3, NOT_EL1 | SW_INCR)  # the kernel writes, and it is excluded
    pmu.write(PMSWINC_EL0, 0b1111)
    pmu.write(PMSWINC_EL0, 0b0001)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in range(4)] == [2, 0, 0, 0]
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
    pmu.write(PMINTENSET_EL1, 1)
    pmu.write(PMSWINC_EL0, 1)
    assert pmu.interrupt_asserted()
    with pytest.raises(ValueError, match="PmuV3 has no register PMSWINC_EL0 to read"):
        pmu.read(PMSWINC_EL0)


def test_a_chain_counts_the_even_counters_overflows(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    pmu.write(PMEVTYPERn_EL0, INST_RETIRED, 2)
    pmu.write(PMEVTYPERn_EL0, CHAIN, 3)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 2)
    pmu.write(PMEVCNTRn_EL0, 7, 3)
    pmu.write(PMCNTENSET_EL0, 0b1100)
    pmu.write(PMCR_EL0, E)
    fire(Probe.INST_RETIRED, 3)  # 0xffffffff + 3 wraps once, to 2
    assert (pmu.read(PMEVCNTRn_EL0, 2), pmu.read(PMEVCNTRn_EL0, 3)) == (2, 8)
    assert pmu.read(PMOVSCLR_EL0) == 0b0100
    pmu.write(PMOVSCLR_EL0, 0b0100)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 3)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFE, 2)
    fire(Probe.INST_RETIRED, 2)
    assert (pmu.read(PMEVCNTRn_EL0, 2), pmu.read(PMEVCNTRn_EL0, 3)) == (0, 0)
    assert pmu.read(PMOVSCLR_EL0) == 0b1100


def test_a_chain_counts_only_while_both_are_enabled(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    pmu.write(PMEVTYPERn_EL0, INST_RETIRED, 0)
    pmu.write(PMEVTYPERn_EL0, CHAIN, 1)
    pmu.write(PMCR_EL0, E)
    pmu.write(PMCNTENSET_EL0, 0b01)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
    fire(Probe.INST_RETIRED)  # wraps while the odd one is off
    assert (pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMEVCNTRn_EL0, 1)) == (0, 0)
    pmu.write(PMCNTENSET_EL0, 0b10)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
    fire(Probe.INST_RETIRED)
    assert (pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMEVCNTRn_EL0, 1)) == (0, 1)
    pmu.write(PMCNTENCLR_EL0, 0b01)
    fire(Probe.INST_RETIRED, 5)
    assert (pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMEVCNTRn_EL0, 1)) == (0, 1)
    pmu.write(PMEVTYPERn_EL0, BR_RETIRED, 1)  # the pair ends; each keeps its value
    pmu.write(PMCNTENSET_EL0, 0b11)
    fire(Probe.BR_RETIRED, 4)
    assert (pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMEVCNTRn_EL0, 1)) == (0, 5)


def test_a_chain_follows_software_increments(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    count_with(pmu, 0, SW_INCR)
    count_with(pmu, 1, CHAIN)
    pmu.write(PMEVCNTRn_EL0, 0xFFFF_FFFF, 0)
    pmu.write(PMSWINC_EL0, 1)
    assert (pmu.read(PMEVCNTRn_EL0, 0), pmu.read(PMEVCNTRn_EL0, 1)) == (0, 1)


def test_chain_on_an_even_counter_counts_nothing(device: tuple[PmuV3, Fire]) -> None:
    pmu, fire = device
    count_with(pmu, 2, CHAIN)
    for probe in Probe:
        fire(probe)
    assert pmu.read(PMEVCNTRn_EL0, 2) == 0


def test_chained_pairs_agree_with_one_64_bit_number(device: tuple[PmuV3, Fire]) -> None:
    """Random writes, steps and switches against the pair's definition, computed here."""
    pmu, fire = device
    rng = random.Random(20)
    pmu.write(PMEVTYPERn_EL0, INST_RETIRED, 4)
    pmu.write(PMEVTYPERn_EL0, CHAIN, 5)
    pmu.write(PMCR_EL0, E)
    even = odd = 0
    enabled = 0
    for _ in range(2_000):
        match rng.randrange(5):
            case 0:
                even = rng.choice([0, 1, 0xFFFF_FFFF, 0xFFFF_FFF0, 0x8000_0000])
                pmu.write(PMEVCNTRn_EL0, even, 4)
            case 1:
                odd = rng.choice([0, 5, 0xFFFF_FFFF])
                pmu.write(PMEVCNTRn_EL0, odd, 5)
            case 2:
                enabled = rng.randrange(4)
                pmu.write(PMCNTENCLR_EL0, 0b11 << 4)
                pmu.write(PMCNTENSET_EL0, enabled << 4)
            case _:
                amount = rng.randrange(40)
                fire(Probe.INST_RETIRED, amount)
                if enabled & 1:
                    carry, even = divmod(even + amount, 1 << 32)
                    if enabled & 2:
                        odd = (odd + carry) & 0xFFFF_FFFF
        assert (pmu.read(PMEVCNTRn_EL0, 4), pmu.read(PMEVCNTRn_EL0, 5)) == (even, odd)


@pytest.mark.parametrize("counters", [0, 1, 6, 31])
def test_any_number_of_counters(new_bank: NewBank, counters: int) -> None:
    pmu, fire = new_pmu(new_bank, counters)
    assert PMCR_EL0(pmu.read(PMCR_EL0)).N == counters
    for counter in range(counters):
        count_with(pmu, counter, INST_RETIRED)
    pmu.write(PMCNTENSET_EL0, CYCLES)
    pmu.write(PMCR_EL0, E)
    fire(Probe.INST_RETIRED, 9)
    fire(Probe.CYCLES, 11)
    assert [pmu.read(PMEVCNTRn_EL0, n) for n in range(counters)] == [20] * counters
    assert pmu.read(PMCCNTR_EL0) == 20
    with pytest.raises(ValueError, match=f"PMEVCNTR{counters}_EL0: this PMU has {counters} event counters"):
        pmu.read(PMEVCNTRn_EL0, counters)
    with pytest.raises(ValueError, match="PMEVCNTR-1_EL0"):
        pmu.write(PMEVCNTRn_EL0, 0, -1)


def test_what_cannot_be_made_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="armv8_pmuv3: 32 event counters; PMUv3 has 0 to 31"):
        PmuV3(FakeBank(40), MODEL, 32)
    with pytest.raises(ValueError, match="6 event counters need a bank of 7, not 6"):
        PmuV3(FakeBank(6), MODEL)


def test_registers_of_others_are_refused_by_name(device: tuple[PmuV3, Fire]) -> None:
    pmu, _ = device
    with pytest.raises(ValueError, match="PmuV3 has no register ArmRegister to read"):
        pmu.read(arm.ArmRegister)
    assert PMUSERENR_EL0 in pmu.registers()
