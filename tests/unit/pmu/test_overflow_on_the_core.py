"""A PMU's overflow stops the core's own run on the exact instruction, and its interrupt line is up."""

from __future__ import annotations

import pytest

from emulator.cpu import ExitReason
from emulator.probes import Probe
from pmu.amd.core_counters import CoreCounters
from pmu.amd.registers import PERF_CTLx, PERF_CTRx
from pmu.arm.pmuv3 import PmuV3
from pmu.arm.registers import (
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.event import LESS_SHIFT
from pmu.intel.perfmon import Perfmon
from pmu.intel.registers import IA32_PERF_GLOBAL_STATUS_RESET, IA32_A_PMCx, IA32_PERFEVTSELx
from pmu.model import model
from unit.pmu.conftest import new_core, require_native_core

INSTRUCTIONS = 100_000


@pytest.fixture(autouse=True)
def _native_core() -> None:
    require_native_core()


@pytest.mark.parametrize("counters", [6, 31])
@pytest.mark.parametrize("period", [997, 10_007])
def test_pmuv3_overflows_every_period(counters: int, period: int) -> None:
    arm = model("armv8_pmuv3")
    core = new_core("aarch64")
    pmu = PmuV3(core.add_bank(arm.bank_size(counters)), arm, counters)
    pmu.write(PMEVTYPERn_EL0, 0x0008, counters - 1)
    pmu.write(PMCNTENSET_EL0, 1 << counters - 1)
    pmu.write(PMINTENSET_EL1, 1 << counters - 1)
    pmu.write(PMCR_EL0, 1)
    pmu.write(PMEVCNTRn_EL0, -period & 0xFFFF_FFFF, counters - 1)
    overflows = []
    while core.run(INSTRUCTIONS) == ExitReason.OVERFLOW:
        overflows.append(core.cycles)
        assert pmu.interrupt_asserted()
        assert pmu.read(PMEVCNTRn_EL0, counters - 1) == 0
        pmu.write(PMOVSCLR_EL0, 1 << counters - 1)
        pmu.write(PMEVCNTRn_EL0, -period & 0xFFFF_FFFF, counters - 1)
    assert overflows == list(range(period, INSTRUCTIONS + 1, period))  # floor(N / P) of them, no skid


@pytest.mark.parametrize("counters", [4, 32])
@pytest.mark.parametrize("period", [997, 10_007])
def test_perfmon_overflows_every_period(counters: int, period: int) -> None:
    intel = model("intel_arch_perfmon")
    core = new_core("x86_64")
    pmu = Perfmon(core.add_bank(intel.bank_size(counters)), intel, counters)
    pmu.write(IA32_PERFEVTSELx, 0x00C0 | IA32_PERFEVTSELx.make(USR=1, INT=1, EN=1), counters - 1)
    pmu.write(IA32_A_PMCx, (1 << 48) - period, counters - 1)
    overflows = []
    while core.run(INSTRUCTIONS) == ExitReason.OVERFLOW:
        overflows.append(core.cycles)
        assert pmu.interrupt_asserted()
        pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, 1 << counters - 1)
        pmu.write(IA32_A_PMCx, (1 << 48) - period, counters - 1)
    assert overflows == list(range(period, INSTRUCTIONS + 1, period))


@pytest.mark.parametrize("counters", [6, 32])
@pytest.mark.parametrize("period", [997, 10_007])
def test_amds_counters_overflow_every_period(counters: int, period: int) -> None:
    """With no write to the global registers, as software of version 1."""
    zen = model("zen5")
    core = new_core("x86_64")
    pmu = CoreCounters(core.add_bank(zen.bank_size(counters)), zen, counters)
    pmu.write(PERF_CTLx, 0xC0 | PERF_CTLx.make(User=1, Int=1, En=1), counters - 1)
    pmu.write(PERF_CTRx, (1 << 48) - period, counters - 1)
    overflows = []
    while core.run(INSTRUCTIONS) == ExitReason.OVERFLOW:
        overflows.append(core.cycles)
        assert pmu.interrupt_asserted()
        pmu.take_interrupt()
        assert not pmu.interrupt_asserted()
        assert pmu.read(PERF_CTRx, counters - 1) == 0
        pmu.write(PERF_CTRx, (1 << 48) - period, counters - 1)
    assert overflows == list(range(period, INSTRUCTIONS + 1, period))


@pytest.mark.parametrize(("isa", "lap"), [("aarch64", 1024), ("x86_64", 4092)])
def test_a_counter_takes_away_what_another_probe_fires(isa: str, lap: int) -> None:
    # All instructions less the branch that ends each lap: after n instructions n - n // lap.
    core = new_core(isa)
    bank = core.add_bank(1)
    bank.connect(0, 1 << Probe.INST_RETIRED | 1 << LESS_SHIFT + Probe.BR_RETIRED)
    assert bank.connected(0) == 1 << Probe.INST_RETIRED | 1 << LESS_SHIFT + Probe.BR_RETIRED
    bank.set_width(0, 32)
    bank.write(0, 2**32 - 3000)
    bank.arm(1)
    overflows = []
    while core.run(50_000) == ExitReason.OVERFLOW:
        overflows.append(core.cycles)
        assert bank.read(0) == 0
        bank.clear_overflowed(1)
        bank.write(0, 2**32 - 3000)
    reached = [number - number // lap for number in range(50_001)]
    assert overflows == [reached.index(count) for count in range(3000, reached[-1] + 1, 3000)]
