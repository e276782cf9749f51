"""The driver of LoongArch's performance monitors. As arch/loongarch/kernel/perf_event.c.

Monitors are all alike, and any takes any event. A counter is written 2**63 less what is left of the period, so that bit
63, which interrupts, is set when that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from emulator.cpu import Cpu, Level
from perfcore.abi.constants import PerfType
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.event import PerfEvent
from pmu.device import Pmu
from pmu.loongarch.registers import ECFG, MISC, OVERFLOW, WIDTH_BITS, PERFCNTRn, PERFCTRLn
from pmu.register import Register

_EVENT = PERFCTRLn.EVENT.mask
_USER = PERFCTRLn.make(PLV3=1, PLV2=1)
_KERNEL = PERFCTRLn.make(PLV0=1)
_HYPERVISOR = PERFCTRLn.make(PLV1=1)
_IE = PERFCTRLn.IE.mask
_COUNTING = _USER | _KERNEL | _HYPERVISOR | _IE  # M_PERFCTL_COUNT_EVENT_WHENEVER
_LONGEST_PERIOD = OVERFLOW - 1


class LoongArchMonitors(HardwareDriver):
    """`index` is the monitor's number."""

    has_format_files = False

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu]) -> None:
        self.all_counters = (1 << pmus[0].counters) - 1
        super().__init__(cpus, pmus, PerfType.RAW)

    def reset(self, pmu: Pmu) -> None:
        """reset_counters, and request_irq."""
        for index in range(pmu.counters):
            pmu.write(PERFCTRLn, 0, index)
            pmu.write(PERFCNTRn, 0, index)
        pmu.write(MISC, 0)
        pmu.write(ECFG, ECFG.make(PCOV=1))

    def raw_code(self, config: int) -> int:
        return config & _EVENT

    def configuration(self, event: PerfEvent, code: int) -> int:
        """PERFCTRL. __hw_perf_event_init: the interrupt is always enabled, and at level 1 hypervisors would be."""
        levels = self.selected_levels(event, code)
        user = _USER if Level.USER in levels else 0
        kernel = _KERNEL if Level.KERNEL in levels else 0
        return code | user | kernel | (0 if event.attr.exclude_hv else _HYPERVISOR) | _IE

    def fixed_index(self, number: int) -> int:
        raise ValueError(f"{self.name} has no fixed counter {number}")

    def width_bits(self, event: PerfEvent) -> int:
        return WIDTH_BITS - 1

    def longest_period(self, event: PerfEvent) -> int:
        return _LONGEST_PERIOD

    def counter_register(self, index: int) -> tuple[type[Register], int]:
        return PERFCNTRn, index

    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        for index, event in events.items():
            counters.pmu.write(PERFCTRLn, event.hw.config, index)

    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        for index, event in events.items():
            counters.pmu.write(PERFCTRLn, event.hw.config & ~_COUNTING, index)

    def status_reader(self, counters: CpuCounters) -> Callable[[], int]:
        """Each monitor that is in use is looked at."""
        pmu = counters.pmu

        def read_status() -> int:
            return sum(1 << index for index in counters.events if pmu.read(PERFCNTRn, index) & OVERFLOW)

        return read_status

    def interrupt_handler(self, counters: CpuCounters) -> Callable[[], None]:
        """pmu_handle_irq."""
        return lambda: self.handle_overflows(counters, counters.read_status())

    # user space: Linux gives it no counter to read

    def event_mapped(self, event: PerfEvent) -> None:
        """armpmu and x86 let user space read what it maps; this driver has no event_mapped."""

    def event_unmapped(self, event: PerfEvent) -> None:
        """Likewise."""

    def update_user_access(self) -> None:
        """There is none."""

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """No task reads counters."""

    def user_index(self, event: PerfEvent) -> int:
        return 0
