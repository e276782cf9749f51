"""What a probe may look at when it is hit: registers, memory, the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emulator.cpu import Cpu
from emulator.linux.arch.architecture import Architecture
from emulator.linux.arch.x86_64 import USER_CS, USER_SS
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


# struct pt_regs, in its order: the name that %NAME has, and the register's name in `Architecture.register_names`
_X86_64 = (
    *(("r15", "r15"), ("r14", "r14"), ("r13", "r13"), ("r12", "r12"), ("bp", "rbp"), ("bx", "rbx"), ("r11", "r11")),
    *(("r10", "r10"), ("r9", "r9"), ("r8", "r8"), ("ax", "rax"), ("cx", "rcx"), ("dx", "rdx"), ("si", "rsi")),
    *(("di", "rdi"), ("orig_ax", ""), ("ip", "rip"), ("cs", ""), ("flags", "rflags"), ("sp", "rsp"), ("ss", "")),
)
_AARCH64 = (*((f"x{number}", f"x{number}") for number in range(31)), ("sp", "sp"), ("pc", "pc"), ("pstate", "pstate"))
PT_REGS = {"x86_64": _X86_64, "aarch64": _AARCH64}
_ALIASES = {"lr": "x30"}
_OF_EVERY_PROGRAM = {"orig_ax": (1 << 64) - 1, "cs": USER_CS, "ss": USER_SS}  # there was no system call


def find_register(architecture: Architecture, name: str) -> Callable[[Moment], int] | None:
    """Of ``%name``: regs_query_register_offset()."""
    native = dict(PT_REGS[architecture.isa]).get(_ALIASES.get(name, name))
    if native is None:
        return None
    if not native:
        value = _OF_EVERY_PROGRAM[name]
        return lambda moment: value
    number = architecture.register_names.index(native)
    return lambda moment: moment.register(number)
