"""Several levels: what is accessed, refilled, written back and thrown out, with one core and with more."""

from __future__ import annotations

import itertools
import random

import pytest

from emulator._native import MemorySystem
from emulator.probes import Probe
from tests.unit.cache import streams
from tests.unit.cache.hierarchy import Hierarchy
from tests.unit.cache.streams import FETCH, LINE, LOAD, STORE, Access

L1, L2, LLC = (8, 2), (16, 4), (32, 8)
INCLUSIONS = ("inclusive", "non_inclusive", "exclusive")
LEVELS = list(itertools.product((None, *INCLUSIONS), repeat=2))


def table(geometry: tuple[int, int], latency: int) -> dict[str, object]:
    sets, ways = geometry
    return {"size": sets * ways * LINE, "ways": ways, "latency": latency}


def config(l2: str | None, llc: str | None, **l1d: object) -> dict[str, object]:
    tables: dict[str, object] = {"l1i": table(L1, 1), "l1d": table(L1, 4) | l1d, "memory": {"latency": 100}}
    if l2:
        tables["l2"] = table(L2, 10) | {"inclusion": l2}
    if llc:
        tables["llc"] = table(LLC, 40) | {"inclusion": llc}
    return tables


def oracle(cores: int, l2: str | None, llc: str | None, **policy: bool) -> Hierarchy:
    return Hierarchy(cores, L1, (*L2, l2) if l2 else None, (*LLC, llc) if llc else None, **policy)


def mixed(seed: int, count: int, cores: int, span: int = 600) -> list[Access]:
    """Half of what several cores touch is their own, half is everybody's."""
    generator = random.Random(seed)
    numbers = streams.lines(seed, count, span)
    accesses = []
    for line in itertools.islice(numbers, count):
        core = generator.randrange(cores)
        own = cores > 1 and generator.random() < 0.5
        kind = generator.choice((LOAD, LOAD, STORE, FETCH))
        accesses.append(Access((line + own * (core + 1) * span) * LINE, kind, core=core))
    return accesses


