"""What the schema lets through, the models take: each number at both ends of its range, alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator._native import simulate
from emulator.core_file.core_file import load_core
from emulator.core_file.keys import Key, Kind
from emulator.core_file.layers import CoreFileError
from emulator.core_file.schema import table_of

NOPS = {"aarch64": bytes.fromhex("1f2003d5"), "x86_64": bytes.fromhex("90")}
CORES = {"neoverse-n1": "aarch64", "cortex-a55": "aarch64", "zen5": "x86_64"}
NUMBERS = (Kind.INTEGER, Kind.SIZE, Kind.REAL)
ROWS = ("ALU", "MUL64", "NOP")  # of [ops]: one row's range is every row's
# ranges that depend on another key's value, which the models say themselves
DEPENDING = ("branch.",)


def numbers(table: dict[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Key]]:
    """The keys of a core with numbers in a range."""
    row = table_of(path)
    for name, value in table.items():
        if isinstance(value, dict):
            if path != ("ops",) or name in ROWS:
                yield from numbers(value, (*path, name))
        elif row is not None and (key := row.key(name)) is not None and key.kind in NUMBERS:
            yield ".".join((*path, name)), key


@pytest.mark.parametrize("core", CORES)
def test_the_models_take_what_the_schema_lets_through(core: str) -> None:
    taken = 0
    for dotted, key in numbers(load_core(core).tables):
        if dotted.startswith(DEPENDING) or key.maximum > 1 << 24:  # nor caches of a gigabyte
            continue
        for value in (key.minimum, key.maximum):
            try:
                tables = load_core(core, [f"{dotted}={value}"]).tables
            except CoreFileError:
                continue  # it contradicts another key
            assert simulate(CORES[core], tables, NOPS[CORES[core]], 1)["cycles"] > 0
            taken += 1
    assert taken > 50


def test_an_instruction_may_have_more_slots_than_there_are_entries() -> None:
    """rdtsc is microcoded, of some dozens of micro-ops."""
    tables = load_core("zen5", ["pipeline.rob_entries=8"]).tables
    assert simulate("x86_64", tables, bytes.fromhex("0f31"), 10)["cycles"] > 0
