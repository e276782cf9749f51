"""Register: declare a register's bits once; reading, writing, printing and encoding follow from the declaration.

A class is the declaration and holds no state: what a register contains lives in the device, under the name `stored_in`.
An instance is one 64-bit value seen through the declaration: ``PMCR_EL0(0x41).E`` is 1, and prints as
``PMCR_EL0{E=1 LC=1}``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, overload

from emulator.sysregs import Encoding

ALL_BITS = (1 << 64) - 1


class OnWrite(Enum):
    """What software's write does to a field."""

    STORE = "stored"
    IGNORE = "ignored"
    COMMAND = "obeyed by the device, not stored"
    SET = "ones set, zeros do nothing"
    CLEAR = "ones clear, zeros do nothing"


@dataclass(frozen=True, slots=True)
class Field:
    """Bits ``hi..lo`` of a register. From the class it is this declaration, from a value the field's number."""

    hi: int
    lo: int
    readable: bool
    on_write: OnWrite

    @property
    def width(self) -> int:
        return self.hi - self.lo + 1

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << self.width) - 1) << self.lo

    @overload
    def __get__(self, instance: None, owner: type[Register]) -> Field: ...
    @overload
    def __get__(self, instance: Register, owner: type[Register]) -> int: ...
    def __get__(self, instance: Register | None, owner: type[Register]) -> Field | int:
        return self if instance is None else (instance.value & self.mask) >> self.lo


def RW(hi: int, lo: int | None = None) -> Field:
    """Read, write."""
    return Field(hi, hi if lo is None else lo, True, OnWrite.STORE)


def RO(hi: int, lo: int | None = None) -> Field:
    """Read only: writes are ignored."""
    return Field(hi, hi if lo is None else lo, True, OnWrite.IGNORE)


def WO(hi: int, lo: int | None = None) -> Field:
    """Write only: a command to the device; reads as zero."""
    return Field(hi, hi if lo is None else lo, False, OnWrite.COMMAND)


def W1S(hi: int, lo: int | None = None, *, readable: bool = True) -> Field:
    """Write one to set."""
    return Field(hi, hi if lo is None else lo, readable, OnWrite.SET)


def W1C(hi: int, lo: int | None = None, *, readable: bool = True) -> Field:
    """Write one to clear."""
    return Field(hi, hi if lo is None else lo, readable, OnWrite.CLEAR)


@dataclass(frozen=True, slots=True)
class Bank:
    """`count` registers of one layout. `name` has ``{}`` for the number; `encode(n)` is the encoding of number n."""

    count: int
    name: str
    encode: Callable[[int], Encoding]


class Register:
    """Base of every declaration: class attributes that are `Field`s, and the few facts below."""

    encoding: ClassVar[Encoding | None] = None
    bank: ClassVar[Bank | None] = None  # instead of `encoding`, for numbered registers
    stored_in: ClassVar[str] = ""  # registers that share one storage name it; otherwise the class's name
    again: ClassVar[bool] = False  # shows the bits of another register once more
    event_field: ClassVar[str] = ""  # of a register that selects a counter's event: the field that names it
    reserved_bits_fault: ClassVar[bool] = False  # writing a one to an undeclared bit is an error (x86: #GP)

    fields: ClassVar[dict[str, Field]] = {}
    readable: ClassVar[int] = 0  # masks over all fields, from the declaration
    declared: ClassVar[int] = 0
    _on_write: ClassVar[tuple[int, int, int, int]] = (0, ALL_BITS, 0, 0)  # masks: reserved, kept, stored, cleared

    __slots__ = ("value",)

    def __init_subclass__(cls) -> None:
        own = {name: field for name, field in vars(cls).items() if isinstance(field, Field)}
        for name in own:
            if hasattr(Register, name):
                raise TypeError(f"{cls.__name__}.{name}: the name is taken by Register.{name}")
        cls.fields = {**cls.fields, **own}
        cls.stored_in = vars(cls).get("stored_in", cls.__name__)
        masks = dict.fromkeys(OnWrite, 0)
        used = 0
        for name, field in cls.fields.items():
            if not 0 <= field.lo <= field.hi <= 63:
                raise TypeError(
                    f"{cls.__name__}.{name}: bits {field.hi}:{field.lo} are not within 63:0, high bit first"
                )
            if used & field.mask:
                raise TypeError(f"{cls.__name__}.{name}: bits {field.hi}:{field.lo} are already declared")
            used |= field.mask
            masks[field.on_write] |= field.mask
        cls.declared = used
        cls.readable = sum(field.mask for field in cls.fields.values() if field.readable)
        cls._on_write = (
            ALL_BITS & ~used if cls.reserved_bits_fault else 0,
            ALL_BITS & ~masks[OnWrite.STORE],
            masks[OnWrite.STORE] | masks[OnWrite.SET],
            masks[OnWrite.CLEAR],
        )

    # the declaration at work, on the device's storage

    @classmethod
    def read(cls, stored: int) -> int:
        """What software reads when the storage holds `stored`."""
        return stored & cls.readable

    @classmethod
    def write(cls, stored: int, value: int) -> int:
        """What the storage holds after software has written `value`."""
        reserved, kept, taken, cleared = cls._on_write
        if value & reserved:
            raise ValueError(f"{cls.__name__}: bits {value & reserved:#x} of {value:#x} are reserved")
        written = stored & kept | value & taken
        return written & ~(value & cleared) if cleared else written

    @classmethod
    def make(cls, **values: int) -> int:
        """The register's number from its fields by name: ``PMCR_EL0.make(E=1, LC=1)``."""
        number = 0
        for name, value in values.items():
            field = cls.fields.get(name)
            if field is None:
                raise ValueError(f"{cls.__name__} has no field {name}; it has {', '.join(cls.fields)}")
            if value >> field.width:
                raise ValueError(f"{cls.__name__}.{name}: {value:#x} does not fit in {field.width} bits")
            number |= value << field.lo
        return number

    @classmethod
    def name_of(cls, index: int = 0) -> str:
        """The register's name as the manual prints it, numbered if it is one of a bank."""
        return cls.__name__ if cls.bank is None else cls.bank.name.format(index)

    @classmethod
    def encoding_of(cls, index: int = 0) -> Encoding:
        """How an instruction names the register."""
        if cls.bank is not None:
            if not 0 <= index < cls.bank.count:
                raise ValueError(f"{cls.name_of(index)} has no encoding: there are {cls.bank.count} of them")
            return cls.bank.encode(index)
        if cls.encoding is None or index:
            raise ValueError(f"{cls.__name__}[{index}] has no encoding")
        return cls.encoding

    # one value, seen through the declaration

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Register) and other.value == self.value

    def __hash__(self) -> int:
        return hash((type(self), self.value))

    def __repr__(self) -> str:
        """Fields that are not zero, lowest first; bits that no field declares as ``?=``."""
        shown = [
            f"{name}={number if field.width < 8 else hex(number)}"
            for name, field in sorted(self.fields.items(), key=lambda item: item[1].lo)
            if (number := (self.value & field.mask) >> field.lo)
        ]
        if rest := self.value & ~self.declared:
            shown.append(f"?={rest:#x}")
        return f"{type(self).__name__}{{{' '.join(shown)}}}"
