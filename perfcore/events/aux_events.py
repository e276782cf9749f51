"""Events of units that trace into an AUX area, and events that need one: aux_output, aux_sample_size, aux_action."""

from __future__ import annotations

from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import AuxAction
from perfcore.abi.records import ItraceStart
from perfcore.events.event import PerfEvent


def needs_aux_event(attr: PerfEventAttr) -> bool:
    """perf_need_aux_event()"""
    return bool(attr.aux_output or attr.aux_sample_size or attr.aux_action & (AuxAction.PAUSE | AuxAction.RESUME))


def check_aux(event: PerfEvent) -> None:
    """Of perf_event_alloc() what is about AUX areas."""
    attr, driver, action = event.attr, event.driver, event.attr.aux_action
    if attr.aux_output and (not driver.writes_aux or action & (AuxAction.PAUSE | AuxAction.RESUME)):
        raise LinuxError(EOPNOTSUPP, f"aux_output: {driver.name} cannot write into another unit's trace")
    if action & AuxAction.PAUSE and action & AuxAction.RESUME:
        raise LinuxError(EINVAL, "aux_pause and aux_resume exclude each other")
    if action & AuxAction.START_PAUSED:
        if driver.aux is None or not driver.aux.pausable:
            raise LinuxError(EOPNOTSUPP, f"aux_start_paused: {driver.name} cannot pause")
        event.aux.paused = True


def aux_event_for(event: PerfEvent, leader: PerfEvent | None) -> PerfEvent | None:
    """perf_get_aux_event(): the leader, if its unit takes the event's output, or copies of its area into samples.

    So it precedes `event` in the group, and is put on first.
    """
    attr, unit = event.attr, None if leader is None else leader.driver.aux
    if unit is None or (attr.aux_output and attr.aux_sample_size):
        return None
    if attr.aux_output and not unit.aux_output_match(event):
        return None
    if attr.aux_action & (AuxAction.PAUSE | AuxAction.RESUME) and not unit.pausable:
        return None
    if attr.aux_sample_size and not unit.takes_snapshots:
        return None
    return leader


def leave_aux_event(event: PerfEvent) -> list[PerfEvent]:
    """perf_put_aux_event(), when `event` leaves its group: those that needed it, which shall go off their CPU."""
    event.aux.source = None
    orphans = [sibling for sibling in event.siblings if sibling.aux.source is event]
    for sibling in orphans:
        sibling.aux.source = None
    return orphans


def log_itrace_start(event: PerfEvent) -> None:
    """perf_log_itrace_start(): whose trace it is, whenever it goes on, until the driver has begun one."""
    opened = event.parent or event
    unit, cpu = opened.driver.aux, event.on_cpu
    if unit is None or not unit.itrace or opened.aux.itrace_started or cpu is None:
        return
    opened.write_record(event.output.record(ItraceStart(*event.kernel.thread(cpu)), cpu=cpu))
