"""AMD's counters, shared: what a guest sees, and whose an interrupt is, which is no register's there."""

from __future__ import annotations

import pytest

from emulator.cpu import Level
from emulator.probes import Probe
from emulator.sysregs import UndefinedRegister
from pmu.amd.core_counters import CoreCounters
from pmu.amd.registers import (
    LVT_PMC,
    PERF_CTLx,
    PERF_CTRx,
    PerfCntrGlobalCtl,
    PerfCntrGlobalStatus,
)
from pmu.amd.sharing import GuestCoreCounters, SharedCoreCounters
from pmu.model import model
from unit.pmu.fake_bank import FakeBank


def amd(counters: int = 2) -> tuple[SharedCoreCounters, GuestCoreCounters]:
    kind = model("zen5")
    shared = SharedCoreCounters(CoreCounters(FakeBank(kind.bank_size(6)), kind, 6), counters)
    return shared, shared.guest()


def test_amds_guest_sees_its_own_counters() -> None:
    shared, guest = amd()
    assert guest.cpuid(0x8000_0022, 0, (0, 0, 0, 0))[1] == 2
    shared.device.write(PERF_CTRx, 77, 3)
    shared.enter(guest)
    assert guest.read(PerfCntrGlobalCtl) == 0b11
    guest.write(PerfCntrGlobalCtl, 0b111101)
    assert guest.read(PerfCntrGlobalCtl) == 0b01
    with pytest.raises(ValueError, match="PERF_CTR3: this guest has 2 of them"):
        guest.read(PERF_CTRx, 3)
    with pytest.raises(UndefinedRegister, match="this guest has 2 counters"):
        guest.rdpmc(3, in_user_mode=False)
    shared.exit()
    assert shared.device.read(PerfCntrGlobalCtl) == 0b111111
    assert shared.device.read(PERF_CTRx, 3) == 77


def test_an_interrupt_of_amds_is_pending_for_whose_counter_it_is() -> None:
    """Both overflow at once: the host's is taken behind an exit, the guest's is there again on its entry."""
    shared, guest = amd()
    device = shared.device
    everywhere = PERF_CTLx.make(EventSelectLow=0xC0, User=1, Os=1, Int=1, En=1)
    device.write(PERF_CTLx, everywhere, 4)
    device.write(PERF_CTRx, (1 << 48) - 5, 4)
    shared.set_pmu_events(1 << 4)
    shared.enter(guest)
    guest.write(PERF_CTLx, everywhere, 0)
    guest.write(PERF_CTRx, (1 << 48) - 5, 0)
    bank = device._bank
    assert isinstance(bank, FakeBank)
    bank.fire(Probe.INST_RETIRED, 5, Level.USER)
    assert shared.host_interrupt()
    assert guest.interrupt_asserted()
    shared.exit()
    assert device.interrupt_asserted()
    device.take_interrupt()
    assert not device.interrupt_asserted()
    assert guest.interrupt_asserted()
    shared.enter(guest)
    guest.take_interrupt()
    assert not guest.interrupt_asserted()
    assert guest.read(PerfCntrGlobalStatus) == 0b1  # delivered, and not cleared
    guest.write(PERF_CTRx, (1 << 48) - 1, 0)
    guest.write_local_vector(LVT_PMC.make(M=1))
    bank.fire(Probe.INST_RETIRED, 1, Level.USER)
    assert not guest.interrupt_asserted()
    guest.write_local_vector(0)
    assert not guest.interrupt_asserted()  # while it was masked it got lost
