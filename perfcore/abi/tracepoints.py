"""Kernel tracepoints that can be events: what each tells, as fields, and how tracefs describes that to a reader.

attr.config is the id that tracefs shows. Linux's ids differ by its build; these are our own, and stay.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Value = int | str | bytes | tuple[int | bytes, ...]
"""Of a field: a number, a string, one as it stands in memory with its NUL (or empty: there was none), or an array."""

COMM_BYTES = 16  # TASK_COMM_LEN
TO_THE_END = -1  # the length of an array that takes the rest of the record
LOCATION = "__data_loc char[]"  # a string behind the fixed part: its offset, and above 16 bits its length with the NUL


class _Type(NamedTuple):
    """A C type, for both ISAs."""

    code: str  # of struct
    size: int  # bytes
    signed: bool


_TYPES = {
    "unsigned short": _Type("H", 2, False),
    "unsigned char": _Type("B", 1, False),
    "char": _Type("s", 1, False),
    "short": _Type("h", 2, True),
    "int": _Type("i", 4, True),
    "pid_t": _Type("i", 4, True),
    "clockid_t": _Type("i", 4, True),
    "enum hrtimer_mode": _Type("I", 4, False),
    "bool": _Type("B", 1, False),
    "long": _Type("q", 8, True),
    "unsigned long": _Type("Q", 8, False),
    "u8": _Type("B", 1, False),
    "u16": _Type("H", 2, False),
    "u32": _Type("I", 4, False),
    "u64": _Type("Q", 8, False),
    "unsigned int": _Type("I", 4, False),
    "unsigned long long": _Type("Q", 8, False),
    "void *": _Type("Q", 8, False),
    "s8": _Type("b", 1, True),
    "s16": _Type("h", 2, True),
    "s32": _Type("i", 4, True),
    "s64": _Type("q", 8, True),
    LOCATION: _Type("I", 4, False),
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of what a tracepoint tells."""

    type: str  # a key of _TYPES
    name: str
    length: int = 0  # of an array, or TO_THE_END; 0: it is none
    c_type: str = ""  # its type in C, where it lies there as another

    @property
    def size(self) -> int:
        return 0 if self.length == TO_THE_END else _TYPES[self.type].size * (self.length or 1)

    @property
    def declared(self) -> str:
        """In C."""
        length = "" if self.length == TO_THE_END else self.length
        return f"{self.c_type or self.type} {self.name}" + (f"[{length}]" if self.length else "")

    @property
    def signed(self) -> bool:
        return _TYPES[self.type].signed

    def line(self, offset: int) -> str:
        """As tracefs has it."""
        return f"\tfield:{self.declared};\toffset:{offset};\tsize:{self.size};\tsigned:{int(self.signed)};\n"


class FilterField(NamedTuple):
    """A field as filters see it."""

    name: str
    is_string: bool
    is_signed: bool
    bits: int  # of a number; those of an array are of no use

    def wrapped(self, number: int) -> int:
        """As its C type holds it."""
        number &= (1 << self.bits) - 1
        return number - (1 << self.bits) if self.is_signed and number >> self.bits - 1 else number


COMMON_FIELDS = (  # struct trace_entry
    Field("unsigned short", "common_type"),
    Field("unsigned char", "common_flags"),
    Field("unsigned char", "common_preempt_count"),
    Field("int", "common_pid"),
)


