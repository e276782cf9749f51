"""MESI between cores: who answers, who loses a line, and what it costs. Whole streams: test_hierarchy.py."""

from __future__ import annotations

import pytest

from emulator._native import MemorySystem
from emulator.probes import Probe
from tests.unit.cache import streams
from tests.unit.cache.streams import LINE, LOAD, STORE, Access

L1D = {"size": 4096, "ways": 4, "latency": 4}
CONFIG: dict[str, object] = {
    "l1d": L1D,
    "llc": {"size": 65536, "ways": 16, "latency": 40},
    "memory": {"latency": 200},
    "coherence": {"latency": 60},
}


def coherence(memory: MemorySystem, core: int) -> dict[str, int]:
    names = ("SNOOP", "INVALIDATED", "FETCHED")
    counted = streams.counts(memory, core).items()
    return {probe.name: count for probe, count in counted if probe.name.startswith(names)}


def latencies(memory: MemorySystem, accesses: list[tuple[int, int]]) -> list[int]:
    """Of accesses (core, kind) to line 0, one after the other is done."""
    stream = [Access(0, kind, core=core, cycle=1000 * n) for n, (core, kind) in enumerate(accesses)]
    return [ready % 1000 for ready in streams.run(memory, stream)]


def test_line_that_another_core_has_written_comes_from_there():
    memory = MemorySystem(CONFIG, cores=2)
    # From memory; from core 0, where it is modified; both share it now.
    assert latencies(memory, [(0, STORE), (1, LOAD), (0, LOAD), (1, LOAD)]) == [200, 60, 4, 4]
    assert coherence(memory, 0) == {"SNOOP": 1, "SNOOP_HITM": 1}
    assert coherence(memory, 1) == {"FETCHED_HITM": 1}
    # MESI has no owner of a dirty line that others read: it is written back when the second core gets it.
    assert streams.counts(memory, 0)[Probe.L1D_WRITE_BACK] == 1


def test_line_that_another_core_has_alone_comes_from_there_because_it_might_be_modified():
    memory = MemorySystem(CONFIG, cores=2)
    assert latencies(memory, [(0, LOAD), (1, LOAD)]) == [200, 60]
    assert coherence(memory, 0) == {"SNOOP": 1, "SNOOP_HIT": 1}
    assert coherence(memory, 1) == {"FETCHED_HIT": 1}


def test_line_that_cores_share_comes_from_the_shared_cache():
    memory = MemorySystem(CONFIG, cores=3)
    assert latencies(memory, [(0, LOAD), (1, LOAD), (2, LOAD)]) == [200, 60, 40]
    assert coherence(memory, 2) == {}


def test_store_to_a_line_of_its_own_tells_nobody():
    memory = MemorySystem(CONFIG, cores=2)
    assert latencies(memory, [(0, LOAD), (0, STORE)]) == [200, 4]
    assert coherence(memory, 0) == coherence(memory, 1) == {}


def test_store_to_a_shared_line_takes_it_from_the_others():
    memory = MemorySystem(CONFIG, cores=3)
    accesses = [(0, LOAD), (1, LOAD), (2, LOAD), (1, STORE), (1, STORE), (0, LOAD)]
    # The store needs no data, but the others' word: 60. The next is like any. Core 0 has to fetch what 1 wrote.
    assert latencies(memory, accesses) == [200, 60, 40, 60, 4, 60]
    assert coherence(memory, 0) == {"SNOOP": 2, "SNOOP_HIT": 2, "INVALIDATED": 1, "FETCHED_HITM": 1}
    assert coherence(memory, 1) == {"SNOOP": 1, "SNOOP_HITM": 1, "FETCHED_HIT": 1}
    assert coherence(memory, 2) == {"SNOOP": 1, "SNOOP_HIT": 1, "INVALIDATED": 1}


def test_stores_in_turn_hand_the_line_on_without_memory():
    memory = MemorySystem(CONFIG, cores=2)
    assert latencies(memory, [(n % 2, STORE) for n in range(9)]) == [200] + [60] * 8
    for core, turns in ((0, 4), (1, 4)):
        expected = {"SNOOP": 4, "SNOOP_HITM": 4, "INVALIDATED": 4, "FETCHED_HITM": turns}
        assert coherence(memory, core) == expected
        assert Probe.DRAM_WRITE not in streams.counts(memory, core)


