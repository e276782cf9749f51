"""Core keys: what a row of the schema of core files is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from emulator import _native

Data = Mapping[str, object]  # a core file's tables, merged and not yet checked
Choices = Callable[[Data], Sequence[str]]

ISAS = ("aarch64", "x86_64")
MODELS = ("ideal", "in_order", "out_of_order")
OUT_OF_ORDER = ("out_of_order",)
IN_ORDER = ("in_order",)
MODELLED = IN_ORDER + OUT_OF_ORDER

MOST_CYCLES = 1_000_000
MOST_ENTRIES = 1 << 20
MOST_BYTES = 1 << 30


class Kind(Enum):
    """What a value is; the text is for the user."""

    INTEGER = "an integer"
    REAL = "a number"
    SIZE = 'a size, such as 65536 or "64KiB"'
    BOOLEAN = "true or false"
    TEXT = "a text"
    TEXTS = "a list of texts"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table."""

    name: str
    kind: Kind
    meaning: str
    minimum: int = 1  # of numbers
    maximum: int = MOST_ENTRIES
    required: bool = False  # where the table is there, and the pipeline is one of `models`
    default: int | bool | str | None = None  # put in by the loader
    power_of_two: bool = False
    choices: Choices | None = None  # of texts
    models: tuple[str, ...] = MODELS  # the pipelines that have this key

    @property
    def range(self) -> str:
        """What would be right, in words."""
        if self.kind in (Kind.INTEGER, Kind.REAL, Kind.SIZE):
            power = ", a power of two" if self.power_of_two else ""
            return f"{self.kind.value} from {self.minimum} to {self.maximum}{power}"
        return str(self.kind.value)


@dataclass(frozen=True, slots=True)
class Table:
    """One table. ``*`` in `path` stands for names of the file's own, or of `names`."""

    path: str
    meaning: str
    keys: tuple[Key, ...]
    names: Choices | None = None

    @property
    def pattern(self) -> tuple[str, ...]:
        return tuple(self.path.split(".")) if self.path else ()

    def key(self, name: str) -> Key | None:
        return next((key for key in self.keys if key.name == name), None)


def fixed(*names: str) -> Choices:
    return lambda data: names


def native(function: str) -> Choices:
    """The names that the native core's policies are registered by."""
    names: Callable[[], Sequence[str]] = getattr(_native, function)
    return lambda data: names()


def ports(data: Data) -> Sequence[str]:
    """The ports of this very core."""
    pipeline = data.get("pipeline")
    found = pipeline.get("ports") if isinstance(pipeline, Mapping) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def cycles(
    name: str,
    meaning: str,
    *,
    least: int = 1,
    most: int = MOST_CYCLES,
    required: bool = False,
    default: int | None = None,
) -> Key:
    return Key(name, Kind.INTEGER, meaning, least, most, required, default)


def entries(
    name: str,
    meaning: str,
    *,
    least: int = 1,
    most: int = MOST_ENTRIES,
    required: bool = False,
    default: int | None = None,
    power_of_two: bool = False,
) -> Key:
    return Key(name, Kind.INTEGER, meaning, least, most, required, default, power_of_two=power_of_two)


def one_of(name: str, meaning: str, choices: Choices, *, required: bool = False, default: str | None = None) -> Key:
    return Key(name, Kind.TEXT, meaning, required=required, default=default, choices=choices)


def several_of(name: str, meaning: str, choices: Choices, *, required: bool = False) -> Key:
    return Key(name, Kind.TEXTS, meaning, required=required, choices=choices)
