"""Architectural perfmon as software sees it: selects, fixed counters, widths, status, interrupt, freezing, RDPMC."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from emulator.sysregs import SystemRegisters, UndefinedRegister
from pmu.intel.perfmon import RDPMC_FIXED, Perfmon
from pmu.intel.registers import (
    IA32_DEBUGCTL,
    IA32_FIXED_CTR_CTRL,
    IA32_PERF_CAPABILITIES,
    IA32_PERF_GLOBAL_CTRL,
    IA32_PERF_GLOBAL_INUSE,
    IA32_PERF_GLOBAL_STATUS,
    IA32_PERF_GLOBAL_STATUS_RESET,
    IA32_PERF_GLOBAL_STATUS_SET,
    IA32_X2APIC_LVT_PMI,
    IA32_A_PMCx,
    IA32_FIXED_CTRx,
    IA32_PERFEVTSELx,
    IA32_PMCx,
)
from pmu.model import model
from pmu.register import Register
from unit.pmu.conftest import NewBank
from unit.pmu.fake_bank import FakeBank

MODEL = model("intel_arch_perfmon")
USR, OS, INT, EN = (IA32_PERFEVTSELx.make(**{name: 1}) for name in ("USR", "OS", "INT", "EN"))
INSTRUCTIONS = 0x00C0 | USR | EN
FIXED = 1 << 32  # counter 0's bit in the global registers
LIMIT = 1 << 48

Fire = Callable[..., None]


def new_pmu(new_bank: NewBank, counters: int = 4) -> tuple[Perfmon, Fire]:
    bank, fire = new_bank(MODEL.bank_size(counters))
    return Perfmon(bank, MODEL, counters), fire


@pytest.fixture
def device(new_bank: NewBank) -> tuple[Perfmon, Fire]:
    return new_pmu(new_bank)


def test_a_counter_needs_its_own_enable_and_the_global_one(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    pmu.write(IA32_PERF_GLOBAL_CTRL, 0)
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS & ~EN, 1)
    fire(Probe.INST_RETIRED)
    pmu.write(IA32_PERF_GLOBAL_CTRL, 0b10)
    fire(Probe.INST_RETIRED, 10)
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS, 1)
    fire(Probe.INST_RETIRED, 100)  # counted
    pmu.write(IA32_PERF_GLOBAL_CTRL, 0b01)
    fire(Probe.INST_RETIRED, 1_000)
    assert pmu.read(IA32_PMCx, 1) == 100
    assert pmu.read(IA32_PMCx, 0) == 0


def test_general_purpose_counters_are_globally_enabled_at_power_up(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    assert pmu.read(IA32_PERF_GLOBAL_CTRL) == 0b1111
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS, 0)
    fire(Probe.INST_RETIRED, 3)
    assert pmu.read(IA32_PMCx, 0) == 3


@pytest.mark.parametrize(
    ("select", "counted"),
    [
        (0x00C0 | USR | EN, 5),
        (0x00C0 | USR | OS | EN, 5),
        (0x00C0 | OS | EN, 0),  # it executes in user mode
        (0x00C0 | USR, 0),
        (0x00C0 | USR | EN | IA32_PERFEVTSELx.ANY.mask | IA32_PERFEVTSELx.PC.mask, 5),
        (0x00C0 | USR | EN | IA32_PERFEVTSELx.make(CMASK=1), 0),  # of a core that may retire several in a cycle
        (0x003C | USR | EN | IA32_PERFEVTSELx.make(CMASK=1), 5),  # cycles with at least one
        (0x003C | USR | EN | IA32_PERFEVTSELx.make(CMASK=2), 0),  # ... two
        (0x003C | USR | EN | IA32_PERFEVTSELx.make(CMASK=2, INV=1), 5),  # fewer than two
        (0x003C | USR | EN | IA32_PERFEVTSELx.make(CMASK=1, INV=1), 0),  # none
        (0x00C0 | USR | EN | IA32_PERFEVTSELx.INV.mask, 5),  # ignored without CMASK
        (0x00C0 | USR | EN | IA32_PERFEVTSELx.E.mask, 0),
        (0x4F2E | USR | EN, 0),  # last-level cache references: this PMU lacks them
        (0x0100 | USR | EN, 0),  # INST_RETIRED.ANY is the fixed counter's
    ],
)
def test_select(device: tuple[Perfmon, Fire], select: int, counted: int) -> None:
    pmu, fire = device
    pmu.write(IA32_PERFEVTSELx, select, 2)
    fire(Probe.INST_RETIRED, 5)
    assert pmu.read(IA32_PMCx, 2) == counted
    assert pmu.read(IA32_PERFEVTSELx, 2) == select


def test_a_guest_that_asks_for_what_cannot_be_counted_is_told_of(device: tuple[Perfmon, Fire]) -> None:
    pmu, _ = device
    told: list[str] = []
    pmu.tell = told.append
    threshold = IA32_PERFEVTSELx.make(CMASK=2)
    pmu.write(IA32_PERFEVTSELx, 0x00C0 | USR | threshold, 1)  # not enabled
    pmu.write(IA32_PERFEVTSELx, 0x01FF | USR | EN, 1)  # in no list: 0 on hardware, too
    pmu.write(IA32_PERFEVTSELx, 0x003C | USR | EN | threshold, 1)  # known: never
    assert told == []
    pmu.write(IA32_PERFEVTSELx, 0x00C0 | USR | EN | threshold, 1)
    pmu.write(IA32_PERFEVTSELx, 0x01B7 | USR | EN, 2)
    assert told == [
        "IA32_PERFEVTSEL1 is 0x24100c0: INST_RETIRED.ANY_P as 0x20000c0 cannot be counted here, and reads as 0",
        "IA32_PERFEVTSEL2 is 0x4101b7: OFFCORE_RESPONSE cannot be counted here, and reads as 0",
    ]


def test_reselecting_a_running_counter_keeps_its_value(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS, 0)
    fire(Probe.INST_RETIRED, 7)
    pmu.write(IA32_PERFEVTSELx, 0x81D0 | USR | EN, 0)
    fire(Probe.INST_RETIRED, 100)
    fire(Probe.LOAD, 2)
    assert pmu.read(IA32_PMCx, 0) == 9
    event = pmu.event_of(0)
    assert event is not None
    assert event.name == "MEM_INST_RETIRED.ALL_LOADS"


def test_fixed_counters(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    pmu.write(IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR_CTRL.make(EN0_USR=1, EN1_OS=1, EN2_USR=1, EN2_OS=1))
    fire(Probe.INST_RETIRED, 1)  # not enabled globally
    pmu.write(IA32_PERF_GLOBAL_CTRL, 0b111 * FIXED)
    fire(Probe.INST_RETIRED, 50)  # and as many cycles
    assert [pmu.read(IA32_FIXED_CTRx, n) for n in range(3)] == [50, 0, 50]  # 1 counts at privilege 0 only
    fire(Probe.CYCLES, 7, Level.KERNEL)
    assert [pmu.read(IA32_FIXED_CTRx, n) for n in range(3)] == [50, 7, 57]
    pmu.write(IA32_FIXED_CTR_CTRL, 0)
    fire(Probe.INST_RETIRED, 1)
    assert pmu.read(IA32_FIXED_CTRx, 0) == 50
    pmu.write(IA32_FIXED_CTRx, LIMIT - 1, 1)
    assert pmu.read(IA32_FIXED_CTRx, 1) == LIMIT - 1


def test_a_write_to_pmc_takes_32_bits_and_extends_the_sign(device: tuple[Perfmon, Fire]) -> None:
    pmu, _ = device
    for written, read in [
        (0x7FFF_FFFF, 0x7FFF_FFFF),
        (0x8000_0000, 0xFFFF_8000_0000),
        (0x1234_0000_0001, 1),
        ((1 << 64) - 100, LIMIT - 100),
    ]:
        pmu.write(IA32_PMCx, written, 3)
        assert pmu.read(IA32_PMCx, 3) == pmu.read(IA32_A_PMCx, 3) == read


def test_a_write_to_a_pmc_takes_the_full_width(device: tuple[Perfmon, Fire]) -> None:
    pmu, _ = device
    assert IA32_PERF_CAPABILITIES(pmu.read(IA32_PERF_CAPABILITIES)).FW_WRITE
    pmu.write(IA32_A_PMCx, 0x1234_0000_0001, 3)
    assert pmu.read(IA32_PMCx, 3) == 0x1234_0000_0001
    with pytest.raises(ValueError, match="IA32_A_PMC3: 0x1000000000000 does not fit in 48 bits"):
        pmu.write(IA32_A_PMCx, LIMIT, 3)
    with pytest.raises(ValueError, match="IA32_FIXED_CTR0: 0x1000000000000 does not fit in 48 bits"):
        pmu.write(IA32_FIXED_CTRx, LIMIT, 0)


def test_overflow_status_is_set_with_and_without_the_interrupt(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS, 0)
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS | INT, 1)
    pmu.write(IA32_A_PMCx, LIMIT - 1, 0)
    pmu.write(IA32_A_PMCx, LIMIT - 2, 1)
    fire(Probe.INST_RETIRED)
    assert (pmu.read(IA32_PERF_GLOBAL_STATUS), pmu.interrupt_asserted()) == (0b01, False)
    fire(Probe.INST_RETIRED)
    assert (pmu.read(IA32_PERF_GLOBAL_STATUS), pmu.interrupt_asserted()) == (0b11, True)
    assert [pmu.read(IA32_PMCx, n) for n in (0, 1)] == [1, 0]
    pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, 0b01)
    assert (pmu.read(IA32_PERF_GLOBAL_STATUS), pmu.interrupt_asserted()) == (0b10, True)
    pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, 0b10)
    assert (pmu.read(IA32_PERF_GLOBAL_STATUS), pmu.interrupt_asserted()) == (0, False)


def test_fixed_counters_overflow_into_bits_32_and_up(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    pmu.write(IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR_CTRL.make(EN0_USR=1, EN1_USR=1, PMI1=1))
    pmu.write(IA32_PERF_GLOBAL_CTRL, 0b11 * FIXED)
    pmu.write(IA32_FIXED_CTRx, LIMIT - 2, 0)
    pmu.write(IA32_FIXED_CTRx, LIMIT - 3, 1)
    fire(Probe.INST_RETIRED, 2)
    assert (pmu.read(IA32_PERF_GLOBAL_STATUS), pmu.interrupt_asserted()) == (FIXED, False)
    fire(Probe.INST_RETIRED)
    assert (pmu.read(IA32_PERF_GLOBAL_STATUS), pmu.interrupt_asserted()) == (0b11 * FIXED, True)
    pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, 0b10 * FIXED)
    assert (pmu.read(IA32_PERF_GLOBAL_STATUS), pmu.interrupt_asserted()) == (FIXED, False)


def test_only_interrupting_counters_stop_the_core() -> None:
    bank = FakeBank(7)
    pmu = Perfmon(bank, MODEL)
    for counter, extra in enumerate((0, INT, INT)):
        pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS | extra, counter)
        pmu.write(IA32_PMCx, -1, counter)
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS, 2)  # INT again off
    bank.fire(Probe.INST_RETIRED)
    assert pmu.read(IA32_PERF_GLOBAL_STATUS) == 0b111
    assert bank.stops == 1


def test_status_is_read_only_and_its_commands_read_as_zero(device: tuple[Perfmon, Fire]) -> None:
    pmu, _ = device
    with pytest.raises(ValueError, match="Perfmon has no register IA32_PERF_GLOBAL_STATUS to write"):
        pmu.write(IA32_PERF_GLOBAL_STATUS, 0)
    pmu.write(IA32_PERF_GLOBAL_STATUS_SET, 0b101 | 0b10 * FIXED)
    assert pmu.read(IA32_PERF_GLOBAL_STATUS) == 0b101 | 0b10 * FIXED
    assert pmu.read(IA32_PERF_GLOBAL_STATUS_SET) == pmu.read(IA32_PERF_GLOBAL_STATUS_RESET) == 0
    pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, pmu.read(IA32_PERF_GLOBAL_STATUS) | 1 << 63)
    assert pmu.read(IA32_PERF_GLOBAL_STATUS) == 0


def test_taking_the_interrupt_masks_it_until_software_unmasks(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    pmu.write(IA32_X2APIC_LVT_PMI, IA32_X2APIC_LVT_PMI.make(DELIVERY_MODE=4))
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS | INT, 0)
    pmu.write(IA32_PMCx, -1, 0)
    fire(Probe.INST_RETIRED)
    assert pmu.interrupt_asserted()
    pmu.take_interrupt()
    assert not pmu.interrupt_asserted()
    assert str(IA32_X2APIC_LVT_PMI(pmu.read(IA32_X2APIC_LVT_PMI))) == "IA32_X2APIC_LVT_PMI{DELIVERY_MODE=4 MASK=1}"
    pmu.write(IA32_X2APIC_LVT_PMI, IA32_X2APIC_LVT_PMI.make(DELIVERY_MODE=4))
    assert pmu.interrupt_asserted()  # still not acknowledged
    fire(Probe.INST_RETIRED, 5)
    assert pmu.read(IA32_PMCx, 0) == 5  # without FREEZE_PERFMON_ON_PMI it counts on


def test_freezing_stops_all_counters_until_the_status_is_reset(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    pmu.write(IA32_DEBUGCTL, IA32_DEBUGCTL.make(FREEZE_PERFMON_ON_PMI=1))
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS | INT, 0)
    pmu.write(IA32_PMCx, -1, 0)
    fire(Probe.INST_RETIRED)
    pmu.take_interrupt()
    frozen = IA32_PERF_GLOBAL_STATUS.CTR_FRZ.mask
    assert pmu.read(IA32_PERF_GLOBAL_STATUS) == frozen | 1
    fire(Probe.INST_RETIRED, 100)
    assert pmu.read(IA32_PMCx, 0) == 0
    pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, frozen | 1)
    fire(Probe.INST_RETIRED, 3)
    assert pmu.read(IA32_PMCx, 0) == 3


@pytest.mark.parametrize(
    ("register", "value", "index"),
    [
        (IA32_PERF_GLOBAL_CTRL, 0b1_0000, 0),  # counter 4, of 0..3
        (IA32_PERF_GLOBAL_CTRL, 0b1000 * FIXED, 0),
        (IA32_FIXED_CTR_CTRL, 1 << 12, 0),
        (IA32_PERFEVTSELx, 1 << 32, 0),
        (IA32_DEBUGCTL, 1, 0),  # LBR: not modelled
        (IA32_PMCx, 0, 4),
        (IA32_PMCx, 0, -1),
        (IA32_FIXED_CTRx, 0, 3),
    ],
)
def test_what_hardware_faults_on_is_an_error_that_names_the_register(
    device: tuple[Perfmon, Fire], register: type[Register], value: int, index: int
) -> None:
    pmu, _ = device
    with pytest.raises(ValueError, match=register.__name__.rstrip("x")):
        pmu.write(register, value, index)


def test_in_use(device: tuple[Perfmon, Fire]) -> None:
    pmu, _ = device
    assert pmu.read(IA32_PERF_GLOBAL_INUSE) == 0
    pmu.write(IA32_PERFEVTSELx, 0x00C0, 2)
    pmu.write(IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR_CTRL.make(EN1_USR=1))
    assert str(IA32_PERF_GLOBAL_INUSE(pmu.read(IA32_PERF_GLOBAL_INUSE))) == "IA32_PERF_GLOBAL_INUSE{PMC=0x4 FIXED=2}"
    pmu.write(IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR_CTRL.make(EN1_USR=1, PMI1=1))
    assert IA32_PERF_GLOBAL_INUSE(pmu.read(IA32_PERF_GLOBAL_INUSE)).PMI == 1


def test_rdpmc(device: tuple[Perfmon, Fire]) -> None:
    pmu, fire = device
    system_registers = SystemRegisters()
    pmu.grant_user_access(system_registers)
    pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS, 1)
    pmu.write(IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR_CTRL.make(EN1_USR=1))
    pmu.write(IA32_PERF_GLOBAL_CTRL, 0b10 * FIXED | 0b10)
    pmu.write(IA32_A_PMCx, 1 << 40, 1)
    fire(Probe.INST_RETIRED, 12)
    with pytest.raises(UndefinedRegister, match=r"CR4\.PCE is 0"):
        system_registers.rdpmc(1)
    pmu.user_rdpmc = True
    assert system_registers.rdpmc(1) == (1 << 40) + 12
    assert system_registers.rdpmc(0) == 0
    assert system_registers.rdpmc(RDPMC_FIXED | 1) == 12
    # a counter that is not there, fixed and not; the metrics (bit 29); the obsolete fast read (bit 31); both
    for ecx in (4, RDPMC_FIXED | 3, 1 << 29, 1 << 31, 1 << 31 | RDPMC_FIXED):
        with pytest.raises(UndefinedRegister, match=f"ECX={ecx:#x}"):
            system_registers.rdpmc(ecx)


@pytest.mark.parametrize("counters", [0, 1, 8, 32])
def test_any_number_of_counters(new_bank: NewBank, counters: int) -> None:
    pmu, fire = new_pmu(new_bank, counters)
    for counter in range(counters):
        pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS | INT, counter)
        pmu.write(IA32_PMCx, -10, counter)
    pmu.write(IA32_FIXED_CTR_CTRL, 0x222)
    every = (1 << counters) - 1 | 0b111 * FIXED
    pmu.write(IA32_PERF_GLOBAL_CTRL, every)
    fire(Probe.INST_RETIRED, 9)
    assert pmu.read(IA32_PERF_GLOBAL_STATUS) == 0
    fire(Probe.INST_RETIRED, 1)
    assert pmu.read(IA32_PERF_GLOBAL_STATUS) == every & 0xFFFF_FFFF
    assert pmu.interrupt_asserted() == (counters > 0)
    assert [pmu.read(IA32_FIXED_CTRx, n) for n in range(3)] == [10, 10, 10]


def test_what_cannot_be_made_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="33 general-purpose counters; there can be 0 to 32"):
        Perfmon(FakeBank(40), MODEL, 33)
    with pytest.raises(ValueError, match="4 counters need a bank of 7, not 4"):
        Perfmon(FakeBank(4), MODEL)


def test_counters_agree_with_a_plain_reading_of_the_rules(device: tuple[Perfmon, Fire]) -> None:
    """Random writes and steps against the definition of a counter, computed here."""
    pmu, fire = device
    rng = random.Random(3)
    enabled = [False] * 4
    values = [0] * 4
    control, status = 0b1111, 0
    for _ in range(2_000):
        counter = rng.randrange(4)
        match rng.randrange(6):
            case 0:
                enabled[counter] = rng.random() < 0.7
                pmu.write(IA32_PERFEVTSELx, INSTRUCTIONS if enabled[counter] else INSTRUCTIONS & ~EN, counter)
            case 1:
                values[counter] = rng.choice([0, LIMIT - 1, LIMIT - 30])
                pmu.write(IA32_A_PMCx, values[counter], counter)
            case 2:
                control = rng.randrange(16)
                pmu.write(IA32_PERF_GLOBAL_CTRL, control)
            case 3:
                cleared = rng.randrange(16)
                status &= ~cleared
                pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, cleared)
            case _:
                amount = rng.randrange(40)
                fire(Probe.INST_RETIRED, amount)
                for n in range(4):
                    if enabled[n] and control >> n & 1:
                        carry, values[n] = divmod(values[n] + amount, LIMIT)
                        status |= carry << n
        assert pmu.read(IA32_PERF_GLOBAL_STATUS) == status
        assert [pmu.read(IA32_PMCx, n) for n in range(4)] == values
