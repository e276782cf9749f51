"""What a PMU's registers hold, field by field. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from pmu.device import Pmu
from pmu.event import Event
from pmu.register import Register
from pmu.register_notes import bits, notes


class Registers(Protocol):
    """What has registers."""

    def read(self, register: type[Register], index: int = 0) -> int: ...

    def registers(self) -> list[type[Register]]:
        """Those that can be read or written, in the order of declaration."""

    def registers_of(self, register: type[Register]) -> int:
        """How many there are, each with a number of its own."""

    def can_read(self, register: type[Register]) -> bool: ...

    def event_of(self, counter: int) -> Event | None:
        """The event that an event counter is set to; None if this PMU does not count it."""


class RegisterFile(Registers, Pmu, Protocol):
    """A PMU, with all that it has."""


@dataclass(frozen=True, slots=True)
class FieldView:
    name: str
    hi: int
    lo: int
    value: int
    meaning: str  # an event's name, or what the declaration says of the field

    @property
    def bits(self) -> str:
        return bits(self.hi, self.lo)


@dataclass(frozen=True, slots=True)
class RegisterView:
    """What one holds. `fields`: all, from the lowest up."""

    name: str
    register: type[Register]
    value: int
    fields: tuple[FieldView, ...]
    again: bool  # shows what another does

    @property
    def unknown(self) -> int:
        """Bits that are set, and that no field has."""
        return self.value & ~self.register.declared if self.register.fields else 0


def views(device: Registers) -> Iterator[RegisterView]:
    """Every register that can be read, each of a bank for itself."""
    seen: set[str] = set()
    for register in device.registers():
        if not device.can_read(register):
            continue
        again = register.again or register.stored_in in seen
        seen.add(register.stored_in)
        for index in range(device.registers_of(register)):
            value = device.read(register, index)
            fields = tuple(_fields(device, register, index, value))
            yield RegisterView(register.name_of(index), register, value, fields, again)


def _fields(device: Registers, register: type[Register], index: int, value: int) -> Iterator[FieldView]:
    said = notes(register)
    for name, field in sorted(register.fields.items(), key=lambda item: item[1].lo):
        meaning = said.get(name, "")
        if name == register.event_field and value:
            event = device.event_of(index)
            meaning = event.name if event is not None else "no event that this PMU counts"
        yield FieldView(name, field.hi, field.lo, (value & field.mask) >> field.lo, meaning)
