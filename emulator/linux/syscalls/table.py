"""The syscall table: one row per call, declared where it is implemented, with both ISAs' numbers and typed arguments.

    @syscall(aarch64=113, x86_64=228)
    def clock_gettime(task: Task, clock: int, tp: Out[Timespec]) -> int: ...

A handler returns its result (0 or positive), raises LinuxError, or returns None when it has set the registers itself
(rt_sigreturn, execve, exit). One that may sleep is a generator of Sleeps (emulator/linux/sched/waiting.py),
or gives one back. Annotations decode the arguments, once per call, by a decoder made at the first call:

- ``int``: C int (32 bits, signed): descriptors, flags, ids; ``UInt``: unsigned 32 bits
- ``Long``: 64 bits, signed (offsets); ``ULong``, ``Size``, ``Address``: 64 bits, unsigned
- ``Unused``: what only 32-bit machines look at
- ``Path``: NUL-terminated string in guest memory (EFAULT, ENAMETOOLONG); ``OptionalPath``: None for NULL
- ``In[T]``: a structure read from guest memory, ``OptionalIn[T]``: None for NULL; T has ``SIZE`` and ``unpack``
- ``Out[T]``: where a structure goes: ``out.write(value)``; false for NULL; T has ``pack``

Parameters have the names of Linux's SYSCALL_DEFINE, with an underscore behind those that are Python's. So
`Syscall.parameters` says to who shows a call (``perfemu trace``, the formats of tracepoints) what Linux says.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import NoneType
from typing import Annotated, Any, Generic, Protocol, Self, TypeVar, get_args, get_origin, get_type_hints

from emulator.linux.errors import ENAMETOOLONG, LinuxError
from emulator.linux.fs.paths import PATH_MAX
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping

Handler = Callable[..., int | Sleeping[int] | None]
Decoder = Callable[[Task, int], object]


class Support(Enum):
    """How far a syscall goes."""

    FULL = "full"
    PARTIAL = "partial"  # the note says what is missing
    ACCEPTED = "accepted"  # succeeds without effect, which is right in this machine; the note says why
    REFUSED = "refused"  # fails as a kernel without the feature does; the note says why


class Unpackable(Protocol):
    """A structure that user memory holds."""

    SIZE: int

    @classmethod
    def unpack(cls, data: bytes) -> Self: ...


class Packable(Protocol):
    def pack(self) -> bytes: ...


T = TypeVar("T")
P = TypeVar("P", bound=Packable, contravariant=True)
H = TypeVar("H", bound=Handler)


class Shown(Enum):
    """How an argument is read by a human."""

    INT = "int"  # 32 bits, signed
    UNSIGNED_INT = "unsigned int"
    LONG = "long"  # 64 bits, signed
    UNSIGNED_LONG = "unsigned long"
    ADDRESS = "address"
    STRING = "string"  # at the address, up to its NUL
    STRUCTURE = "structure"  # at the address: read by the call
    RESULT = "result"  # at the address: a structure that the call writes
    UNUSED = "unused"  # of 32-bit machines alone: nobody looks at it


@dataclass(frozen=True, slots=True)
class Decode:
    """An annotation: how an argument register becomes a value."""

    decode: Decoder | None  # None: the register as it is
    shown: Shown


class FromUser:
    """An annotation: a structure at the address in the register."""

    def __init__(self, optional: bool) -> None:
        self.optional = optional


def _int(task: Task, raw: int) -> int:
    raw &= 0xFFFFFFFF
    return raw - 0x1_0000_0000 if raw & 0x80000000 else raw


def _long(task: Task, raw: int) -> int:
    return raw - (1 << 64) if raw >> 63 else raw


def _path(task: Task, raw: int) -> str:
    path = task.mm.read_string(raw, PATH_MAX)
    if len(path) >= PATH_MAX:
        raise LinuxError(ENAMETOOLONG, f"a path of {PATH_MAX} bytes or more")
    return path.decode("utf-8", "surrogateescape")


UInt = Annotated[int, Decode(lambda task, raw: raw & 0xFFFFFFFF, Shown.UNSIGNED_INT)]
Long = Annotated[int, Decode(_long, Shown.LONG)]
ULong = Annotated[int, Decode(None, Shown.UNSIGNED_LONG)]
Size = Annotated[int, Decode(None, Shown.UNSIGNED_LONG)]
Address = Annotated[int, Decode(None, Shown.ADDRESS)]
Unused = Annotated[int, Decode(None, Shown.UNUSED)]
Path = Annotated[str, Decode(_path, Shown.STRING)]
OptionalPath = Annotated[str | None, Decode(lambda task, raw: _path(task, raw) if raw else None, Shown.STRING)]
In = Annotated[T, FromUser(optional=False)]
OptionalIn = Annotated[T | None, FromUser(optional=True)]


class Out(Generic[P]):
    """Where in guest memory a result goes. False for NULL."""

    __slots__ = ("address", "mm")

    def __init__(self, mm: MemoryMap, address: int) -> None:
        self.mm = mm
        self.address = address

    def __bool__(self) -> bool:
        return self.address != 0

    def write(self, value: P) -> None:
        self.mm.write(self.address, value.pack())


def _structure(kind: type[Unpackable], optional: bool) -> Decoder:
    def decode(task: Task, raw: int) -> Unpackable | None:
        if optional and raw == 0:
            return None
        return kind.unpack(task.mm.read(raw, kind.SIZE))

    return decode


def _structure_of(kind: Any) -> Any:
    """T of ``In``'s and ``OptionalIn``'s annotated type, which is T or T | None."""
    return next((member for member in get_args(kind) if member is not NoneType), kind)


def _decoder(annotation: object, where: str) -> Decoder | None:
    """The decoder of one annotated parameter; None passes the register through."""
    if annotation is int:
        return _int
    if get_origin(annotation) is Out:
        return lambda task, raw: Out(task.mm, raw)
    if get_origin(annotation) is Annotated:
        kind, *marks = get_args(annotation)
        for mark in marks:
            if isinstance(mark, Decode):
                return mark.decode
            if isinstance(mark, FromUser):
                return _structure(_structure_of(kind), mark.optional)
    raise TypeError(f"{where}: {annotation} is not a syscall argument type; see emulator/linux/syscalls/table.py")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a call. `structure`: what is read from, or written to, the address in it."""

    name: str
    shown: Shown
    structure: type | None = None