def compare(memory: MemorySystem, expected: Hierarchy, accesses: list[Access], piece: int = 500) -> None:
    """Piece by piece, so that a difference is seen near its cause."""
    for start in range(0, len(accesses), piece):
        streams.run(memory, accesses[start : start + piece])
        for access in accesses[start : start + piece]:
            expected.access(expected.cores[access.core], access.kind, access.address // LINE)
        for number, core in enumerate(expected.cores):
            counted = {probe.name: count for probe, count in streams.counts(memory, number).items()}
            assert counted == {name: count for name, count in core.counts.items() if count}, (start, number)


@pytest.mark.parametrize(("l2", "llc"), LEVELS)
def test_one_core_counts_as_the_description(l2, llc):
    compare(MemorySystem(config(l2, llc)), oracle(1, l2, llc), mixed(1, 2500, 1))


@pytest.mark.parametrize("l2", [None, *INCLUSIONS])
@pytest.mark.parametrize("write_allocate", [True, False])
@pytest.mark.parametrize("write_policy", ["write_back", "write_through"])
def test_write_policies_count_as_the_description(write_policy, write_allocate, l2):
    memory = MemorySystem(config(l2, None, write_policy=write_policy, write_allocate=write_allocate))
    expected = oracle(1, l2, None, write_through=write_policy == "write_through", write_allocate=write_allocate)
    compare(memory, expected, mixed(2, 1000, 1))


@pytest.mark.parametrize("cores", [2, 5])
@pytest.mark.parametrize(("l2", "llc"), LEVELS)
def test_several_cores_count_as_the_description(l2, llc, cores):
    memory = MemorySystem(config(l2, llc), cores=cores)
    compare(memory, oracle(cores, l2, llc), mixed(3, 1500, cores))
    for number in range(cores):
        assert streams.counts(memory, number).keys() >= COHERENCE


COHERENCE = {Probe.SNOOP, Probe.SNOOP_HIT, Probe.SNOOP_HITM, Probe.INVALIDATED, Probe.FETCHED_HIT, Probe.FETCHED_HITM}


@pytest.mark.parametrize("write_allocate", [True, False])
def test_several_cores_with_write_through_count_as_the_description(write_allocate):
    policy = {"write_policy": "write_through", "write_allocate": write_allocate}
    for l2, llc in itertools.product((None, "inclusive", "non_inclusive"), repeat=2):
        memory = MemorySystem(config(l2, llc, **policy), cores=2)
        compare(memory, oracle(2, l2, llc, write_through=True, write_allocate=write_allocate), mixed(4, 1000, 2))


def test_dirty_lines_are_written_back_once_when_they_leave():
    memory = MemorySystem({"l1d": {"size": 2 * LINE, "ways": 2, "latency": 4}, "memory": {"latency": 100}})
    # Two ways: 0 and 1 are written; 2 throws out 0; 3, read, throws out 1; 4 throws out 2, which is clean.
    stream = [Access(0, STORE), Access(LINE, STORE), *(Access(n * LINE, LOAD) for n in (2, 3, 4))]
    streams.run(memory, stream)
    counted = streams.counts(memory)
    assert (counted[Probe.L1D_WRITE_BACK], counted[Probe.DRAM_WRITE], counted[Probe.DRAM_READ]) == (2, 2, 5)


def test_untracked_stores_are_like_loads():
    memory = MemorySystem(config("non_inclusive", None, write_policy="untracked"))
    loads = MemorySystem(config("non_inclusive", None))
    accesses = mixed(5, 4000, 1)
    streams.run(memory, accesses)
    streams.run(loads, [access._replace(kind=FETCH if access.kind == FETCH else LOAD) for access in accesses])
    counted, expected = streams.counts(memory), streams.counts(loads)
    for level, event in itertools.product(("L1D", "L2"), ("ACCESS", "REFILL")):
        both = (Probe[f"{level}_{event}_LOAD"], Probe[f"{level}_{event}_STORE"])
        assert counted[both[0]] + counted[both[1]] == expected[both[0]] > 0
    assert {Probe.L1D_WRITE_BACK, Probe.L2_WRITE_BACK, Probe.DRAM_WRITE}.isdisjoint(counted)


def test_inclusive_cache_takes_lines_from_the_first_level():
    l1d = {"size": 4 * LINE, "ways": 4, "latency": 4}
    l2 = {"size": 4 * LINE, "ways": 4, "latency": 10, "inclusion": "inclusive"}
    memory = MemorySystem({"l1d": l1d, "l2": l2, "memory": {"latency": 100}})
    # Line 0 is hit in L1D all the time, which L2 does not see: for it 0 is the oldest when 4 comes.
    streams.run(memory, [Access(n * LINE, STORE) for n in (0, 1, 0, 2, 0, 3, 0, 4, 0)])
    counted = streams.counts(memory)
    assert counted[Probe.L1D_REFILL_STORE] == 6  # 0 1 2 3 4, and 0 again
    assert counted[Probe.L1D_WRITE_BACK] == 2  # 0 for L2's sake, then 1, for which L1D and L2 agree


@pytest.mark.parametrize("address", [0x1000, 0xFFFF_FFFF_F000, 0xFF_FFFF_F000, 0xFFFF_FFFF_FFFF_F000])
def test_lines_that_only_their_highest_bits_tell_apart(address):
    """Stores to lines that are there look for them anew: one whose tag's low bits are all ones, or as another's."""
    memory = MemorySystem({
        "l1d": {"size": 32 * 1024, "ways": 8, "latency": 4},
        "l2": {"size": 1024 * 1024, "ways": 16, "latency": 14},
        "memory": {"latency": 100},
    })  # fmt: skip
    alike = [address ^ bit for bit in (0, 1 << 44, 1 << 48, 1 << 52)]
    assert streams.run(memory, [Access(at, cycle=1000) for at in alike]) == [1100] * 4
    assert streams.run(memory, [Access(at, STORE, cycle=2000) for at in alike]) == [2004] * 4
    counted = streams.counts(memory)
    assert (counted[Probe.L1D_REFILL_LOAD], counted[Probe.L2_REFILL_LOAD]) == (4, 4)
    assert counted.get(Probe.L1D_REFILL_STORE, 0) == 0
