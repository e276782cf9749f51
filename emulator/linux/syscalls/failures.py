"""How system calls fail: an errno, and SIGPIPE with it where nobody reads what is written."""

from __future__ import annotations

from emulator.linux.errors import BrokenPipe, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.signals.signal import SI_USER, SIGPIPE, SignalInfo


def fail(task: Task, error: LinuxError) -> int:
    """What a call returns that fails by `error`. Nothing else sends SIGPIPE."""
    if isinstance(error, BrokenPipe):
        info = SignalInfo(SIGPIPE, SI_USER, pid=task.pid, uid=task.credentials.uid)
        task.kernel.send_signal(task, info)
    return -error.code


def cut_short(task: Task, error: LinuxError, done: int) -> int:
    """... where `done` bytes came before it: these are the call's result, and the error is the next call's."""
    if not done:
        raise error
    if isinstance(error, BrokenPipe) and error.after_part:
        fail(task, error)
    return done
