"""What the drivers of Intel's and AMD's counters have in common: arch/x86/events/core.c."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol
from weakref import WeakSet

from emulator.cpu import Cpu
from emulator.linux.errors import EOPNOTSUPP, LinuxError
from perfcore.abi.constants import PerfType
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.event import PerfEvent
from pmu.device import Pmu

_NEVER, _ALWAYS = 0, 2  # rdpmc


class RdpmcPmu(Pmu, Protocol):
    """A PMU whose counters RDPMC reads, where CR4.PCE lets user mode do so."""

    user_rdpmc: bool


class X86Driver(HardwareDriver):
    """Counters of one width. User mode reads them by RDPMC as /sys/bus/event_source/devices/cpu/rdpmc says (`rdpmc`):
    0, nobody; 1, who has an event mapped that was opened then; 2, everybody."""

    max_precise_ip: int

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[RdpmcPmu]) -> None:
        self.pmus = pmus
        self._access = {cpu.number: pmu for cpu, pmu in zip(cpus, pmus, strict=True)}
        self._width_bits = pmus[0].model.counter_width_bits
        self.rdpmc = 1
        self._readable: WeakSet[PerfEvent] = WeakSet()  # PERF_EVENT_FLAG_USER_READ_CNT
        super().__init__(cpus, pmus, PerfType.RAW)

    def sysfs_attributes(self) -> dict[str, str]:
        branches = {} if self.branches is None else {"caps/branches": str(self.branches.entries)}
        return {"caps/max_precise": str(self.max_precise_ip)} | branches

    def event_init(self, event: PerfEvent) -> None:
        super().event_init(event)
        if self.rdpmc:
            self._readable.add(event)

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
        if event in self._readable:
            super().event_mapped(event)

    def set_rdpmc(self, rdpmc: int) -> None:
        """set_attr_rdpmc()"""
        self.rdpmc = rdpmc
        self.update_user_access()

    def update_user_access(self) -> None:
        """cr4_update_pce()"""
        for pmu in self._access.values():
            pmu.user_rdpmc = self.rdpmc == _ALWAYS or (self.rdpmc != _NEVER and bool(self.user_events))

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """CR4.PCE is not the task's."""
