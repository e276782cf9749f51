"""Core lines: what `perfemu list cores` says of cores: a few lines each, or all that their files say."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from emulator.core_file.core_file import CoreFile
from emulator.core_file.keys import Kind
from emulator.core_file.schema import table_of
from perfemu.cores import DEFAULT_CORES
from pmu.model import description, model

_NAME_WIDTH = 50  # of perf list's first column
_INDENT = " " * 7
_LABEL_WIDTH = 24
_TEXT_WIDTH = 88
_UNITS = (("GiB", 30), ("MiB", 20), ("KiB", 10))


def brief(core: CoreFile) -> Iterator[str]:
    """Name, ISAs, clock; what it is; whether anybody compared it with the real one; its PMU."""
    pmus = ", ".join(f"{isa}: {model(name).sysfs_name}" for isa, name in core.pmu_models.items())
    default = "".join(f", default for {isa}" for isa, name in DEFAULT_CORES.items() if name == core.name)
    yield f"  {core.title:<{_NAME_WIDTH}} [{pmus}, {core.frequency_hz / 1e9:.2f} GHz{default}]"
    yield f"{_INDENT}{core.summary}"
    yield f"{_INDENT}validated: {core.validated}"
    for name in dict.fromkeys(core.pmu_models.values()):
        yield f"{_INDENT}PMU {name}: {description(name)}"


def detailed(core: CoreFile) -> Iterator[str]:
    """All tables, as they are after defaults and changes; and where the facts are from."""
    yield from brief(core)
    for name, table in core.tables.items():
        if isinstance(table, dict) and name not in ("pmu", "ops"):
            yield from _table_lines((name,), table)
    operations = core.tables.get("ops")
    if isinstance(operations, dict):
        for name, row in operations.items():
            yield from _table_lines(("ops", name), row)
    for source in core.sources:
        yield from _labelled("source", source)


def _labelled(label: str, text: str) -> Iterator[str]:
    """Folded to what a terminal shows."""
    for line in textwrap.wrap(text, _TEXT_WIDTH, break_long_words=False, break_on_hyphens=False):
        yield f"{_INDENT}{label:<{_LABEL_WIDTH}} {line}"
        label = ""


def _table_lines(path: tuple[str, ...], table: dict[str, object]) -> Iterator[str]:
    """A line for a table's keys, and one for each table in it."""
    described = table_of(path)
    texts = []
    for name, value in table.items():
        if not isinstance(value, dict):
            key = described.key(name) if described is not None else None
            texts.append(f"{name} {_text(value, key.kind if key is not None else Kind.TEXT)}")
    if texts:
        yield from _labelled(".".join(path), ", ".join(texts))
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _table_lines((*path, name), value)


def _text(value: object, kind: Kind) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(str(each) for each in value) or "none"
    if isinstance(value, int) and kind is Kind.SIZE:
        for unit, bits in _UNITS:
            if value and not value % (1 << bits):
                return f"{value >> bits} {unit}"
        return f"{value} B"
    return str(value)
