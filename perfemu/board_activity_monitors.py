"""The Activity Monitors of a board's CPUs, as the core file has them."""

from __future__ import annotations

from functools import partial

from emulator.board.generic_timer import NS_PER_TICK
from emulator.clock import Clock
from emulator.core_file.core_file import CoreFile
from emulator.cpu import Cpu
from emulator.machine import Hardware
from perfemu.errors import UsageError
from pmu.arm.activity_monitors import ActivityMonitors
from pmu.arm.amu_registers import MOST_AUXILIARY, Version
from pmu.event import Event, UnknownEvent
from pmu.model import PmuModel

_VERSIONS = {"v1": Version.V1, "v1p1": Version.V1P1}


def activity_monitors(hardware: Hardware, model: PmuModel) -> list[ActivityMonitors]:
    """One for each CPU, as firmware hands them to a kernel: all count. None where the core file has none.

    `model`: the core's PMU, whose events are those that monitors can count. Raises UsageError.
    """
    core = hardware.config.core
    table = core.activity_monitors
    if table is None:
        return []
    version, names = table
    auxiliary = _events(core, model, names)
    found = []
    for cpu in hardware.cpus:
        bank = cpu.core.add_bank(ActivityMonitors.bank_size(len(auxiliary)))
        constant = partial(_ticks, hardware.clock, cpu)
        found.append(ActivityMonitors(bank, _VERSIONS[version], model.events, auxiliary, constant))
        found[-1].start_all()
    return found


def _ticks(clock: Clock, cpu: Cpu) -> int:
    """Of the system counter, in which the CPU has not waited."""
    return clock.ns(clock.reference(cpu.core.cycles) - cpu.idle_cycles) // NS_PER_TICK


def _events(core: CoreFile, model: PmuModel, names: tuple[str, ...]) -> list[Event]:
    where = f"core {core.title}: activity_monitors"
    if model.driver != "arm_pmuv3":
        raise UsageError(f"{where}: they count a PMUv3's events, and the PMU is {model.name}")
    if len(names) > MOST_AUXILIARY:
        raise UsageError(f"{where}.auxiliary: {len(names)} events; there can be {MOST_AUXILIARY}")
    try:
        return [model.events.find(name) for name in names]
    except UnknownEvent as problem:
        raise UsageError(f"{where}.auxiliary: {problem}") from None
