"""Inheritance: which events a child of a task has copies of, and what becomes of what those have counted."""

from __future__ import annotations

from emulator.linux.process.task import Task
from perfcore.abi.read_format import encode_read
from perfcore.events.event import PerfEvent


def is_inherited_by(event: PerfEvent, makes_thread: bool) -> bool:
    """attr.inherit, attr.inherit_thread."""
    return bool(event.attr.inherit) and (makes_thread or not event.attr.inherit_thread)


def sync_child_event(event: PerfEvent, parent: PerfEvent, task: Task) -> None:
    """What `event` counted of `task` goes to `parent`, from which it was inherited; it is no child of that any more."""
    values = event.read_values()
    if event.attr.inherit_stat:
        read = encode_read(event.attr.read_format, event.read_group())
        event.write_record(event.output.read_record(task.pid, task.tid, read))
    parent.child_count += values.value
    parent.child_enabled += values.enabled
    parent.child_running += values.running
    del parent.children[event]
