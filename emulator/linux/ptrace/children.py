"""New tasks of traced ones: whether they are traced from their first instruction on (kernel/fork.c, kernel_clone)."""

from __future__ import annotations

from emulator.linux.process.cloning import CLONE_PTRACE, CLONE_UNTRACED, CLONE_VFORK
from emulator.linux.process.task import CloneRequest, Task
from emulator.linux.ptrace.links import event_of_clone, inherit


def trace_child(parent: Task, child: Task, request: CloneRequest) -> None:
    """`parent` is traced, and has just made `child`."""
    event = None
    if not request.flags & CLONE_UNTRACED:
        event = event_of_clone(parent, waits=bool(request.flags & CLONE_VFORK), exit_signal=request.exit_signal)
    if event is not None or request.flags & CLONE_PTRACE:
        inherit(parent, child, event)
