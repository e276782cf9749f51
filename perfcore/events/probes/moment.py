"""What a probe may look at when it is hit: registers, memory, the task."""

from __future__ import annotations

from typing import Protocol

from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from emulator.linux.process.task import Task

PAGE = 4096
STRIDE = 256  # bytes of a string that are read at once


class Moment(Protocol):
    """One hit, before the instruction executes."""

    def register(self, number: int) -> int:
        """By its native number."""

    @property
    def stack_pointer(self) -> int: ...

    @property
    def returned(self) -> int:
        """What the function that has just returned gives."""

    @property
    def comm(self) -> str: ...

    @property
    def file_base(self) -> int:
        """Where the beginning of the probed file would be mapped."""

    def read(self, address: int, size: int) -> bytes | None:
        """None where nothing can be read. Nothing is brought in: who looks changes nothing."""


class UserMoment:
    """In a process: its registers and its memory."""

    def __init__(self, architecture: Architecture, cpu: Cpu, task: Task, file_base: int) -> None:
        self._architecture, self._core, self._task = architecture, cpu.core, task
        self.file_base = file_base

    def register(self, number: int) -> int:
        return self._core.read_register(number)

    @property
    def stack_pointer(self) -> int:
        return self._core.read_register(self._architecture.sp)

    @property
    def returned(self) -> int:
        return self._core.read_register(self._architecture.result)

    @property
    def comm(self) -> str:
        return self._task.comm

    def read(self, address: int, size: int) -> bytes | None:
        return self._task.mm.peek(address, size)


def read_number(moment: Moment, address: int, size: int = 8) -> int | None:
    data = moment.read(address % (1 << 64), size)
    return None if data is None else int.from_bytes(data, "little")


def read_string(moment: Moment, address: int, limit: int) -> bytes:
    """With its NUL; cut to `limit` with one. Empty where it cannot be read, or has no end within a page."""
    text = b""
    address %= 1 << 64
    while len(text) < PAGE:
        data = moment.read(address + len(text), min(STRIDE - (address + len(text)) % STRIDE, PAGE - len(text)))
        if data is None:
            return b""
        end = data.find(0)
        text += data if end < 0 else data[:end]
        if end >= 0:
            return text[: limit - 1] + b"\0" if limit else b""
    return b""
