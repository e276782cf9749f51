"""The driver of AMD's core counters, PerfMonV2. As arch/x86/events/core.c and arch/x86/events/amd/core.c.

Families 17h and up have no constraints but of events that take a pair of counters (Large Increment per Cycle), none of
which is modelled. All counters are alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from emulator.cpu import Cpu, Level
from emulator.linux.errors import EOPNOTSUPP, LinuxError
from perfcore.abi.constants import PerfType
from perfcore.events.drivers.hardware import CpuCounters, HardwareDriver
from perfcore.events.drivers.intel_core import RdpmcPmu
from perfcore.events.event import PerfEvent
from pmu.amd.registers import (
    LVT_PMC,
    PERF_CTLx,
    PERF_CTRx,
    PerfCntrGlobalCtl,
    PerfCntrGlobalStatus,
    PerfCntrGlobalStatusClr,
)
from pmu.device import Pmu

# Linux hands precise events to the PMU of IBS, which takes up to 2. There is none here, nor need for one: a counter's
# interrupt comes right behind the instruction that overflowed it.
MAX_PRECISE_IP = 2

_EVENT = PERF_CTLx.EventSelectLow.mask | PERF_CTLx.EventSelectHigh.mask
_RAW = (  # AMD64_RAW_EVENT_MASK
    _EVENT | PERF_CTLx.UnitMask.mask | PERF_CTLx.Edge.mask | PERF_CTLx.Inv.mask | PERF_CTLx.CntMask.mask
)
_LVT_NMI = LVT_PMC.make(MT=4)


class AmdCore(HardwareDriver):
    """`index` is the counter's number."""

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[RdpmcPmu]) -> None:
        self._access = {cpu.number: pmu for cpu, pmu in zip(cpus, pmus, strict=True)}
        self._all_counters = (1 << pmus[0].counters) - 1  # amd_pmu_global_cntr_mask
        self._width_bits = pmus[0].model.counter_width_bits
        super().__init__(cpus, pmus, PerfType.RAW)

    def reset(self, pmu: Pmu) -> None:
        pmu.write(PerfCntrGlobalCtl, 0)
        for index in range(pmu.counters):
            pmu.write(PERF_CTLx, 0, index)
        pmu.write(PerfCntrGlobalStatusClr, self._all_counters)
        pmu.write(LVT_PMC, _LVT_NMI)

    def sysfs_attributes(self) -> dict[str, str]:
        return {"rdpmc": "1", "caps/max_precise": str(MAX_PRECISE_IP)}

    def raw_code(self, config: int) -> int:
        return config & _RAW

    def configuration(self, event: PerfEvent, code: int) -> int:
        """PERF_CTL without En. x86_pmu_hw_config, amd_pmu_hw_config; there are no hosts or guests without SVM."""
        attr = event.attr
        if attr.precise_ip > MAX_PRECISE_IP:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: precise_ip {attr.precise_ip} is above {MAX_PRECISE_IP}")
        levels = self.selected_levels(event, code)
        user = PERF_CTLx.User.mask if Level.USER in levels else 0
        kernel = PERF_CTLx.Os.mask if Level.KERNEL in levels else 0
        return code | PERF_CTLx.Int.mask | user | kernel

    def fixed_index(self, number: int) -> int:
        raise ValueError(f"{self.name} has no fixed counter {number}")

    def width_bits(self, event: PerfEvent) -> int:
        return self._width_bits

    def longest_period(self, event: PerfEvent) -> int:
        return (1 << self._width_bits) - 1 >> 1

    def read_counter(self, event: PerfEvent) -> int:
        return event.hw.pmu.read(PERF_CTRx, event.hw.idx)

    def write_counter(self, event: PerfEvent, value: int) -> None:
        event.hw.pmu.write(PERF_CTRx, value, event.hw.idx)

    def enable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        hw = event.hw
        counters.pmu.write(PERF_CTLx, hw.config | PERF_CTLx.En.mask, hw.idx)
        counters.running |= 1 << hw.idx
        counters.pmu.write(PerfCntrGlobalCtl, counters.running)

    def disable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        counters.pmu.write(PERF_CTLx, event.hw.config, event.hw.idx)
        counters.running &= ~(1 << event.hw.idx)

    def handle_interrupt(self, counters: CpuCounters) -> None:
        """amd_pmu_v2_handle_irq. The global control enables the counters in use only, as IntelCore has it."""
        pmu = counters.pmu
        pmu.write(PerfCntrGlobalCtl, 0)
        status = pmu.read(PerfCntrGlobalStatus) & self._all_counters
        pmu.write(PerfCntrGlobalStatusClr, status)
        self.handle_overflows(counters, status)
        pmu.write(PerfCntrGlobalCtl, counters.running)

    # user space: /sys/devices/cpu/rdpmc is 1, so mapping an event's page sets CR4.PCE

    def event_mapped(self, event: PerfEvent) -> None:
        if event.settings.user_access:
            super().event_mapped(event)

    def update_user_access(self) -> None:
        for pmu in self._access.values():
            pmu.user_rdpmc = bool(self.user_events)

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """CR4.PCE is not the task's."""

    def user_index(self, event: PerfEvent) -> int:
        return event.hw.idx + 1
