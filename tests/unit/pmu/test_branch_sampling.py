"""AMD's Branch Sampling: its registers, and when the interrupt comes that it holds back."""

from __future__ import annotations

import struct

import pytest

from emulator.probes import Probe
from pmu.amd.branch_sampling import BranchSampling, cpuid_of_branches
from pmu.amd.brs_registers import DebugExtnCfg, SamplingBranchFromx, SamplingBranchTox
from pmu.amd.core_counters import CoreCounters
from pmu.amd.registers import LVT_PMC, PERF_CTLx, PERF_CTRx, PerfCntrGlobalStatus
from pmu.models.zen4 import MODEL
from unit.pmu.fake_bank import FakeBank

ON = DebugExtnCfg.make(BRSMEN=1, RESERVED=3)
COUNTS_TAKEN = PERF_CTLx.make(EventSelectLow=0xC4, User=1, Int=1, En=1)


class Store:
    """A core in which branches are taken when a test says so: from 0x1000 + n to 0x2000 + n."""

    def __init__(self) -> None:
        self.area: memoryview | None = None
        self.buffer = memoryview(b"")
        self.interrupt_pending = False
        self.taken = 0

    def begin(self, area: memoryview, buffer: memoryview, interrupts: bool) -> None:
        assert interrupts
        self.area, self.buffer = area, buffer

    def end(self) -> None:
        self.area = None

    def clear_interrupt(self) -> None:
        self.interrupt_pending = False

    def take_branches(self, count: int) -> None:
        for _ in range(count):
            self.taken += 1
            if self.area is None:
                continue
            base, index, end, threshold = struct.unpack("<4Q", self.area)
            if index < end:
                struct.pack_into("<3Q", self.buffer, index, 0x1000 + self.taken, 0x2000 + self.taken, 0)
                struct.pack_into("<4Q", self.area, 0, base, index + 24, end, threshold)
            self.interrupt_pending = index + 24 >= threshold


def counters(store: Store) -> tuple[CoreCounters, FakeBank]:
    bank = FakeBank(MODEL.bank_size(MODEL.counters))
    pmu = CoreCounters(bank, MODEL, sampling=BranchSampling(store))
    pmu.write(LVT_PMC, LVT_PMC.make(MT=4))
    return pmu, bank


def overflow(pmu: CoreCounters, bank: FakeBank, counter: int = 0) -> None:
    """The counter's next event is its last."""
    pmu.write(PERF_CTRx, (1 << 48) - 1, counter)
    pmu.write(PERF_CTLx, COUNTS_TAKEN, counter)
    bank.fire(Probe.BR_TAKEN)


def entries(pmu: CoreCounters) -> list[tuple[int, int]]:
    return [(pmu.read(SamplingBranchFromx, n), pmu.read(SamplingBranchTox, n)) for n in range(16)]


def test_after_a_reset() -> None:
    pmu, _ = counters(Store())
    assert pmu.read(DebugExtnCfg) == 0
    assert entries(pmu) == [(0, 0)] * 16
    assert pmu.registers_of(SamplingBranchFromx) == 16
    assert cpuid_of_branches(0x8000_0008, 0, (1, 2, 3, 4)) == (1, 1 << 31 | 2, 3, 4)
    assert cpuid_of_branches(0x8000_0001, 0, (1, 2, 3, 4)) == (1, 2, 3, 4)
    without = CoreCounters(FakeBank(MODEL.bank_size(MODEL.counters)), MODEL)
    assert not without.can_read(DebugExtnCfg)


def test_what_a_write_keeps() -> None:
    """BRSMEN 2, 4:3, VB 5, MSROFF 19:16, PMC 26:24."""
    pmu, _ = counters(Store())
    pmu.write(DebugExtnCfg, (1 << 64) - 1)
    assert pmu.read(DebugExtnCfg) == 0x70F_003C
    for n in range(16):
        pmu.write(SamplingBranchFromx, n, n)
        pmu.write(SamplingBranchTox, (1 << 64) - 1 - n, n)
    assert entries(pmu) == [(n, (1 << 64) - 1 - n) for n in range(16)]


def test_the_interrupt_comes_behind_16_branches() -> None:
    store = Store()
    pmu, bank = counters(store)
    pmu.write(DebugExtnCfg, ON)
    store.take_branches(5)  # before the overflow nothing is recorded
    overflow(pmu, bank)
    assert not pmu.interrupt_asserted()
    store.take_branches(15)
    assert not pmu.interrupt_asserted()
    assert pmu.read(PerfCntrGlobalStatus) == 0
    assert DebugExtnCfg(pmu.read(DebugExtnCfg)) == DebugExtnCfg(ON | DebugExtnCfg.make(VB=1, MSROFF=15))
    store.take_branches(1)
    assert pmu.interrupt_asserted()
    assert pmu.read(PerfCntrGlobalStatus) == 1
    assert DebugExtnCfg(pmu.read(DebugExtnCfg)).MSROFF == 0
    assert entries(pmu) == [(0x1000 + n, 0x2000 + n) for n in range(6, 22)]
    pmu.take_interrupt()
    store.take_branches(3)
    assert not pmu.interrupt_asserted()
    assert entries(pmu)[0] == (0x1006, 0x2006)  # they stay until it is enabled anew


def test_who_disables_it_gets_the_interrupt() -> None:
    store = Store()
    pmu, bank = counters(store)
    pmu.write(DebugExtnCfg, ON)
    overflow(pmu, bank)
    assert not pmu.interrupt_asserted()
    store.take_branches(3)
    pmu.write(DebugExtnCfg, pmu.read(DebugExtnCfg) & ~DebugExtnCfg.BRSMEN.mask)
    assert pmu.interrupt_asserted()
    assert DebugExtnCfg(pmu.read(DebugExtnCfg)) == DebugExtnCfg(DebugExtnCfg.make(RESERVED=3, VB=1, MSROFF=3))
    pmu.take_interrupt()
    assert not pmu.interrupt_asserted()


@pytest.mark.parametrize(("counter", "enabled"), [(1, True), (0, False)])
def test_others_are_not_held_back(counter: int, enabled: bool) -> None:
    store = Store()
    pmu, bank = counters(store)
    pmu.write(DebugExtnCfg, ON if enabled else 0)
    overflow(pmu, bank, counter)
    assert pmu.interrupt_asserted()
    assert pmu.read(PerfCntrGlobalStatus) == 1 << counter
    assert store.area is None
