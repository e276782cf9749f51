"""Optimization guides: what the vendor's tables say of single instructions, and what our cores take for them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.accuracy.kernels import FOLDER, assemble, chain, cycles_per_iteration, stream

CORES = ("cortex-a55", "cortex-a72", "neoverse-n1")
COPIES = 16


@dataclass(frozen=True, slots=True)
class GuideRow:
    """One row of a guide: cycles, and instructions a cycle."""

    name: str
    code: str
    latency: float | None = None
    per_cycle: float | None = None
    latency_here: float | None = None  # what we take instead, and
    per_cycle_here: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    row: GuideRow
    what: str  # "latency", "per cycle"
    guide: float
    listed: float | None  # what the row says that we take, if it is something else
    ours: float


def rows(core: str) -> list[GuideRow]:
    table = tomllib.loads((FOLDER / "guides" / f"{core}.toml").read_text(encoding="utf-8"))
    return [GuideRow(name, **row) for name, row in table.items()]


def compare(core: str, tables: dict[str, object], folder: Path) -> list[Comparison]:
    """Every row of the guide of `core` on our core of that name, whose tables are `tables`."""
    table = rows(core)
    names = [{"n": str(number)} for number in range(COPIES)]
    chains = assemble("aarch64", [chain(row.code.replace("{n}", "0"), COPIES) for row in table], folder)
    streams = assemble("aarch64", [stream(row.code, names) for row in table], folder)
    found = []
    for row, in_chain, in_stream in zip(table, chains, streams, strict=True):
        if row.latency is not None:
            ours = cycles_per_iteration("aarch64", tables, in_chain) / COPIES
            found.append(Comparison(row, "latency", row.latency, row.latency_here, ours))
        if row.per_cycle is not None:
            ours = COPIES / cycles_per_iteration("aarch64", tables, in_stream)
            found.append(Comparison(row, "per cycle", row.per_cycle, row.per_cycle_here, ours))
    return found
