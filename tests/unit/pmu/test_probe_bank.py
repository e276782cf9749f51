"""The bank without a core does what the core's own does: random writes and events, the same on both, for each PMU."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from emulator._native import Core
from emulator.cpu import ExitReason, Level
from emulator.probes import Probe, Source
from pmu.amd.core_counters import CoreCounters
from pmu.arm.pmuv3 import PmuV3
from pmu.counter_bank import CounterBank
from pmu.intel.perfmon import Perfmon
from pmu.live.probe_bank import ProbeBank
from pmu.loongarch.performance_monitors import PerformanceMonitors
from pmu.model import PmuModel, model, models
from pmu.register import Register
from pmu.register_view import RegisterFile, views
from unit.pmu.conftest import CODE, PC, new_core

DEVICES: dict[str, Callable[..., RegisterFile]] = {
    "arm_pmuv3": PmuV3, "intel_core": Perfmon, "amd_core": CoreCounters, "loongarch": PerformanceMonitors,
}  # fmt: skip
STEPS = 600
MOST_RUN = 1000  # instructions at once: all of a page are NOPs but the last
RETIREMENT = 1 << Probe.INST_RETIRED | 1 << Probe.CYCLES
OTHERS = [probe for probe in Probe if probe.source is not Source.CLOCK and probe is not Probe.INST_RETIRED]
VALUES: list[Callable[[random.Random], int]] = [
    lambda rng: 0,
    lambda rng: 1 << rng.randrange(64),
    lambda rng: rng.getrandbits(8),
    lambda rng: rng.getrandbits(64),
]
OVERFLOWS_AT = 32, 48, 63, 64  # bits
# Now and then, so that something interrupts: a counter of instructions that is about to overflow
SOON = 400  # instructions
INTERRUPTS_SOON: dict[str, dict[str, int]] = {
    "arm_pmuv3": {
        "PMEVTYPER0_EL0": 0x0008, "PMEVCNTR0_EL0": (1 << 32) - SOON, "PMCNTENSET_EL0": 1, "PMINTENSET_EL1": 1,
        "PMCR_EL0": 1,
    },
    "intel_core": {
        "IA32_FIXED_CTR_CTRL": 0xB, "IA32_FIXED_CTR0": (1 << 48) - SOON, "IA32_PERF_GLOBAL_CTRL": 1 << 32,
        "IA32_X2APIC_LVT_PMI": 0,
    },
    "amd_core": {
        "PERF_CTL0": 0x53_00C0, "PERF_CTR0": (1 << 48) - SOON, "PerfCntrGlobalCtl": 0b11_1111, "LVT_PMC": 0,
    },
    "loongarch": {"PERFCTRL0": 0x18_0001, "PERFCNTR0": (1 << 63) - SOON, "ECFG": 1 << 10},
}  # fmt: skip
EVERY = 20  # steps
WHERE = {"arm_pmuv3": 0xFC00_0000, "intel_core": 0x53_0000, "amd_core": 0x53_0000, "loongarch": 0x1F_0000}  # of selects


class OnTheCore:
    def __init__(self, core: Core, device: RegisterFile) -> None:
        self.core, self.device = core, device

    def retire(self, instructions: int) -> None:
        self.core.write_register(PC["aarch64"], CODE)  # so that there are no branches
        until = self.core.cycles + instructions
        while self.core.run(until) == ExitReason.OVERFLOW:
            self.device.interrupt_asserted()

    def fire(self, probe: Probe, times: int) -> None:
        self.core.fire(probe, times)
        self.device.interrupt_asserted()


class WithoutCore:
    def __init__(self, bank: ProbeBank, device: RegisterFile) -> None:
        self.bank, self.device = bank, device

    def retire(self, instructions: int) -> None:
        self._happen(RETIREMENT, instructions)

    def fire(self, probe: Probe, times: int) -> None:
        counts = self.bank.counts_at(Level.USER)
        self.bank.happen(1 << probe, times, counts)
        self.device.interrupt_asserted()

    def _happen(self, probes: int, times: int) -> None:
        counts = self.bank.counts_at(Level.USER)
        while times:
            step = min(times, self.bank.until_overflow(probes, counts) or times)
            self.bank.happen(probes, step, counts)
            self.device.interrupt_asserted()
            times -= step


def written(device: RegisterFile, register: type[Register], index: int, value: int) -> str | None:
    """None: it was; else why not."""
    try:
        device.write(register, value, index)
    except ValueError as problem:
        return str(problem)
    return None


def value_for(rng: random.Random, pmu: PmuModel, register: type[Register]) -> int:
    """Any; more often one that makes something count, or overflow."""
    if register.event_field and rng.random() < 0.8:
        return rng.choice(list(pmu.events)).code | rng.getrandbits(64) & WHERE[pmu.driver]
    if [field for field in register.fields.values() if field.width >= 48]:  # a counter
        return (1 << rng.choice(OVERFLOWS_AT)) - rng.randrange(1, MOST_RUN) & register.declared
    value = rng.choice(VALUES)(rng)
    return value & register.declared if rng.random() < 0.3 else value


@pytest.mark.parametrize("name", models())
def test_both_banks_do_the_same(name: str) -> None:
    rng, found = random.Random(name), model(name)
    core = new_core("aarch64")
    size = found.bank_size(found.counters)
    bank = ProbeBank(size)
    banks: tuple[CounterBank, CounterBank] = (core.add_bank(size), bank)
    first, second = (DEVICES[found.driver](each, found) for each in banks)
    on_core, without = OnTheCore(core, first), WithoutCore(bank, second)
    registers = {register.name_of(0): register for register in first.registers()}
    interrupts = 0
    for step in range(STEPS):
        for written_name, value in INTERRUPTS_SOON[found.driver].items() if step % EVERY == 0 else ():
            for device in (first, second):
                assert written(device, registers[written_name], 0, value) is None
        match rng.randrange(4):
            case 0:
                instructions = rng.randrange(1, MOST_RUN)
                on_core.retire(instructions)
                without.retire(instructions)
            case 1:
                probe, times = rng.choice(OTHERS), rng.randrange(1, 100)
                on_core.fire(probe, times)
                without.fire(probe, times)
            case _:
                register = rng.choice(list(registers.values()))
                index, value = rng.randrange(first.registers_of(register)), value_for(rng, found, register)
                assert written(first, register, index, value) == written(second, register, index, value)
        assert first.interrupt_asserted() == second.interrupt_asserted(), step
        if first.interrupt_asserted() and rng.random() < 0.5:
            interrupts += 1
            first.take_interrupt()
            second.take_interrupt()
        held = [[(view.name, view.value) for view in views(device)] for device in (first, second)]
        assert held[0] == held[1], step
    assert interrupts > 3