def test_line_comes_back_no_sooner_than_others_have_had_it():
    """Each store wants it at once; the clocks of cores need not agree, so each waits by its own for the others."""
    memory = MemorySystem(CONFIG, cores=3)
    # Core 0 at 0 from memory. Core 1 is handed it for the first time: 60 after it asks, and so is core 2.
    assert memory.store(0, 0, 8, cycle=0) == 200
    assert memory.store(1, 0, 8, cycle=0) == 60
    assert memory.store(2, 0, 8, cycle=1000) == 1060
    # Core 1 had it at 60; core 2 has had it since, for 60; then it takes 60 to come back.
    assert memory.store(1, 0, 8, cycle=61) == 60 + 60 + 60
    # Core 2 had it at 1060; core 1 once since. Later it is as if nobody had fought for it.
    assert memory.store(2, 0, 8, cycle=1061) == 1060 + 60 + 60
    assert memory.store(1, 0, 8, cycle=5000) == 5060
    # At once again and again: core 2 asks at 1200, but each time it comes back two handovers later than the last.
    arrival = 1180
    for _ in range(5):
        memory.store(1, 0, 8, cycle=9000)
        arrival += 120
        assert memory.store(2, 0, 8, cycle=1200) == arrival
    for _ in range(100):
        memory.store(1, 0, 8, cycle=9000)
        longest = memory.store(2, 0, 8, cycle=1200)
    assert longest == 1200 + 33 * 60  # never longer: what one instruction takes has a bound


@pytest.mark.parametrize(("distance", "handed_on"), [(8, True), (LINE, False)])
def test_false_sharing(distance, handed_on):
    """Two cores count in variables of their own: in one line they take it from each other at every turn."""
    memory = MemorySystem(CONFIG, cores=2)
    rounds = 100
    accesses = []
    for turn in range(2 * rounds):
        core = turn % 2
        for kind in (LOAD, STORE):
            accesses.append(Access(core * distance, kind, core=core, cycle=1000 * len(accesses)))
    time = sum(ready % 1000 for ready in streams.run(memory, accesses))
    if handed_on:
        # Each load fetches the line, shared, from where it was written; the store takes it. Only core 0's first
        # load goes to memory, and its store finds the line its own.
        assert time == (200 + 4) + (2 * rounds - 1) * (60 + 60)
        assert coherence(memory, 0)["INVALIDATED"] == rounds
        assert coherence(memory, 1)["INVALIDATED"] == rounds - 1
    else:
        assert time == 2 * 200 + (2 * (2 * rounds) - 2) * 4
        assert coherence(memory, 0) == coherence(memory, 1) == {}


def test_without_a_filter_every_miss_is_asked_of_every_core():
    memory = MemorySystem(CONFIG | {"coherence": {"latency": 60, "filter": "none"}}, cores=4)
    streams.run(memory, [Access(n * LINE, STORE, core=0) for n in range(10)])
    streams.run(memory, [Access(n * LINE, LOAD, core=1) for n in range(2)])
    streams.run(memory, [Access(n * LINE, LOAD, core=2) for n in range(2)])
    assert coherence(memory, 0) == {"SNOOP": 4, "SNOOP_HITM": 2, "SNOOP_HIT": 2}
    assert coherence(memory, 1) == {"SNOOP": 12, "SNOOP_HIT": 2, "FETCHED_HITM": 2}
    assert coherence(memory, 2) == {"SNOOP": 12}
    assert coherence(memory, 3) == {"SNOOP": 14}


def test_one_core_has_nobody_to_ask():
    memory = MemorySystem(CONFIG, cores=1)
    assert latencies(memory, [(0, LOAD), (0, STORE)]) == [200, 4]
    assert coherence(memory, 0) == {}


def test_inclusive_shared_cache_takes_lines_from_all_cores():
    memory = MemorySystem(CONFIG | {"llc": {"size": 4 * LINE, "ways": 4, "latency": 40, "inclusion": "inclusive"}}, 2)
    # Both share line 0, core 0 has written line 1; lines 2 to 5 of core 1 throw both out of the shared cache.
    stream = [(0, 0, LOAD), (1, 0, LOAD), (0, 1, STORE), *((1, line, LOAD) for line in (2, 3, 4, 5))]
    streams.run(memory, [Access(line * LINE, kind, core=core) for core, line, kind in stream])
    refills = [streams.counts(memory, core)[Probe.L1D_REFILL_LOAD] for core in (0, 1)]
    streams.run(memory, [Access(0, core=core) for core in (0, 1)])
    assert [streams.counts(memory, core)[Probe.L1D_REFILL_LOAD] for core in (0, 1)] == [refills[0] + 1, refills[1] + 1]
    assert streams.counts(memory, 0)[Probe.L1D_WRITE_BACK] == 1
    assert streams.counts(memory, 1)[Probe.DRAM_WRITE] == 1  # core 1's miss drove it out
