"""What the drivers of Intel's and AMD's counters have in common: arch/x86/events/core.c."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from emulator.cpu import Cpu
from emulator.linux.errors import EOPNOTSUPP, LinuxError
from perfcore.abi.constants import PerfType
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.event import PerfEvent
from pmu.device import Pmu


class RdpmcPmu(Pmu, Protocol):
    """A PMU whose counters RDPMC reads, where CR4.PCE lets user mode do so."""

    user_rdpmc: bool


class X86Driver(HardwareDriver):
    """Counters of one width; user mode reads them by RDPMC, with /sys/devices/cpu/rdpmc at 1."""

    max_precise_ip: int

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[RdpmcPmu]) -> None:
        self._access = {cpu.number: pmu for cpu, pmu in zip(cpus, pmus, strict=True)}
        self._width_bits = pmus[0].model.counter_width_bits
        super().__init__(cpus, pmus, PerfType.RAW)

    def sysfs_attributes(self) -> dict[str, str]:
        return {"rdpmc": "1", "caps/max_precise": str(self.max_precise_ip)}

    def check_precision(self, event: PerfEvent) -> None:
        """x86_pmu_hw_config: EOPNOTSUPP."""
        asked = event.attr.precise_ip
        if asked > self.max_precise_ip:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: precise_ip {asked} is above {self.max_precise_ip}")

    def width_bits(self, event: PerfEvent) -> int:
        return self._width_bits

    def longest_period(self, event: PerfEvent) -> int:
        return (1 << self._width_bits) - 1 >> 1

    # user space: mapping an event's page sets CR4.PCE

    def event_mapped(self, event: PerfEvent) -> None:
        if event.settings.user_access:
            super().event_mapped(event)

    def update_user_access(self) -> None:
        for pmu in self._access.values():
            pmu.user_rdpmc = bool(self.user_events)

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """CR4.PCE is not the task's."""