def _parameter(name: str, annotation: object) -> Parameter:
    if annotation is int:
        return Parameter(name, Shown.INT)
    kind, *marks = get_args(annotation)
    if get_origin(annotation) is Out:
        return Parameter(name, Shown.RESULT, kind)
    for mark in marks:
        if isinstance(mark, Decode):
            return Parameter(name, mark.shown)
    return Parameter(name, Shown.STRUCTURE, _structure_of(kind))


@dataclass(frozen=True, slots=True)
class Syscall:
    """One row."""

    name: str
    handler: Handler
    aarch64: int | None
    x86_64: int | None
    support: Support
    note: str

    def number(self, isa: str) -> int | None:
        return self.aarch64 if isa == "aarch64" else self.x86_64

    def _annotations(self) -> dict[str, object]:
        hints = get_type_hints(self.handler, include_extras=True)
        hints.pop("return", None)
        hints.pop("task", None)
        return hints

    def parameters(self) -> tuple[Parameter, ...]:
        """The call's arguments, in the order of their registers."""
        return tuple(_parameter(name.rstrip("_"), kind) for name, kind in self._annotations().items())

    def compile(self) -> Callable[[Task, tuple[int, ...]], int | Sleeping[int] | None]:
        """A function of the task and the six argument registers."""
        hints = self._annotations()
        decoders = [_decoder(annotation, f"{self.name}({name})") for name, annotation in hints.items()]
        handler = self.handler
        if len(decoders) > 6:
            raise TypeError(f"{self.name}: {len(decoders)} arguments; a syscall has at most 6")
        count = len(decoders)
        decoded = [(index, decoder) for index, decoder in enumerate(decoders) if decoder is not None]
        if not decoded:
            return lambda task, raw: handler(task, *raw[:count])

        def call(task: Task, raw: tuple[int, ...]) -> int | Sleeping[int] | None:
            values: list[object] = list(raw[:count])
            for index, decode in decoded:
                values[index] = decode(task, raw[index])
            return handler(task, *values)

        return call


ROWS: list[Syscall] = []


def syscall(
    *, aarch64: int | None = None, x86_64: int | None = None, support: Support = Support.FULL, note: str = ""
) -> Callable[[H], H]:
    """Declare a row. A call that an ISA does not have has no number there."""

    def declare(handler: H) -> H:
        if support is not Support.FULL and not note:
            raise TypeError(f"{handler.__name__}: support {support.value} needs a note that says why")
        ROWS.append(Syscall(handler.__name__, handler, aarch64, x86_64, support, note))
        return handler

    return declare


def load() -> list[Syscall]:
    """Every row of every family in this folder, in the order of file names."""
    package = importlib.import_module("emulator.linux.syscalls")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        importlib.import_module(f"emulator.linux.syscalls.{module.name}")
    return ROWS


def by_number(rows: list[Syscall], isa: str) -> dict[int, Syscall]:
    table: dict[int, Syscall] = {}
    for row in rows:
        number = row.number(isa)
        if number is None:
            continue
        if number in table:
            raise ValueError(f"{isa} syscall {number} is both {table[number].name} and {row.name}")
        table[number] = row
    return table
