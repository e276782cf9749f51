"""The driver of hardware breakpoints: instructions and data that the CPU's debug registers watch.

As perf_breakpoint in kernel/events/hw_breakpoint.c. Its events are in the context of software events: a slot is
reserved when one is opened, so that it always fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from emulator.cpu import Cpu, Level
from emulator.linux.debug_registers import DebugRegisters, HwBreakpoint
from emulator.linux.errors import EINVAL, ENOENT, EOPNOTSUPP, EPERM, LinuxError
from emulator.linux.process.credentials import CAP_SYS_ADMIN
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, SampleType
from perfcore.events.drivers.software import count_occurrence, start_software_period
from perfcore.events.drivers.without_counters import CountedAsTold
from perfcore.events.event import PerfEvent
from perfcore.events.hw_breakpoint import HARDWARE, Slots, Watched
from perfcore.events.kernel import Linux

MEASURING_SLOTS = 4  # times as many as a guest's
NOTE = "hits by what the guest executes; what the kernel copies for it hits none"


class DebuggedLinux(Linux, Protocol):
    """A kernel with debug registers on its CPUs."""

    @property
    def debug_registers(self) -> Mapping[int, DebugRegisters]:
        """By the CPU's number."""


class BreakpointDriver(CountedAsTold):
    """PERF_TYPE_BREAKPOINT: attr.bp_type, bp_addr (config1), bp_len (config2)."""

    name = "breakpoint"
    type = int(PerfType.BREAKPOINT)

    def __init__(self, kernel: DebuggedLinux, *, measures: bool = False) -> None:
        """`measures`: not for a guest. It has more slots then than the ISA."""
        architecture = kernel.architecture
        self._registers = kernel.debug_registers
        self._hardware = HARDWARE[architecture.isa]
        self._task_size = architecture.layout.task_size
        self._slots = Slots(self._hardware, self._registers, MEASURING_SLOTS if measures else 1)
        self._of_guest = not measures
        self._watched: dict[PerfEvent, Watched] = {}
        self._installed: dict[PerfEvent, HwBreakpoint] = {}

    def available(self, type: int) -> int:
        """How many of that type a CPU has."""
        return self._slots.available(type)

    # ---- opening

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != PerfType.BREAKPOINT:
            raise LinuxError(ENOENT, f"type {attr.type} is no breakpoint")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, "breakpoints have no branch records")
        watched = self._parse(event, attr)
        self._slots.reserve(event, event.target, event.cpu, attr.bp_type)
        event.when_destroyed.append(self._destroy)
        self._watched[event] = watched

    def _parse(self, event: PerfEvent, attr: PerfEventAttr) -> Watched:
        """hw_breakpoint_parse()."""
        asked = Watched(attr.config1, attr.config2, attr.bp_type)
        watched = self._hardware.parse(asked, event.of_task, self._task_size)
        if asked.address + asked.length > self._task_size:
            if attr.exclude_kernel:
                raise LinuxError(EINVAL, f"{asked}: exclude_kernel, and it is the kernel's")
            if event.owner is not None and not event.owner.credentials.has(CAP_SYS_ADMIN):
                raise LinuxError(EPERM, f"{asked}: the kernel's addresses need CAP_SYS_ADMIN")
            raise LinuxError(EOPNOTSUPP, f"{asked}: the modelled kernel executes nothing at an address of its own")
        return watched

    def _destroy(self, event: PerfEvent) -> None:
        self._slots.release(event)
        self._watched.pop(event, None)

    def modify(self, event: PerfEvent, attr: PerfEventAttr, *, check: bool = True) -> None:
        """modify_user_hw_breakpoint_check(): another place, or type. `check`: all else must be as the event's own.

        It counts afterwards unless attr.disabled says otherwise. EINVAL, ENOSPC: it is as before.
        """
        event.disable()
        try:
            watched = self._parse(event, attr)
            own = event.attr
            moved = own.copy(config1=attr.config1, config2=attr.config2, bp_type=attr.bp_type, disabled=attr.disabled)
            if check and moved.copy(size=attr.size) != attr:
                raise LinuxError(EINVAL, "IOC_MODIFY_ATTRIBUTES moves a breakpoint, and changes nothing else of it")
            if own.bp_type != attr.bp_type:
                self._slots.reserve(event, event.target, event.cpu, attr.bp_type)
            own.config1, own.config2, own.bp_type = attr.config1, attr.config2, attr.bp_type
            own.disabled = attr.disabled
            self._watched[event] = watched
        finally:
            if not event.attr.disabled:
                event.enable()

    # ---- counting

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        start_software_period(event)
        watched = self._watched[event]
        hit = partial(self._hit, event)
        installed = HwBreakpoint(watched.address, watched.length, watched.type, hit, self._of_guest)
        self._installed[event] = installed
        self._registers[cpu.number].install(installed)
        return True

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        assert event.on_cpu is not None, "it is on a CPU"
        self._registers[event.on_cpu.number].uninstall(self._installed.pop(event))

    def _hit(self, event: PerfEvent, cpu: Cpu) -> None:
        """perf_bp_event()."""
        if not event.hw.stopped and event.counts_at(Level.USER):
            count_occurrence(event, cpu, event.attr.config1)
