"""Core files: one core as data. Read, put on top of its base, changed by ``--set``, checked against the schema.

What is wrong with one is one line: where it says it, which key, the value, and what would be right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from emulator.core_file.checks import problems
from emulator.core_file.keys import MODELS, Key, Kind, Table
from emulator.core_file.layers import CoreFileError, Layers, Tables, dotted, read_layers, shown, some, unknown
from emulator.core_file.schema import Path as KeyPath
from emulator.core_file.schema import children_of, table_of
from emulator.core_file.units import BRANCH_RECORDS, INSTEAD_OF

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"(\d{1,12}) ?([A-Za-z]*)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(frozen=True, slots=True)
class KernelCosts:
    """Cycles that the kernel works."""

    syscall: int = 0
    fault: int = 0
    exception: int = 0
    switch: int = 0


@dataclass(frozen=True, slots=True)
class CoreFile:
    """A core that is in order. `tables` is what the native core takes: sizes in bytes, defaults filled in."""

    name: str
    changes: tuple[str, ...]  # --set's
    summary: str
    isas: tuple[str, ...]
    frequency_hz: int
    sources: tuple[str, ...]
    validated: str
    pmu_models: Mapping[str, str]  # by ISA
    kernel: KernelCosts
    tables: Tables
    units: tuple[str, ...] = ()  # of emulator.core_file.units
    lent: tuple[str, ...] = ()  # more of them, which its silicon has not
    timed: bool = True  # False: what it says of itself, but each instruction takes one cycle (--untimed)

    def untimed(self) -> CoreFile:
        """The same processor to whoever asks, as fast as `ideal`."""
        return replace(self, timed=False, kernel=KernelCosts())

    def with_units(self, names: Sequence[str]) -> CoreFile:
        """The same, and with these units."""
        replaced = {INSTEAD_OF.get(name) for name in names}
        units = tuple(name for name in self.units if name not in replaced)
        return replace(self, units=units, lent=tuple(name for name in dict.fromkeys(names) if name not in units))

    @property
    def title(self) -> str:
        """For headers: a core with changes is not the one of that name."""
        lent = (f"with {name}" for name in self.lent)
        return ", ".join((self.name, *self.changes, *lent, *(() if self.timed else ("untimed",))))

    @property
    def features(self) -> tuple[str, ...]:
        """What it executes on AArch64 beyond Armv8.0-A, timed or not."""
        identity = self.tables.get("identity")
        listed = identity.get("features") if isinstance(identity, dict) else None
        return tuple(map(str, listed)) if isinstance(listed, list) else ()

    @property
    def activity_monitors(self) -> tuple[str, tuple[str, ...]] | None:
        """Their version, and the names of the events of the auxiliary group."""
        table = self.tables.get("activity_monitors")
        return (str(table["version"]), _texts(table.get("auxiliary"))) if isinstance(table, dict) else None

    @property
    def unit_versions(self) -> dict[str, str]:
        """By the units that have several."""
        spe, pt = self.tables.get("spe"), self.tables.get("pt")
        return {
            "spe": str(spe["version"]) if isinstance(spe, dict) else "v1p2",
            "pt": " ".join(name for name, there in pt.items() if there) if isinstance(pt, dict) else "",
        }

    @property
    def interrupt_cycles(self) -> int:
        """From a counter's overflow until its interrupt is taken."""
        table = self.tables.get("pmu_interrupt")
        return int(str(table["latency_cycles"])) if isinstance(table, dict) else 0

    @property
    def branch_records(self) -> int:
        """How many of them `brbe` keeps."""
        table = self.tables.get("brbe")
        return int(str(table["records"])) if isinstance(table, dict) else BRANCH_RECORDS

    @property
    def model(self) -> Tables | None:
        """The tables, if there is anything to model."""
        pipeline = self.tables["pipeline"]
        assert isinstance(pipeline, dict)
        modelled = pipeline["model"] != "ideal" or any(name in self.tables for name in _MODELLED)
        return self.tables if modelled and self.timed else None

    @property
    def fired_by(self) -> Tables:
        """The tables of what can fire probes."""
        return self.tables if self.timed else {"pipeline": {"model": "ideal"}}


_MODELLED = ("l1i", "l1d", "l2", "llc", "memory", "itlb", "dtlb", "l2tlb", "branch")


def load_core(core: str, changes: Sequence[str] = ()) -> CoreFile:
    """The core of this name or in this file, with ``KEY=VALUE`` changes. Raises CoreFileError."""
    layers = read_layers(core, changes)
    _check_table(layers, (), layers.data)
    for problem in problems(layers.data):
        error = layers.error(problem.path, problem.right)
        if changes and not str(error).startswith("--set "):  # one of them may be the reason
            error = CoreFileError(f"{error} (with {' '.join(f'--set {change}' for change in changes)})")
        raise error
    return _core_file(layers.data, tuple(changes))


