"""A pointer chase through more and more memory tells each cache's size and latency, on every core."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from emulator._native import simulate
from emulator.core_file.core_file import Tables, load_core

LINE, PAGE = 64, 4096
BASE = 0x1000_0000
LOADS = {"aarch64": "000040f9", "x86_64": "488b00"}  # ldr x0, [x0]; mov rax, [rax]
CORES = {
    "cortex-a55": "aarch64",
    "cortex-a72": "aarch64",
    "neoverse-n1": "aarch64",
    "redwood-cove": "x86_64",
    "skylake": "x86_64",
    "zen4": "x86_64",
    "zen5": "x86_64",
}


def table(tables: Tables, name: str) -> Tables:
    found = tables[name]
    assert isinstance(found, dict)
    return found


def without_prefetchers(core: str) -> Tables:
    """Their work is to hide the stairs."""
    return {
        name: {key: value for key, value in each.items() if key != "prefetchers"} if isinstance(each, dict) else each
        for name, each in load_core(core).tables.items()
    }


def stairs(tables: Tables) -> Iterator[tuple[str, int, int, int]]:
    """Each level's name, how much it holds, how much there is with the levels that it excludes, and its cycles.

    Between the two sizes of an exclusive level it depends on the lines: they compete for sets in both caches.
    """
    before = 0
    for name in ("l1d", "l2", "llc"):
        if name in tables:
            level = table(tables, name)
            before = level["size"] + (before if level.get("inclusion") == "exclusive" else 0)
            yield name, level["size"], before, level["latency"]


def cycles_of_a_load(isa: str, tables: Tables, size: int) -> float:
    """Every line of `size` bytes once, over and over: pages in a random order, and in each of them its lines.

    So that a TLB's miss is shared by a page's 64 loads.
    """
    random = Random(size)
    pages = list(range(0, size, PAGE))
    random.shuffle(pages)
    order: list[int] = []
    for page in pages:
        lines = list(range(page, min(page + PAGE, size), LINE))
        random.shuffle(lines)
        order += (BASE + line for line in lines)
    # The first pass fills the caches; some policies take more than one.
    code = bytes.fromhex(LOADS[isa])
    few, many = (simulate(isa, tables, code, passes * len(order), addresses=[order])["cycles"] for passes in (2, 3))
    return float(many - few) / len(order)


@pytest.mark.parametrize("core", CORES)
def test_each_cache_has_its_size_and_latency(core: str) -> None:
    isa, tables = CORES[core], without_prefetchers(core)
    for name, holds, at_most, latency in stairs(tables):
        assert cycles_of_a_load(isa, tables, holds) == pytest.approx(latency, rel=0.05), f"{name}: all of it"
        assert cycles_of_a_load(isa, tables, at_most * 21 // 20) > latency * 1.02, f"{name}: 5 % more than fits"


@pytest.mark.parametrize("core", CORES)
def test_behind_the_last_cache_is_memory(core: str) -> None:
    """With a last cache of 2 MiB, to be through sooner."""
    isa, tables = CORES[core], without_prefetchers(core)
    last = "llc" if "llc" in tables else "l2"
    table(tables, last)["size"] = 2 << 20
    *_, (_, _, at_most, _) = stairs(tables)
    memory = table(tables, "memory")["latency"]
    assert cycles_of_a_load(isa, tables, at_most * 3 // 2) == pytest.approx(memory, rel=0.05)