@dataclass(frozen=True)
class TracepointEvent:
    """One tracepoint. `print_format` is C, over REC: what a reader makes of the fields."""

    id: int
    system: str
    name: str
    fields: tuple[Field, ...]
    print_format: str
    packed: bool = False  # its own fields follow each other without padding

    @property
    def full_name(self) -> str:
        return f"{self.system}:{self.name}"

    @property
    def _all_fields(self) -> tuple[Field, ...]:
        """In the order in which they lie there."""
        return *COMMON_FIELDS, *self.fields

    @cached_property
    def filter_fields(self) -> dict[str, FilterField]:
        """By name: its own, the common ones, and what there is of all events."""
        found = {
            field.name: FilterField(field.name, field.type in ("char", LOCATION), field.signed, 8 * field.size)
            for field in self._all_fields
        }
        for name in ("COMM", "comm"):
            found.setdefault(name, FilterField(name, True, False, 0))
        for name in ("CPU", "cpu"):
            found.setdefault(name, FilterField(name, False, False, 32))
        return found

    def filtered(self, tid: int, comm: str, cpu: int, values: Sequence[Value]) -> dict[str, Value]:
        """What a filter sees of an occurrence."""
        general: dict[str, Value] = {"COMM": comm, "comm": comm, "CPU": cpu, "cpu": cpu, "common_type": self.id}
        general |= {"common_flags": 0, "common_preempt_count": 0, "common_pid": tid}
        return general | {field.name: _seen(field, value) for field, value in zip(self.fields, values, strict=True)}

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        """Of the common fields and the event's own, each aligned as C does."""
        offsets, end = [], 0
        for field in self._all_fields:
            alignment = 1 if self.packed else _TYPES[field.type].size
            end = -(-end // alignment) * alignment
            offsets.append(end)
            end += field.size
        return tuple(offsets)

    @cached_property
    def _layout(self) -> struct.Struct:
        layout, end = "<", 0
        for field, offset in zip(self._all_fields, self._offsets, strict=True):
            layout += f"{offset - end}x{field.length or ''}{_TYPES[field.type].code}"
            end = offset + field.size
        return struct.Struct(layout)

    @property
    def size(self) -> int:
        """Bytes of the fixed part."""
        return self._layout.size

    @property
    def text(self) -> str:
        """The tracepoint's file `format`."""
        lines = [field.line(offset) for field, offset in zip(self._all_fields, self._offsets, strict=True)]
        common, own = "".join(lines[: len(COMMON_FIELDS)]), "".join(lines[len(COMMON_FIELDS) :])
        return f"name: {self.name}\nID: {self.id}\nformat:\n{common}\n{own}\nprint fmt: {self.print_format}\n"

    def pack(self, tid: int, values: Sequence[Value]) -> bytes:
        """The raw data of an occurrence in thread `tid`; `values` are the fields' in order."""
        packed: list[int | bytes] = [self.id, 0, 0, tid]
        behind = b""
        for field, value in zip(self.fields, values, strict=True):
            if isinstance(value, str):
                value = value.encode("utf-8", "surrogateescape") + (b"\0" if field.type == LOCATION else b"")
            for element in value if isinstance(value, tuple) else (value,):
                if field.type == LOCATION and isinstance(element, bytes):
                    packed.append(self._layout.size + len(behind) | len(element) << 16)
                    behind += element
                else:
                    packed.append(element)
        return self._layout.pack(*packed) + behind


def _seen(field: Field, value: Value) -> Value:
    """A filter looks at text, and at an array as one number."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "surrogateescape")
    if not isinstance(value, tuple):
        return value
    bits = 8 * _TYPES[field.type].size
    numbers = (element if isinstance(element, int) else 0 for element in value)
    return sum((number & (1 << bits) - 1) << bits * index for index, number in enumerate(numbers))


FIRST_SYSCALL_ID = 1000  # sys_enter of call 0; its sys_exit is next, then call 1
_NOT_A_FIELD = re.compile(r"\W")


def enter_event(call: str, number: int, parameters: Sequence[tuple[str, str]]) -> TracepointEvent:
    """syscalls:sys_enter_CALL; of each parameter its C type and its name. Each is 8 bytes there, whatever its type."""
    names = [_NOT_A_FIELD.sub("_", name) for _, name in parameters]
    text = ", ".join(f"{name}: 0x%08lx" for name in names)
    values = "".join(f", ((unsigned long)(REC->{name}))" for name in names)
    own = (Field("unsigned long", name, c_type=type) for (type, _), name in zip(parameters, names, strict=True))
    fields = (Field("int", "__syscall_nr"), *own)
    name = f"sys_enter_{call}"
    return TracepointEvent(FIRST_SYSCALL_ID + 2 * number, "syscalls", name, fields, f'"{text}"{values}')


def exit_event(call: str, number: int) -> TracepointEvent:
    """syscalls:sys_exit_CALL."""
    fields = (Field("int", "__syscall_nr"), Field("long", "ret"))
    name = f"sys_exit_{call}"
    return TracepointEvent(FIRST_SYSCALL_ID + 2 * number + 1, "syscalls", name, fields, '"0x%lx", REC->ret')


def syscall_of(id: int) -> tuple[int, bool]:
    """The number behind an id of `enter_event` or `exit_event`, and whether it is of the end."""
    number, exits = divmod(id - FIRST_SYSCALL_ID, 2)
    return number, bool(exits)


# What kernel/trace/ring_buffer.c says of its pages and events: no reader needs it of us, and each wants it.
HEADER_PAGE = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
)
HEADER_EVENT = (
    "# compressed entry header\n"
    "\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n"
    "\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n"
    "\tdata max type_len  == 28\n"
)
