"""When data arrive: each level's latency, misses under way, and how much can be under way at once."""

from __future__ import annotations

import random

import pytest

from emulator._native import MemorySystem
from emulator.probes import Probe
from tests.unit.cache import streams
from tests.unit.cache.streams import LINE, LOAD, STORE, Access

PAGE = 4096
KIB = 1024


def levels(**changes: dict[str, object]) -> dict[str, object]:
    config: dict[str, dict[str, object]] = {
        "l1i": {"size": 16 * KIB, "ways": 4, "latency": 3},
        "l1d": {"size": 16 * KIB, "ways": 4, "latency": 4},
        "l2": {"size": 64 * KIB, "ways": 8, "latency": 13},
        "llc": {"size": 256 * KIB, "ways": 16, "latency": 41},
        "memory": {"latency": 200},
    }
    for name, change in changes.items():
        config[name] = config.get(name, {}) | change
    return config  # type: ignore[return-value]


def chase(memory: MemorySystem, size: int, laps: int = 3) -> float:
    """Cycles per load of a random cycle through `size` bytes, of its last lap."""
    order = list(range(size // LINE))
    random.Random(size).shuffle(order)
    lap = [Access(line * LINE) for line in order]
    ready = streams.run(memory, lap * laps, chained=True)
    return (ready[-1] - ready[-1 - len(lap)]) / len(lap)


@pytest.mark.parametrize("inclusion", ["inclusive", "non_inclusive"])
@pytest.mark.parametrize(
    ("size", "latency"),
    # What fits is hit from the second lap on. A lap that is twice as long as an LRU cache, or more, misses always.
    [(8, 4), (16, 4), (32, 13), (64, 13), (128, 41), (256, 41), (512, 200), (1024, 200)],
)
def test_pointer_chase_shows_the_latency_of_the_level_that_holds_it(size, latency, inclusion):
    memory = MemorySystem(levels(l2={"inclusion": inclusion}, llc={"inclusion": inclusion}))
    assert chase(memory, size * KIB) == latency


@pytest.mark.parametrize(
    ("size", "latency"),
    # Exclusive caches add up, roughly, for their sets and those before differ: L1D + L2 = 80 KiB, + LLC = 336 KiB
    [(16, 4), (128, 41), (256, 41), (1024, 200)],
)
def test_exclusive_levels_show_their_latencies(size, latency):
    memory = MemorySystem(levels(l2={"inclusion": "exclusive"}, llc={"inclusion": "exclusive"}))
    assert chase(memory, size * KIB) == latency


@pytest.mark.parametrize(
    ("pages", "latency"),
    # One line in each page: at most 64 KiB of lines. DTLB: 16 pages, L2TLB: 128.
    # 4 of an L1D hit (256 lines, chosen to spread over all sets) + 7 of the L2TLB + 30 of a walk
    [(16, 4), (32, 4 + 7), (128, 4 + 7), (256, 4 + 7 + 30)],
)
def test_pointer_chase_over_pages_shows_the_latencies_of_tlbs(pages, latency):
    memory = MemorySystem(
        levels(dtlb={"entries": 16}, l2tlb={"entries": 128, "ways": 4, "latency": 7}, page_walk={"latency": 30})
    )
    lap = [Access(page * PAGE + page % 64 * LINE) for page in range(pages)]
    ready = streams.run(memory, lap * 4, chained=True)
    assert (ready[-1] - ready[-1 - pages]) / pages == latency


@pytest.mark.parametrize(("step", "lines_of_a_bank"), [(4, 64), (2, 32), (1, 16)])
def test_a_bank_takes_a_line_every_so_many_cycles(step, lines_of_a_bank):
    # 64 lines that are in L2 and not in L1D, all wanted at once. Each bank starts one every three cycles.
    memory = MemorySystem(levels(l2={"banks": 4, "bank_cycles": 3}))
    wanted = [1 << 20 | step * index * LINE for index in range(64)]
    others = [index * LINE for index in range(512)]  # twice L1D
    streams.run(memory, [Access(address) for address in wanted + others])
    ready = streams.run(memory, [Access(address, cycle=100_000) for address in wanted])
    assert sorted(ready)[0] == 100_000 + 13
    assert sorted(ready)[-1] == 100_000 + 13 + 3 * (lines_of_a_bank - 1)


def test_written_lines_leave_l1d_one_after_the_other():
    # 64 lines from L2 take the places of 64 that were written, or only read: the former go every five cycles.
    config = levels(l1d={"write_back_cycles": 5})
    for kind, last in ((LOAD, 13), (STORE, 5 * 63)):
        memory = MemorySystem(config)
        in_l2 = [Access(1 << 20 | index * LINE) for index in range(64)]
        streams.run(memory, in_l2 + [Access(index * LINE, kind) for index in range(256)])
        ready = streams.run(memory, [access._replace(cycle=100_000) for access in in_l2])
        assert max(ready) == 100_000 + last


def test_a_page_that_the_kernel_has_written_is_in_l1d_and_counts_nothing():
    for where, latency in (("memory", 200), ("l1d", 4)):
        memory = MemorySystem(levels() | {"kernel": {"fresh_pages": where}})
        streams.run(memory, [Access(5 * PAGE)])
        before = streams.counts(memory)
        memory.place_page(0, 7 * PAGE, 1000)
        assert streams.counts(memory) == before
        ready = streams.run(memory, [Access(7 * PAGE + index * LINE, cycle=5000) for index in range(64)])
        assert {at - 5000 for at in ready} == {latency}
        # All of it has been written: it leaves L1D as such.
        streams.run(memory, [Access(1 << 20 | index * LINE) for index in range(512)])
        assert streams.counts(memory).get(Probe.L1D_WRITE_BACK, 0) == (64 if where == "l1d" else 0)


def test_access_to_a_line_under_way_waits_for_it_and_is_no_second_refill():
    memory = MemorySystem(levels())
    first = streams.run(
        memory, [Access(0, cycle=10), Access(8, cycle=11), Access(16, cycle=208), Access(24, cycle=300)]
    )
    # 10 + 200; under way; under way, as 208 + 4 is later; there
    assert first == [210, 210, 212, 304]
    assert streams.counts(memory)[Probe.L1D_REFILL_LOAD] == 1
    assert streams.counts(memory)[Probe.L1D_ACCESS_LOAD] == 4


def test_misses_wait_for_a_free_register():
    memory = MemorySystem(levels(l1d={"mshrs": 2}))
    ready = streams.run(memory, [Access(n * LINE, cycle=n) for n in range(5)])
    # Two at once; the third starts when the first has come, and so on.
    assert ready == [200, 201, 400, 401, 600]


def test_older_miss_at_a_later_cycle_leaves_registers_to_younger_ones_at_earlier_cycles():
    memory = MemorySystem(levels(l1d={"mshrs": 2}))
    # A chain of three misses, and behind it in program order an independent one that could start at once.
    accesses = [Access(0), Access(LINE, cycle=200), Access(2 * LINE, cycle=400), Access(3 * LINE, cycle=5)]
    assert streams.run(memory, accesses) == [200, 400, 600, 205]


def test_memory_takes_a_line_every_so_many_cycles():
    memory = MemorySystem(levels(memory={"cycles_per_line": 7}))
    ready = streams.run(memory, [Access(n * LINE) for n in range(100)])
    assert ready == [200 + 7 * n for n in range(100)]
    # 2.5 cycles: taken up at 0, 2.5, 5, ... and known at the next full cycle
    memory = MemorySystem(levels(memory={"cycles_per_line": 2.5}))
    ready = streams.run(memory, [Access(n * LINE) for n in range(100)])
    assert ready == [200 + (5 * n + 1) // 2 for n in range(100)]


def test_memory_is_not_held_up_for_younger_requests_by_one_for_a_later_cycle():
    memory = MemorySystem(levels(memory={"cycles_per_line": 7}))
    assert streams.run(memory, [Access(0, cycle=5000), Access(LINE, cycle=10)]) == [5200, 210]


def test_stores_take_as_long_as_loads_to_get_their_line():
    memory = MemorySystem(levels())
    ready = streams.run(memory, [Access(0, STORE), Access(0, STORE, cycle=300), Access(0, LOAD, cycle=400)])
    assert ready == [200, 304, 404]


def test_fetches_have_their_own_first_level():
    memory = MemorySystem(levels())
    assert [memory.fetch(0, 0x1000, cycle) for cycle in (0, 300, 301)] == [200, 303, 304]
    assert memory.load(0, 0x1000, 4, cycle=400) == 413  # in L2
    assert streams.counts(memory) == {
        Probe.L1I_ACCESS: 3,
        Probe.L1I_REFILL: 1,
        Probe.L1D_ACCESS_LOAD: 1,
        Probe.L1D_REFILL_LOAD: 1,
        Probe.L2_ACCESS_FETCH: 1,
        Probe.L2_ACCESS_LOAD: 1,
        Probe.L2_REFILL_FETCH: 1,
        Probe.LL_ACCESS_FETCH: 1,
        Probe.LL_REFILL_FETCH: 1,
        Probe.DRAM_READ: 1,
    }


def test_nothing_configured_costs_nothing_and_counts_nothing():
    memory = MemorySystem({})
    assert memory.load(0, 0xFFC, 8, cycle=5) == memory.store(0, 0x3E, 4, cycle=5) == memory.fetch(0, 0, cycle=5) == 5
    assert streams.counts(memory) == {}
