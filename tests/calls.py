"""System calls without a scheduler: what a handler gives back, and for one that sleeps what it is told."""

from __future__ import annotations

from collections.abc import Callable, Generator

from emulator.linux.fs.destination import KernelBuffer
from emulator.linux.fs.file import Caller, File
from emulator.linux.sched.waiting import Sleep, Sleeping, Wake


def result_of(given: int | Sleeping[int] | None, answer: Callable[[Sleep], Wake]) -> int | None:
    """The result of a call; whenever it sleeps, `answer` says what wakes it. Raises LinuxError as the call does."""
    if not isinstance(given, Generator):
        return given
    try:
        sleep = next(given)
        while sleep.interruptible or sleep.works_cycles:
            sleep = given.send(Wake.CONTINUE if sleep.works_cycles else answer(sleep))
    except StopIteration as stop:
        result: int | None = stop.value
        return result
    given.close()  # for ever, as nobody is there
    return None


def interrupted(sleep: Sleep) -> Wake:
    """A signal comes at once."""
    return Wake.SIGNAL


def read_of(file: File, task: Caller, size: int) -> bytes:
    """What read(2) gives."""
    buffer = KernelBuffer(size)
    assert file.read(task, buffer) == len(buffer.data)
    return buffer.data
