"""The L0 filter before the first level answers most hits, and nobody can tell: without it all is as it is with it."""

from __future__ import annotations

import random

import pytest

from emulator._native import MemorySystem, replacement_policies
from tests.unit.cache import streams
from tests.unit.cache.streams import FETCH, LINE, LOAD, PREFETCH, STORE, Access

L1 = {"size": 2048, "ways": 4}
WHOLE: dict[str, dict[str, object]] = {
    "l1i": {**L1, "latency": 1},
    "l1d": {**L1, "latency": 4},
    "l2": {"size": 8192, "ways": 4, "latency": 12},
    "llc": {"size": 32768, "ways": 8, "latency": 40},
    "memory": {"latency": 200, "cycles_per_line": 3},
    "itlb": {"entries": 4},
    "dtlb": {"entries": 8, "ways": 2},
    "l2tlb": {"entries": 16, "ways": 4, "latency": 5},
    "page_walk": {"latency": 20},
}
CHANGES: dict[str, dict[str, dict[str, object]]] = {
    "whole": {},
    "exclusive": {"l2": {"inclusion": "exclusive"}},
    "inclusive": {"llc": {"inclusion": "inclusive"}},
    "prefetching": {
        "l1i": {"prefetchers": ["next_line"]},
        "l1d": {"prefetchers": ["stride"]},
        "l2": {"prefetchers": ["stream"]},
    },
    "few registers": {"l1i": {"mshrs": 2}, "l1d": {"mshrs": 2}},
    "write through": {"l1d": {"write_policy": "write_through"}},
    "write around": {"l1d": {"write_allocate": False}},
    "walks read": {"page_walk": {"reads_entries": True}},
    "short lines": {level: {"line": 32} for level in ("l1i", "l1d", "l2", "llc")},
    **{
        policy: {name: {"replacement": policy} for name in ("l1i", "l1d", "itlb", "dtlb")}
        for policy in replacement_policies()
    },
}


def accesses(seed: int, cores: int) -> list[Access]:
    """Of each core: loops over code and data, of which some are every core's."""
    generator = random.Random(seed)
    made = []
    for number, line in enumerate(streams.lines(seed, 12_000, span=900)):
        kind = generator.choice((LOAD, LOAD, LOAD, STORE, STORE, FETCH, FETCH, PREFETCH))
        size = 1 if kind == FETCH else generator.choice((1, 4, 8, 8, 16))
        address = line * LINE + generator.randrange(0, LINE, generator.choice((1, 8, 16)))
        core = generator.randrange(cores)
        made.append(Access(address, kind, size, pc=0x1000 + 4 * (line % 37), cycle=3 * number, core=core))
    return made


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_the_filter_makes_no_difference(change: str, cores: int) -> None:
    tables = {name: {**table, **CHANGES[change].get(name, {})} for name, table in WHOLE.items()}
    filtered = MemorySystem(tables, cores)
    unfiltered = MemorySystem({**tables, "l0_filter": {"enabled": False}}, cores)
    stream = accesses(5, cores)
    assert streams.run(filtered, stream) == streams.run(unfiltered, stream)
    for core in range(cores):
        assert streams.counts(filtered, core) == streams.counts(unfiltered, core)
