"""Job control: what the console does to the processes of one kernel (drivers/tty/tty_jobctrl.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.linux.errors import EIO, ERESTARTSYS, LinuxError
from emulator.linux.file import Caller
from emulator.linux.signal import SIGTTIN, SignalInfo
from emulator.linux.signal_sending import is_orphaned, send_to_process
from emulator.linux.task import Process, Task


class Calls(Protocol):
    """Who makes calls between two turns (a ``Scheduler``)."""

    def call_soon(self, call: Callable[[], None]) -> None: ...

    def make_calls(self) -> None: ...


class KernelJobs:
    """``emulator.linux.console.JobControl`` over a kernel's tasks."""

    def __init__(self, tasks: dict[int, Task], calls: Calls) -> None:
        self._tasks = tasks
        self._calls = calls

    def call_soon(self, call: Callable[[], None]) -> None:
        self._calls.call_soon(call)

    def make_calls(self) -> None:
        self._calls.make_calls()

    def signal_group(self, group: int, signal: int) -> None:
        for process in self._group(group) or self._alive()[:1]:
            send_to_process(process, SignalInfo(signal))

    def check_reader(self, task: Caller, foreground: int) -> None:
        reader = self._tasks[task.tid]
        if reader.pgid == foreground or not self._group(foreground):
            return
        complaint = f"group {reader.pgid} is not in the terminal's foreground"
        if reader.signals.ignored(SIGTTIN) or reader.signals.kept_away(SIGTTIN) or is_orphaned(reader.process):
            raise LinuxError(EIO, complaint)
        for process in self._group(reader.pgid):
            send_to_process(process, SignalInfo(SIGTTIN))
        raise LinuxError(ERESTARTSYS, complaint)

    def _group(self, group: int) -> list[Process]:
        return [process for process in self._alive() if process.pgid == group]

    def _alive(self) -> list[Process]:
        """In the order of their making."""
        return [task.process for task in self._tasks.values() if task.tid == task.pid and task.exit_code is None]
