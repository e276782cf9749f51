"""BPF programs as events see them. perfcore/bpf has them; nothing of it is known here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from emulator.cpu import Cpu
from emulator.linux.errors import E2BIG, EACCES, EEXIST, EINVAL, LinuxError
from emulator.linux.fs.file import O_RDWR, File
from perfcore.abi.bpf import ProgType

Register = Callable[[int], int]
"""What a register holds, by its native number."""


class Registers(Protocol):
    """What is seen where a probe is hit."""

    def register(self, number: int) -> int: ...


MOST_PROGRAMS = 64  # BPF_TRACE_MAX_PROGS, of one tracepoint


class OverflownEvent(Protocol):
    """The event that a program is run for."""


class Program(Protocol):
    """One that has been verified. What it returns is whether the occurrence counts as one."""

    id: int

    @property
    def type(self) -> ProgType: ...

    @property
    def last_context_byte(self) -> int:
        """How much of a tracepoint's data it reads."""

    def retain(self) -> None: ...
    def release(self) -> None: ...

    def on_overflow(self, cpu: Cpu, event: OverflownEvent, cookie: int, period: int, address: int) -> bool:
        """bpf_overflow_handler()"""

    def on_tracepoint(self, cpu: Cpu, cookie: int, raw: bytes) -> bool:
        """`raw`: the occurrence as its format has it."""

    def on_probe(self, cpu: Cpu, cookie: int, places: tuple[int, ...], register: Register) -> bool:
        """`places`: an instruction's address, or a function's and where it has returned to."""


class ProgramFile(File):
    """A program behind a descriptor."""

    def __init__(self, program: Program, path: str) -> None:
        super().__init__(O_RDWR, path)
        self.program = program
        program.retain()

    def close(self) -> None:
        self.program.release()


class Attached:
    """A program, and what it was attached with."""

    def __init__(self, program: Program, cookie: int) -> None:
        self.program = program
        self.cookie = cookie

    def wants_overflow(self, cpu: Cpu, event: OverflownEvent, period: int, address: int) -> bool:
        """Whether an overflow has effects: unless the program is for it, and says no."""
        program = self.program
        return program.type != ProgType.PERF_EVENT or program.on_overflow(cpu, event, self.cookie, period, address)


class ProgramArray:
    """The programs of one tracepoint, in the order in which they came: each is run at every occurrence.

    `size`: bytes of an occurrence's data, which programs of type `wanted` may read.
    """

    def __init__(self, wanted: ProgType, size: int) -> None:
        self.type = wanted
        self._size = size
        self._attached: list[Attached] = []
        self.on_change: Callable[[], None] = lambda: None

    def __bool__(self) -> bool:
        return bool(self._attached)

    @property
    def ids(self) -> list[int]:
        return [each.program.id for each in self._attached]

    def check(self, program: Program, attached: Attached | None) -> None:
        """perf_event_set_bpf_prog(). `attached`: what the event has."""
        if program.type != self.type:
            raise LinuxError(
                EINVAL, f"a program of type {program.type.name} is not for this event, but {self.type.name}"
            )
        if self.type == ProgType.TRACEPOINT and program.last_context_byte > self._size:
            raise LinuxError(
                EACCES, f"the program reads {program.last_context_byte} bytes, where there are {self._size}"
            )
        if attached is not None:
            raise LinuxError(EEXIST, "the event has a program")

    def add(self, attached: Attached) -> None:
        if len(self._attached) >= MOST_PROGRAMS:
            raise LinuxError(E2BIG, f"the tracepoint has {MOST_PROGRAMS} programs")
        self._attached.append(attached)
        self.on_change()

    def remove(self, attached: Attached) -> None:
        self._attached.remove(attached)
        self.on_change()

    def on_tracepoint(self, cpu: Cpu, raw: bytes) -> bool:
        """trace_call_bpf(): whether all of them say so."""
        wanted = True
        for each in tuple(self._attached):
            wanted &= each.program.on_tracepoint(cpu, each.cookie, raw)
        return wanted

    def on_probe(self, cpu: Cpu, places: tuple[int, ...], register: Register) -> bool:
        wanted = True
        for each in tuple(self._attached):
            wanted &= each.program.on_probe(cpu, each.cookie, places, register)
        return wanted


def check_for_overflow(program: Program, attached: Attached | None) -> None:
    """perf_event_set_bpf_handler()"""
    if attached is not None:
        raise LinuxError(EEXIST, "the event has a program")
    if program.type != ProgType.PERF_EVENT:
        raise LinuxError(EINVAL, f"a program of type {program.type.name} is not for events that overflow")


E = TypeVar("E", bound="EventWithProgram", contravariant=True)


class ProgramsOfEvents(Protocol[E]):
    """A driver."""

    def programs(self, event: E) -> ProgramArray | None: ...


class EventWithProgram(Protocol):
    """An event, as programs are attached to it."""

    attached: Attached | None

    @property
    def driver(self) -> ProgramsOfEvents[Any]: ...
    @property
    def parent(self) -> EventWithProgram | None: ...
    @property
    def children(self) -> Iterable[EventWithProgram]: ...


def set_program(event: EventWithProgram, program: Program, cookie: int = 0) -> None:
    """PERF_EVENT_IOC_SET_BPF. LinuxError where the two do not go together."""
    programs = event.driver.programs(event)
    attached = Attached(program, cookie)
    if programs is None:
        check_for_overflow(program, event.attached)
    else:
        programs.check(program, event.attached)
        programs.add(attached)
    event.attached = attached
    program.retain()


def drop_program(event: EventWithProgram) -> None:
    """It is run no more."""
    attached, event.attached = event.attached, None
    if attached is None or event.parent is not None:  # who was inherited runs what is another's
        return
    programs = event.driver.programs(event)
    if programs is not None:
        programs.remove(attached)
    for child in event.children:
        child.attached = None
    attached.program.release()
