"""Waiting: a task waits until something is ready. Only timers can change anything while the only task waits."""

from __future__ import annotations

from collections.abc import Callable

from emulator.linux.errors import ERESTARTNOHAND, ERESTARTSYS, LinuxError
from emulator.linux.task import Task


def wait_until(
    task: Task, ready: Callable[[], bool], what: str, until_ns: int | None = None, *, restart: bool = True
) -> bool:
    """Idle until `ready()`; False if `until_ns` of the machine's clock came first.

    A signal breaks it off: with `restart` the syscall starts again after a handler with SA_RESTART. What nothing can
    end is named to the user and ends the task.
    """
    kernel = task.kernel
    while not ready():
        if until_ns is not None and kernel.clock.elapsed_ns() >= until_ns:
            return False
        due_ns = kernel.timers.next_time()
        if until_ns is not None and (due_ns is None or due_ns > until_ns):
            due_ns = until_ns
        if due_ns is None:
            kernel.name_once(f"{what} waits for what nobody can bring")
        if not kernel.sleep_until(task, due_ns):
            raise LinuxError(ERESTARTSYS if restart else ERESTARTNOHAND, f"{what}: a signal came")
    return True
