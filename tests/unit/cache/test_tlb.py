"""TLBs, and accesses that cross lines and pages."""

from __future__ import annotations

import random

import pytest

from emulator._native import MemorySystem, replacement_policies
from emulator.probes import Probe
from tests.unit.cache import policies, streams
from tests.unit.cache.streams import FETCH, LINE, LOAD, STORE, Access

PAGE = 4096
L1D = {"size": 32768, "ways": 8, "latency": 4}


@pytest.mark.parametrize(("entries", "ways"), [(16, 0), (48, 0), (64, 4), (12, 3)])
@pytest.mark.parametrize("policy", replacement_policies())
def test_tlb_refills_are_those_of_the_description(policy, entries, ways):
    tlb = {"entries": entries, "ways": ways, "replacement": policy}
    memory = MemorySystem({"dtlb": tlb, "itlb": tlb, "page_walk": {"latency": 20}})
    data, instructions = (policies.Sets(entries // (ways or entries), ways or entries, policy) for _ in range(2))
    generator = random.Random(entries)
    expected = dict.fromkeys(Probe, 0)
    latencies = []
    for cycle, page in enumerate(streams.lines(5, 4000, span=4 * entries)):
        kind = generator.choice((LOAD, LOAD, STORE, FETCH))
        address = page * PAGE + generator.randrange(500) * 8
        pc = address if kind == FETCH else 0x1000 + cycle % 8
        hit = (instructions if kind == FETCH else data).access(page, pc)
        access, refill, walk = {
            LOAD: (Probe.DTLB_ACCESS_LOAD, Probe.DTLB_REFILL_LOAD, Probe.DTLB_WALK_LOAD),
            STORE: (Probe.DTLB_ACCESS_STORE, Probe.DTLB_REFILL_STORE, Probe.DTLB_WALK_STORE),
            FETCH: (Probe.ITLB_ACCESS, Probe.ITLB_REFILL, Probe.ITLB_WALK),
        }[kind]
        expected[access] += 1
        expected[refill] += not hit
        expected[walk] += not hit
        expected[Probe.ITLB_WALK_CYCLES if kind == FETCH else Probe.DTLB_WALK_CYCLES] += 0 if hit else 20
        latencies.append(0 if hit else 20)
        accesses = [Access(address, kind, pc=pc, cycle=100 * cycle)]
        assert streams.run(memory, accesses) == [100 * cycle + latencies[-1]]
    assert streams.counts(memory) == {probe: count for probe, count in expected.items() if count}


def test_second_level_is_common_to_fetches_and_data():
    config = {
        "itlb": {"entries": 1},
        "dtlb": {"entries": 2},
        "l2tlb": {"entries": 8, "ways": 2, "latency": 5},
        "page_walk": {"latency": 20},
    }
    memory = MemorySystem(config)
    kinds = [(0, FETCH), (0, LOAD), (1, STORE), (2, LOAD), (1, LOAD), (1, FETCH), (0, FETCH), (0, STORE)]
    ready = streams.run(memory, [Access(page * PAGE, kind, cycle=100 * n) for n, (page, kind) in enumerate(kinds)])
    # A walk: 5 + 20. Page 1 is still in DTLB when it is loaded; page 0, the oldest, made room for 2.
    assert [cycle - 100 * n for n, cycle in enumerate(ready)] == [25, 5, 25, 25, 0, 5, 5, 5]
    assert streams.counts(memory) == {
        Probe.ITLB_ACCESS: 3,
        Probe.ITLB_REFILL: 3,
        Probe.ITLB_WALK: 1,
        Probe.ITLB_WALK_CYCLES: 20,
        Probe.DTLB_ACCESS_LOAD: 3,
        Probe.DTLB_ACCESS_STORE: 2,
        Probe.DTLB_REFILL_LOAD: 2,
        Probe.DTLB_REFILL_STORE: 2,
        Probe.DTLB_WALK_LOAD: 1,
        Probe.DTLB_WALK_STORE: 1,
        Probe.DTLB_WALK_CYCLES: 40,
        Probe.L2TLB_ACCESS_FETCH: 3,
        Probe.L2TLB_ACCESS_LOAD: 2,
        Probe.L2TLB_ACCESS_STORE: 2,
    }


def test_accesses_to_a_page_under_translation_wait_for_it():
    memory = MemorySystem(
        {"l1d": L1D, "memory": {"latency": 100}, "dtlb": {"entries": 4}, "page_walk": {"latency": 30}}
    )
    # All start their miss when the walk ends at 30; the last, of line 0, is a hit under it.
    assert streams.run(memory, [Access(0), Access(LINE, cycle=3), Access(8, cycle=50)]) == [130, 130, 130]


def test_walks_read_their_entries_through_the_caches_behind_the_first():
    config = {
        "l1d": L1D,
        "l2": {"size": 65536, "ways": 8, "latency": 14},
        "memory": {"latency": 100},
        "dtlb": {"entries": 1},
        "page_walk": {"reads_entries": True, "latency": 6},
    }
    memory = MemorySystem(config)
    # The entries of 8 pages share a line: the first walk takes 6 + 100, the next 6 + 14; the data 100 each.
    ready = streams.run(memory, [Access(page * PAGE, cycle=1000 * page) for page in range(3)])
    assert [cycle % 1000 for cycle in ready] == [206, 120, 120]
    counted = streams.counts(memory)
    assert counted[Probe.DTLB_WALK_CYCLES] == 106 + 20 + 20
    assert (counted[Probe.L2_ACCESS_LOAD], counted[Probe.L2_REFILL_LOAD]) == (3 + 3, 3 + 1)


@pytest.mark.parametrize(
    ("address", "size", "elements", "lines", "pages", "unaligned"),
    [
        (0x1000, 8, 1, 1, 1, False),
        (0x1004, 8, 1, 1, 1, True),
        (0x1008, 16, 2, 1, 1, False),  # a pair of eight bytes each
        (0x1008, 16, 1, 1, 1, True),
        (0x103C, 8, 1, 2, 1, True),
        (0x1038, 16, 2, 2, 1, False),
        (0x1FFE, 4, 1, 2, 2, True),
        (0x1FF8, 16, 2, 2, 2, False),
        (0x1FFF, 1, 1, 1, 1, False),
        (0x1036, 10, 1, 1, 1, False),  # an x87 number, aligned to two
        (0x103A, 10, 1, 2, 1, False),
        (0x1F00, 512, 1, 8, 2, True),
        (0x1040, 64, 1, 1, 1, False),
        (0xFFFF_FFFF_FFFF_F038, 16, 2, 2, 1, False),
    ],
)
@pytest.mark.parametrize("kind", ["LOAD", "STORE"])
def test_lines_pages_and_alignment(kind, address, size, elements, lines, pages, unaligned):
    memory = MemorySystem({"l1d": L1D, "memory": {"latency": 100}, "dtlb": {"entries": 4}})
    access = memory.load if kind == "LOAD" else memory.store
    for repetition in range(1, 4):
        access(0, address, size, cycle=1000 * repetition, elements=elements)
        counted = {probe.name: count for probe, count in streams.counts(memory).items()}
        assert counted[f"L1D_ACCESS_{kind}"] == repetition * lines
        assert counted[f"L1D_REFILL_{kind}"] == lines
        assert counted[f"DTLB_ACCESS_{kind}"] == repetition * pages
        assert counted[f"DTLB_REFILL_{kind}"] == pages
        assert counted.get(f"L1D_SPLIT_{kind}", 0) == repetition * (lines > 1)
        assert counted.get(f"UNALIGNED_{kind}", 0) == repetition * unaligned


def test_crossing_access_is_ready_when_its_last_line_is():
    memory = MemorySystem({"l1d": L1D, "memory": {"latency": 100}})
    assert streams.run(memory, [Access(0), Access(60, cycle=200), Access(60, cycle=400)]) == [100, 300, 404]


@pytest.mark.parametrize("line", [32, 128])
def test_lines_of_another_size(line):
    memory = MemorySystem({"l1d": {"size": 8192, "ways": 4, "latency": 4, "line": line}, "memory": {"latency": 100}})
    streams.run(memory, [Access(8 * n, LOAD, cycle=1000 * n) for n in range(512)] * 2)
    counted = streams.counts(memory)
    assert (counted[Probe.L1D_ACCESS_LOAD], counted[Probe.L1D_REFILL_LOAD]) == (1024, 4096 // line)
    assert memory.load(0, line - 4, 8) > 0
    assert streams.counts(memory)[Probe.L1D_SPLIT_LOAD] == 1
