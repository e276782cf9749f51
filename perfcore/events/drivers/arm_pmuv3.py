"""The driver of Arm's PMUv3. As drivers/perf/arm_pmuv3.c."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from emulator.cpu import Cpu, Level
from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from perfcore.events.drivers.hardware import CpuCounters, HardwareDriver
from perfcore.events.event import PerfEvent
from pmu.arm.registers import (
    CYCLE_COUNTER,
    PMCCFILTR_EL0,
    PMCCNTR_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMINTENCLR_EL1,
    PMINTENSET_EL1,
    PMOVSCLR_EL0,
    PMUSERENR_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.device import Pmu

TYPE = 8  # dynamic, as on a Linux whose kprobe and uprobe PMUs came first

_EVENT = PMEVTYPERn_EL0.evtCount.mask
_NOT_KERNEL = PMEVTYPERn_EL0.P.mask
_NOT_USER = PMEVTYPERn_EL0.U.mask
_HYPERVISOR_TOO = PMEVTYPERn_EL0.NSH.mask
_FILTERS = _NOT_KERNEL | _NOT_USER | _HYPERVISOR_TOO
_ALL_COUNTERS = 0xFFFF_FFFF
_RUN = PMCR_EL0.make(E=1)
_HALT = 0
_COUNTER_BITS = 32
_CYCLES_BIAS = _ALL_COUNTERS << _COUNTER_BITS  # lets the 64-bit cycle counter overflow after 32 bits

_CPU_CYCLES = 0x0011
_CONFIG1_LONG = 1 << 0  # a 64-bit count is wanted: all of ours are, by software
_CONFIG1_RDPMC = 1 << 1  # user space wants to read the counter


class ArmPmuV3(HardwareDriver):
    """Counters 0..N-1 are the event counters, 31 the cycle counter: the numbers of their bits in the registers."""

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu]) -> None:
        super().__init__(cpus, pmus, TYPE)

    def reset(self, pmu: Pmu) -> None:
        pmu.write(PMCNTENCLR_EL0, _ALL_COUNTERS)
        pmu.write(PMINTENCLR_EL1, _ALL_COUNTERS)
        pmu.write(PMOVSCLR_EL0, _ALL_COUNTERS)
        pmu.write(PMCR_EL0, PMCR_EL0.make(P=1, C=1))
        pmu.write(PMUSERENR_EL0, 0)
        pmu.write(PMCR_EL0, _RUN)

    def sysfs_attributes(self) -> dict[str, str]:
        """`cpus` in the list format of cpumasks: those that have this PMU."""
        return {"cpus": ",".join(str(number) for number in self.cpu_numbers())}

    def raw_code(self, config: int) -> int:
        return config & _EVENT

    def configuration(self, event: PerfEvent, code: int) -> int:
        """The PMEVTYPER value. armv8pmu_set_event_filter."""
        attr = event.attr
        self._check_user_access(event, code)
        if attr.exclude_idle:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: exclude_idle is not possible")
        filters = 0
        levels = self.selected_levels(event, code)
        if Level.KERNEL not in levels:
            filters |= _NOT_KERNEL
        if Level.USER not in levels:
            filters |= _NOT_USER
        if not attr.exclude_hv and not attr.exclude_host:
            filters |= _HYPERVISOR_TOO
        return code | filters

    def _check_user_access(self, event: PerfEvent, code: int) -> None:
        """__armv8_pmuv3_map_event: what user space reads is one counter, of a task."""
        config1 = event.attr.config1
        if not config1 & _CONFIG1_RDPMC:
            return
        if not event.of_task:
            raise LinuxError(EINVAL, f"{self.name}: config1 {config1:#x}: user access is for events of a task")
        if config1 & _CONFIG1_LONG and code != _CPU_CYCLES:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: config1 {config1:#x}: 64-bit user access is for cycles only")

    def selected_code(self, event: PerfEvent) -> int:
        return event.hw.config & _EVENT

    def fixed_index(self, number: int) -> int:
        return CYCLE_COUNTER

    def width_bits(self, event: PerfEvent) -> int:
        return _COUNTER_BITS

    def longest_period(self, event: PerfEvent) -> int:
        """Half of what the counter can count, so that it cannot overtake the value that is about to be written."""
        return (1 << _COUNTER_BITS) - 1 >> 1

    def read_counter(self, event: PerfEvent) -> int:
        hw = event.hw
        if hw.idx == CYCLE_COUNTER:
            return hw.pmu.read(PMCCNTR_EL0) & _ALL_COUNTERS
        return hw.pmu.read(PMEVCNTRn_EL0, hw.idx)

    def write_counter(self, event: PerfEvent, value: int) -> None:
        hw = event.hw
        if hw.idx == CYCLE_COUNTER:
            hw.pmu.write(PMCCNTR_EL0, value | _CYCLES_BIAS)
        else:
            hw.pmu.write(PMEVCNTRn_EL0, value, hw.idx)

    def enable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        pmu = counters.pmu
        hw = event.hw
        bit = 1 << hw.idx
        if hw.idx == CYCLE_COUNTER:
            pmu.write(PMCCFILTR_EL0, hw.config & _FILTERS)
        else:
            pmu.write(PMEVTYPERn_EL0, hw.config, hw.idx)
        pmu.write(PMINTENSET_EL1, bit)
        pmu.write(PMCNTENSET_EL0, bit)

    def disable_counter(self, counters: CpuCounters, event: PerfEvent) -> None:
        pmu = counters.pmu
        bit = 1 << event.hw.idx
        pmu.write(PMCNTENCLR_EL0, bit)
        pmu.write(PMINTENCLR_EL1, bit)
        pmu.write(PMOVSCLR_EL0, bit)

    def handle_interrupt(self, counters: CpuCounters) -> None:
        """armv8pmu_handle_irq."""
        pmu = counters.pmu
        status = pmu.read(PMOVSCLR_EL0)
        if not status:
            return
        pmu.write(PMOVSCLR_EL0, status)
        pmu.write(PMCR_EL0, _HALT)
        self.handle_overflows(counters, status)
        pmu.write(PMCR_EL0, _RUN)

    # user space: attr.config1 bit 1 asks for it, mapping the event's page gets it

    def event_mapped(self, event: PerfEvent) -> None:
        if event.attr.config1 & _CONFIG1_RDPMC and event.settings.user_access:
            super().event_mapped(event)

    def update_user_access(self) -> None:
        """PMUSERENR_EL0 is the running task's, by `sched_task`."""

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """armv8pmu_enable_user_access, which shows no counts of others, and armv8pmu_disable_user_access."""
        counters = self._cpus[cpu.number]
        pmu = counters.pmu
        wanted = PMUSERENR_EL0.make(ER=1, CR=1) if not self.user_events.isdisjoint(mapped) else 0
        if pmu.read(PMUSERENR_EL0) == wanted:
            return
        if wanted:
            for index in range(pmu.counters):
                if index not in counters.events:
                    pmu.write(PMEVCNTRn_EL0, 0, index)
            if CYCLE_COUNTER not in counters.events:
                pmu.write(PMCCNTR_EL0, 0)
        pmu.write(PMUSERENR_EL0, wanted)

    def user_index(self, event: PerfEvent) -> int:
        return event.hw.idx + 1
