"""TargetDescription: which registers there are, as GDB wants to be told. GDB's manual, "Target Description Format"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from emulator.board.visible_register import VisibleRegister

AnyRegister = VisibleRegister[Any]


@dataclass(frozen=True)
class Feature:
    """Registers that GDB knows together, or that are ours."""

    name: str
    registers: Sequence[AnyRegister]
    types: Sequence[str] = ()  # lines of XML
    kinds: Mapping[str, str] | None = None  # register -> its type, where that is not an integer
    group: str = ""

    def xml(self, first: int) -> str:
        """`first`: the number of its first register."""
        kinds = self.kinds or {}
        in_group = f' group="{self.group}"' if self.group else ""
        lines = [f'<feature name="{self.name}">', *self.types]
        for number, each in enumerate(self.registers, first):
            kind = kinds.get(each.name, "int")
            lines.append(f'<reg name="{each.name}" bitsize="{each.bits}" type="{kind}" regnum="{number}"{in_group}/>')
        return "\n".join([*lines, "</feature>"])


@dataclass(frozen=True)
class TargetDescription:
    """Of one architecture."""

    architecture: str
    features: Sequence[Feature]
    in_one_packet: int  # so many registers has `g`; the others are asked for one by one
    pc: int  # number of the program counter
    level: Callable[[Any], str]  # of a CPU: what its privilege is called
    system_group: str  # where `info registers` has system registers

    @cached_property
    def registers(self) -> list[AnyRegister]:
        """By their numbers."""
        return [register for feature in self.features for register in feature.registers]

    @cached_property
    def xml(self) -> bytes:
        """target.xml."""
        parts = ['<?xml version="1.0"?>\n<!DOCTYPE target SYSTEM "gdb-target.dtd">\n<target version="1.0">']
        parts.append(f"<architecture>{self.architecture}</architecture>")
        first = 0
        for feature in self.features:
            parts.append(feature.xml(first))
            first += len(feature.registers)
        return "\n".join([*parts, "</target>"]).encode()


def flags(name: str, size: int, fields: Mapping[str, tuple[int, int]]) -> list[str]:
    """A type of `size` bytes whose fields are bits, first to last."""
    lines = [f'<field name="{field}" start="{start}" end="{end}"/>' for field, (start, end) in fields.items()]
    return [f'<flags id="{name}" size="{size}">', *lines, "</flags>"]


def lanes(name: str, fields: Mapping[str, tuple[str, int]]) -> list[str]:
    """A vector's type: `fields`: field -> (type of a lane, how many)."""
    vectors = [f'<vector id="lanes_{field}" type="{kind}" count="{n}"/>' for field, (kind, n) in fields.items()]
    uses = [f'<field name="{field}" type="lanes_{field}"/>' for field in fields]
    return [*vectors, f'<union id="{name}">', *uses, "</union>"]
