"""What events may be together: in one group, and in one buffer. As perf_event_open and perf_event_set_output."""

from __future__ import annotations

from emulator.linux.errors import E2BIG, EINVAL, LinuxError
from perfcore.abi.read_format import read_size
from perfcore.events.clocks import clock_id, clock_name
from perfcore.events.context import PerfEventContext
from perfcore.events.event import PerfEvent

READ_SIZE_LIMIT = 16 * 1024  # bytes of a group's reading, perf_event_validate_size


def check_group(event: PerfEvent, leader: PerfEvent, context: PerfEventContext) -> None:
    """Whether it can follow `leader`, where its own context is `context`."""
    if not leader.is_leader:
        raise LinuxError(EINVAL, "group_fd is not a group leader")
    if clock_id(leader.attr) != clock_id(event.attr):
        raise LinuxError(
            EINVAL, f"use_clockid: {clock_name(event.attr)}, the group leader has {clock_name(leader.attr)}"
        )
    if leader.cpu != event.cpu:
        raise LinuxError(EINVAL, f"cpu {event.cpu} is not the group leader's ({leader.cpu})")
    if leader.context is not context:
        raise LinuxError(EINVAL, "the group leader counts another task")
    if event.attr.exclusive or event.attr.pinned:
        raise LinuxError(EINVAL, "only a group leader can be exclusive or pinned")
    members = (leader, *leader.siblings.needing_counters, event)
    drivers = {member.driver.name for member in members if not member.driver.is_software}
    if len(drivers) > 1:
        raise LinuxError(EINVAL, f"a group has one hardware PMU, not {', '.join(sorted(drivers))}")


def check_size(event: PerfEvent, leader: PerfEvent | None) -> None:
    """perf_event_validate_size()."""
    members, formats = 1, {event.attr.read_format}
    if leader is not None:
        members = 2 + len(leader.siblings)
        formats |= {leader.attr.read_format} | leader.siblings.read_formats
    for read_format in formats:
        if read_size(read_format, members) >= READ_SIZE_LIMIT:
            raise LinuxError(E2BIG, f"a reading of {members} events has {READ_SIZE_LIMIT} bytes or more")


def check_output(event: PerfEvent, to: PerfEvent, context: PerfEventContext) -> None:
    """perf_event_set_output(): whether `event`, of `context`, may write the buffer of `to`."""
    if to is event or to.cpu != event.cpu or (to.cpu == -1 and to.context is not context):
        raise LinuxError(EINVAL, "the buffer must be another event's of the same CPU, or of the same task")
    if clock_id(to.attr) != clock_id(event.attr):
        raise LinuxError(EINVAL, f"the buffer's event has {clock_name(to.attr)}, this one {clock_name(event.attr)}")
    if to.attr.write_backward != event.attr.write_backward:
        raise LinuxError(EINVAL, "write_backward: one buffer is written in one direction")
    if event.driver.aux is not None and to.driver.aux is not None and event.driver is not to.driver:
        raise LinuxError(EINVAL, "units of two kinds cannot trace into one buffer's AUX area")
    if event.user_page is not None:
        raise LinuxError(EINVAL, "the event's own buffer is mapped")
    if to.ring_buffer is None:
        raise LinuxError(EINVAL, "the other event has no buffer")
