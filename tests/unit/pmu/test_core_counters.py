"""AMD's core counters as software sees them. Expectations: AMD64 APM volumes 2 and 3; what Linux and KVM rely on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from emulator.sysregs import Msr, SystemRegisters, UndefinedRegister
from pmu.amd.core_counters import CoreCounters
from pmu.amd.registers import (
    LVT_PMC,
    DebugCtl,
    PERF_CTLx,
    PERF_CTRx,
    PerfCntrGlobalCtl,
    PerfCntrGlobalStatus,
    PerfCntrGlobalStatusClr,
    PerfCntrGlobalStatusSet,
    PerfCtrx,
    PerfEvtSelx,
)
from pmu.model import model
from pmu.register import Register
from unit.pmu.conftest import NewBank
from unit.pmu.fake_bank import FakeBank

MODEL = model("zen4")
USER, OS, INT, EN = (PERF_CTLx.make(**{name: 1}) for name in ("User", "Os", "Int", "En"))
GUEST, HOST = PERF_CTLx.GuestOnly.mask, PERF_CTLx.HostOnly.mask
INSTRUCTIONS = 0xC0 | USER | EN
LIMIT = 1 << 48
FROZEN = 1 << 59

Fire = Callable[..., None]
Device = tuple[CoreCounters, Fire]


@pytest.fixture
def device(new_bank: NewBank) -> Device:
    bank, fire = new_bank(MODEL.bank_size(6))
    return CoreCounters(bank, MODEL), fire


def msrs(pmu: CoreCounters) -> SystemRegisters:
    registers = SystemRegisters()
    pmu.claim(registers)
    return registers


def test_a_counter_needs_its_own_enable_and_the_global_one(device: Device) -> None:
    pmu, fire = device
    assert pmu.read(PerfCntrGlobalCtl) == 0b11_1111  # at reset: software of version 1 knows nothing of it
    pmu.write(PerfCntrGlobalCtl, 0)
    pmu.write(PERF_CTLx, INSTRUCTIONS & ~EN, 5)
    fire(Probe.INST_RETIRED)
    pmu.write(PerfCntrGlobalCtl, 1 << 5)
    fire(Probe.INST_RETIRED, 10)
    pmu.write(PERF_CTLx, INSTRUCTIONS, 5)
    fire(Probe.INST_RETIRED, 100)  # counted
    pmu.write(PerfCntrGlobalCtl, 1)
    fire(Probe.INST_RETIRED, 1_000)
    assert [pmu.read(PERF_CTRx, n) for n in range(6)] == [0, 0, 0, 0, 0, 100]


@pytest.mark.parametrize(
    ("control", "counted"),
    [
        (0xC0 | USER | EN, 5),
        (0xC0 | USER | OS | EN, 5),
        (0xC0 | OS | EN, 0),  # it executes in user mode
        (0xC0 | EN, 0),  # OsUserMode 0: nowhere
        (0xC0 | USER, 0),
        (0x76 | USER | EN, 5),  # cycles
        (1 << 32 | 0x20 | 0x0100 | USER | EN, 5),  # event 120H: of P0's frequency
        (1 << 32 | 0xC0 | USER | EN, 0),  # event 1C0H is another one
        (0xC0 | USER | EN | HOST, 0),  # without SVM nobody is a host
        (0xC0 | USER | EN | GUEST, 0),
        (0xC0 | USER | EN | GUEST | HOST, 5),
        (0x76 | USER | EN | PERF_CTLx.make(CntMask=1), 5),  # a cycle happens once in each
        (0x76 | USER | EN | PERF_CTLx.make(CntMask=2), 0),  # and not twice
        (0xC0 | USER | EN | PERF_CTLx.make(CntMask=1), 0),  # nobody knows in how many cycles some retired
        (0xC0 | USER | EN | PERF_CTLx.Inv.mask, 5),  # of no comparison
        (0xC0 | USER | EN | PERF_CTLx.Edge.mask, 0),
    ],
)
def test_control(device: Device, control: int, counted: int) -> None:
    pmu, fire = device
    pmu.write(PERF_CTLx, control, 2)
    fire(Probe.INST_RETIRED, 5)
    assert pmu.read(PERF_CTRx, 2) == counted
    assert pmu.read(PERF_CTLx, 2) == control


def test_what_cannot_be_counted_is_told() -> None:
    pmu, said = CoreCounters(FakeBank(6), MODEL), list[str]()
    pmu.tell = said.append
    pmu.write(PERF_CTLx, 0xC5 | USER, 1)  # not enabled
    pmu.write(PERF_CTLx, 0xC5 | USER | EN, 1)
    pmu.write(PERF_CTLx, 0x87 | 0x0100 | USER | EN, 1)  # no event of this part: hardware counts nothing, too
    assert said == ["PERF_CTL1 is 0x4100c5: ex_ret_brn_tkn_misp cannot be counted here, and reads as 0"]


def test_the_kernel_is_counted_apart(device: Device) -> None:
    pmu, fire = device
    pmu.write(PERF_CTLx, 0x76 | OS | EN, 0)
    fire(Probe.INST_RETIRED, 50)
    fire(Probe.CYCLES, 7, Level.KERNEL)
    assert pmu.read(PERF_CTRx, 0) == 7
    event = pmu.event_of(0)
    assert event is not None
    assert event.name == "ls_not_halted_cyc"


def test_msr_numbers_and_the_old_ones() -> None:
    """PERF_CTL and PERF_CTR alternate from C001_0200H; the first four are at C001_0000H and C001_0004H as well."""
    bank = FakeBank(6)
    registers = msrs(CoreCounters(bank, MODEL))
    registers.write(Msr(0xC001_0206), INSTRUCTIONS)  # PERF_CTL3
    assert registers.read(Msr(0xC001_0003)) == INSTRUCTIONS
    registers.write(Msr(0xC001_0007), 1000)
    bank.fire(Probe.INST_RETIRED, 4)
    assert registers.read(Msr(0xC001_0207)) == 1004 == registers.rdpmc(3)
    registers.write(Msr(0xC001_020B), LIMIT + 7)  # PERF_CTR5: 48 bits
    assert registers.read(Msr(0xC001_020B)) == 7 == registers.rdpmc(5)
    for number in (0xC001_0008, 0xC001_020C, 0x186, 0x38F):
        with pytest.raises(UndefinedRegister):
            registers.read(Msr(number))
    for ecx in (6, 10, 1 << 30):  # the data fabric's, the L3's, and Intel's fixed ones
        with pytest.raises(UndefinedRegister):
            registers.rdpmc(ecx)


def test_reserved_bits_ignore_writes() -> None:
    registers = msrs(CoreCounters(FakeBank(6), MODEL))
    for number, kept in ((0xC001_0200, 0x30F_FFD7_FFFF), (0xC000_0301, 0x3F)):  # bits 19, 21 and 36 to 39 among those
        registers.check_value(Msr(number), (1 << 64) - 1)
        registers.write(Msr(number), (1 << 64) - 1)
        assert registers.read(Msr(number)) == kept
    with pytest.raises(UndefinedRegister):  # LBR: not modelled
        registers.check_value(Msr(0x1D9), 1)


def test_the_status_is_set_and_cleared_by_other_registers() -> None:
    registers = msrs(CoreCounters(FakeBank(6), MODEL))
    registers.write(Msr(0xC000_0303), 0b10_0001)
    assert registers.read(Msr(0xC000_0300)) == 0b10_0001
    assert registers.read(Msr(0xC000_0302)) == registers.read(Msr(0xC000_0303)) == 0
    registers.write(Msr(0xC000_0302), (1 << 64) - 1 - 1)  # as Linux does, with all bits but what it left
    assert registers.read(Msr(0xC000_0300)) == 1
    with pytest.raises(UndefinedRegister):
        registers.write(Msr(0xC000_0300), 0)


def test_an_overflow_interrupts_once_and_its_bit_stays(device: Device) -> None:
    pmu, fire = device
    pmu.write(PERF_CTLx, INSTRUCTIONS, 0)
    pmu.write(PERF_CTLx, INSTRUCTIONS | INT, 1)
    pmu.write(PERF_CTRx, LIMIT - 1, 0)
    pmu.write(PERF_CTRx, LIMIT - 2, 1)
    fire(Probe.INST_RETIRED)
    assert (pmu.read(PerfCntrGlobalStatus), pmu.interrupt_asserted()) == (0b01, False)
    fire(Probe.INST_RETIRED)
    assert (pmu.read(PerfCntrGlobalStatus), pmu.interrupt_asserted()) == (0b11, True)
    pmu.take_interrupt()
    assert (pmu.read(PerfCntrGlobalStatus), pmu.interrupt_asserted()) == (0b11, False)
    pmu.write(PERF_CTRx, LIMIT - 5, 1)  # software of version 1 clears no status, and is interrupted again
    fire(Probe.INST_RETIRED, 5)
    assert (pmu.read(PerfCntrGlobalStatus), pmu.interrupt_asserted()) == (0b11, True)
    assert not pmu.read(LVT_PMC) & LVT_PMC.M.mask  # which AMD's local APICs leave as it is
    pmu.write(PerfCntrGlobalStatusClr, 0b11)
    assert (pmu.read(PerfCntrGlobalStatus), pmu.interrupt_asserted()) == (0, False)


def test_an_overflow_before_int_was_set_does_not_interrupt(device: Device) -> None:
    pmu, fire = device
    pmu.write(PERF_CTLx, INSTRUCTIONS, 0)
    pmu.write(PERF_CTRx, LIMIT - 1, 0)
    fire(Probe.INST_RETIRED)
    pmu.write(PERF_CTLx, INSTRUCTIONS | INT, 0)
    assert (pmu.interrupt_asserted(), pmu.read(PerfCntrGlobalStatus)) == (False, 1)


def test_while_the_local_vector_is_masked_interrupts_are_lost(device: Device) -> None:
    pmu, fire = device
    pmu.write(LVT_PMC, LVT_PMC.make(M=1))
    pmu.write(PERF_CTLx, INSTRUCTIONS | INT, 0)
    pmu.write(PERF_CTRx, LIMIT - 1, 0)
    fire(Probe.INST_RETIRED)
    assert not pmu.interrupt_asserted()
    pmu.set_local_vector(0x400)
    assert not pmu.interrupt_asserted()
    assert pmu.read(PerfCntrGlobalStatus) == 1


def test_freezing_stops_all_counters_until_the_status_is_cleared(device: Device) -> None:
    pmu, fire = device
    pmu.write(DebugCtl, DebugCtl.FPCI.mask)
    pmu.write(PERF_CTLx, INSTRUCTIONS | INT, 0)
    pmu.write(PERF_CTLx, INSTRUCTIONS, 1)
    pmu.write(PERF_CTRx, LIMIT - 1, 0)
    fire(Probe.INST_RETIRED)
    assert pmu.interrupt_asserted()
    pmu.take_interrupt()
    assert pmu.read(PerfCntrGlobalStatus) == FROZEN | 1
    fire(Probe.INST_RETIRED, 100)
    assert [pmu.read(PERF_CTRx, n) for n in (0, 1)] == [0, 1]
    pmu.write(PerfCntrGlobalStatusClr, FROZEN | 1)
    fire(Probe.INST_RETIRED, 3)
    assert [pmu.read(PERF_CTRx, n) for n in (0, 1)] == [3, 4]
    pmu.write(PerfCntrGlobalStatusSet, FROZEN)
    fire(Probe.INST_RETIRED, 3)
    assert pmu.read(PERF_CTRx, 0) == 3


def test_rdpmc_is_the_kernels_to_allow(device: Device) -> None:
    pmu, _ = device
    registers = SystemRegisters()
    pmu.grant_user_access(registers)
    with pytest.raises(UndefinedRegister, match=r"CR4\.PCE is 0"):
        registers.rdpmc(0)
    pmu.user_rdpmc = True
    assert registers.rdpmc(0) == 0


def test_cpuid() -> None:
    """PerfMonV2 and the freeze, six counters, PerfCtrExtCore; the leaf is within what the largest one says."""
    pmu = CoreCounters(FakeBank(6), MODEL)
    assert pmu.cpuid(0x8000_0022, 0, (0, 0, 0, 0)) == (0b101, 6, 0, 0)
    assert pmu.cpuid(0x8000_0001, 0, (1, 2, 4, 8)) == (1, 2, 4 | 1 << 23, 8)
    assert pmu.cpuid(0x8000_0000, 0, (0x8000_001E, 1, 2, 3)) == (0x8000_0022, 1, 2, 3)
    assert pmu.cpuid(0xA, 0, (0, 0, 0, 0)) == (0, 0, 0, 0)  # Intel's


@pytest.mark.parametrize(
    ("register", "index"), [(PERF_CTLx, 6), (PERF_CTRx, -1), (PERF_CTRx, 6), (PerfEvtSelx, 4), (PerfCtrx, 4)]
)
def test_counters_that_are_not_there_are_named(register: type[Register], index: int) -> None:
    pmu = CoreCounters(FakeBank(6), MODEL)
    with pytest.raises(ValueError, match="this PMU has"):
        pmu.write(register, 0, index)
    with pytest.raises(ValueError, match="this PMU has"):
        pmu.read(register, index)


def test_what_cannot_be_made_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="33 core counters; there can be 0 to 32"):
        CoreCounters(FakeBank(40), MODEL, 33)
    with pytest.raises(ValueError, match="6 counters need a bank of 6, not 4"):
        CoreCounters(FakeBank(4), MODEL)