# ---- checks of single keys; those that concern several are in checks.py


def _check_table(layers: Layers, path: KeyPath, data: Tables) -> None:
    """Every key known, of its kind and within its range; defaults filled in, sizes made numbers."""
    table = table_of(path)
    children = children_of(path)
    for name, value in list(data.items()):
        here = (*path, name)
        key = table.key(name) if table is not None else None
        if isinstance(value, dict) and (name in children or "*" in children):
            _check_name(layers, here)
            _check_table(layers, here, value)
        elif key is not None:
            data[name] = _checked(layers, here, key, value)
            layers.given[here] = value
        elif name in children or "*" in children:
            raise layers.error(here, f"want a table, [{dotted(here)}]")
        else:
            raise layers.error(here, unknown(here))
    if table is not None:
        _complete(layers, path, table, data)


def _check_name(layers: Layers, path: KeyPath) -> None:
    """Where a file names a table itself: whether it may be called so."""
    table = table_of(path)
    if table is None or table.names is None or table.pattern[-1] != "*":
        return
    allowed = table.names(layers.data)
    if allowed and path[-1] not in allowed:
        raise layers.error(path, f"unknown; there is {some(path[-1], allowed)}")


def _complete(layers: Layers, path: KeyPath, table: Table, data: Tables) -> None:
    model = layers.value(("pipeline", "model"))
    for key in table.keys:
        here = (*path, key.name)
        if model in MODELS and model not in key.models:
            if model == "ideal":
                data.pop(key.name, None)
            elif key.name in data:
                raise layers.error(
                    here, f"only for pipeline.model {' or '.join(key.models)}; here it is {shown(model)}"
                )
        elif key.name not in data:
            if key.required:
                raise layers.error(here, f"missing; want {_wanted(layers, key)}: {key.meaning}")
            if key.default is not None:
                data[key.name] = key.default


def _checked(layers: Layers, path: KeyPath, key: Key, value: object) -> object:
    """The value as the native core takes it."""
    if key.kind is Kind.SIZE and isinstance(value, str):
        matched = _SIZE.fullmatch(value)
        if matched is None or matched[2] not in _UNITS:
            raise layers.error(path, f"want {_wanted(layers, key)}")
        value = int(matched[1]) * _UNITS[matched[2]]
    if not _is(value, key.kind):
        raise layers.error(path, f"want {_wanted(layers, key)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        uneven = key.power_of_two and isinstance(value, int) and value & (value - 1)
        if not key.minimum <= value <= key.maximum or uneven:
            raise layers.error(path, f"want {_wanted(layers, key)}")
    elif isinstance(value, str):
        _check_text(layers, path, key, value)
    elif isinstance(value, list):
        for text in value:
            _check_text(layers, path, key, text)
        if len(set(value)) != len(value):
            raise layers.error(path, "names one twice")
    return value


def _wanted(layers: Layers, key: Key) -> str:
    choices = key.choices(layers.data) if key.choices is not None else ()
    return f"{key.range} ({some('', choices)})" if choices else key.range


def _is(value: object, kind: Kind) -> bool:
    match kind:
        case Kind.INTEGER | Kind.SIZE:
            return isinstance(value, int) and not isinstance(value, bool)
        case Kind.REAL:
            return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        case Kind.BOOLEAN:
            return isinstance(value, bool)
        case Kind.TEXT:
            return isinstance(value, str)
        case Kind.TEXTS:
            return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _check_text(layers: Layers, path: KeyPath, key: Key, text: str) -> None:
    allowed = key.choices(layers.data) if key.choices is not None else ()
    if allowed and text not in allowed:
        which = f"{shown(text)} is " if key.kind is Kind.TEXTS else ""
        raise layers.error(path, f"{which}unknown; there is {some(text, allowed)}")
    if path == ("name",) and not _NAME.fullmatch(text):
        raise layers.error(path, "want letters, digits, '.', '_', '+' and '-', at most 64")
    if not text.isprintable() or not text:
        raise layers.error(path, "want text that can be printed, on one line")


# ---- the result


def _texts(value: object) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else ()


def _integers(value: object) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, int):
                yield name.removesuffix("_cycles"), each


def _core_file(data: Tables, changes: tuple[str, ...]) -> CoreFile:
    pmu = data["pmu"]
    frequency = data["frequency_hz"]
    assert isinstance(pmu, dict)
    assert isinstance(frequency, int)
    return CoreFile(
        name=str(data["name"]),
        changes=changes,
        summary=str(data["summary"]),
        isas=_texts(data["isas"]),
        frequency_hz=frequency,
        sources=_texts(data["sources"]),
        validated=f"not validated: {data['name']} with changes" if changes else str(data["validated"]),
        pmu_models=pmu,
        kernel=KernelCosts(**dict(_integers(data.get("kernel")))),
        units=_texts(data.get("units")),
        tables={name: table for name, table in data.items() if isinstance(table, dict)},
    )
