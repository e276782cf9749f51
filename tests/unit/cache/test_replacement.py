"""Every policy replaces what its description in Python replaces."""

from __future__ import annotations

import pytest

from emulator._native import MemorySystem, replacement_policies
from tests.unit.cache import policies, streams
from tests.unit.cache.streams import LINE, Access

HIT, MISS = 4, 50


def test_all_policies_are_registered():
    assert {"brrip", "drrip", "lru", "plru", "random", "rrip", "ship"} <= set(replacement_policies())


@pytest.mark.parametrize(("sets", "ways"), [(1, 4), (4, 2), (8, 8), (16, 3), (64, 12), (2, 32)])
@pytest.mark.parametrize("policy", replacement_policies())
def test_hits_and_misses_are_those_of_the_description(policy, sets, ways):
    table = {"size": sets * ways * LINE, "ways": ways, "latency": HIT, "replacement": policy}
    memory = MemorySystem({"l1d": table, "memory": {"latency": MISS}})
    oracle = policies.Sets(sets, ways, policy)
    numbers = list(streams.lines(7, 6000, span=3 * sets * ways))
    # Some instructions walk, some come back, as far as the parts of a stream differ.
    pcs = [0x40_0000 + 4 * (n // 50 % 23) for n in range(len(numbers))]
    # Far apart, so that nothing is under way any more; loads and stores do not differ.
    accesses = [
        Access(line * LINE, kind=line % 2, pc=pc, cycle=1000 * n)
        for n, (line, pc) in enumerate(zip(numbers, pcs, strict=True))
    ]
    latencies = [ready - access.cycle for ready, access in zip(streams.run(memory, accesses), accesses, strict=True)]
    assert latencies == [HIT if oracle.access(line, pc) else MISS for line, pc in zip(numbers, pcs, strict=True)]
    assert MISS in latencies[len(numbers) // 2 :]  # the stream does not fit
