"""What prefetchers bring, when it is there, and what counts as used."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from emulator._native import MemorySystem, prefetchers
from emulator.probes import Probe
from tests.unit.cache import streams
from tests.unit.cache.streams import LINE, PREFETCH, STORE, Access

KIB = 1024
L1D = {"size": 32 * KIB, "ways": 8, "latency": 4}
L2 = {"size": 256 * KIB, "ways": 8, "latency": 14}
MEMORY = {"latency": 100}
PAGE_LINES = 4096 // LINE


def memory_with(name: str, **parameters: object) -> MemorySystem:
    config = {"l1d": L1D | {"prefetchers": [name]}, "memory": MEMORY, "prefetcher": {name: parameters}}
    return MemorySystem(config)


def walk(memory: MemorySystem, lines: list[int], pc: int = 0) -> list[int]:
    """The latencies of loads so far apart that everything asked for has come."""
    accesses = [Access(line * LINE, pc=pc, cycle=1000 * number) for number, line in enumerate(lines)]
    ready = streams.run(memory, accesses)
    return [cycle - access.cycle for cycle, access in zip(ready, accesses, strict=True)]


def test_all_prefetchers_are_registered():
    assert {"next_line", "stream", "stride"} <= set(prefetchers())


@pytest.mark.parametrize("degree", [1, 3])
def test_next_line_runs_ahead_of_a_walk(degree):
    memory = memory_with("next_line", degree=degree)
    assert walk(memory, list(range(PAGE_LINES))) == [100] + [4] * (PAGE_LINES - 1)
    counted = streams.counts(memory)
    assert counted[Probe.L1D_REFILL_LOAD] == 1
    # All of the page but its first line; nothing beyond its end
    assert counted[Probe.L1D_PREFETCH] == counted[Probe.L1D_PREFETCH_USED] == PAGE_LINES - 1
    assert counted[Probe.DRAM_READ] == PAGE_LINES


def test_next_line_crosses_pages_if_it_may():
    memory = memory_with("next_line", crosses_pages=True)
    assert walk(memory, list(range(2 * PAGE_LINES))) == [100] + [4] * (2 * PAGE_LINES - 1)


def test_prefetched_line_has_its_arrival_time():
    memory = memory_with("next_line")
    # Line 1 is asked for at cycle 0, when line 0 misses; it comes at 100.
    assert streams.run(memory, [Access(0), Access(LINE, cycle=10), Access(LINE, cycle=99)]) == [100, 100, 103]
    assert streams.counts(memory)[Probe.L1D_PREFETCH_USED] == 1


class StrideTable:
    """By PC: the last address, the last distance, how often it was repeated. Returns lines to bring."""

    def __init__(self, degree: int, distance: int, confidence: int) -> None:
        self.degree, self.distance, self.confidence = degree, distance, confidence
        self.rows: dict[int, tuple[int, int | None, int]] = {}

    def hear(self, pc: int, address: int) -> list[int]:
        if pc not in self.rows:
            self.rows[pc] = (address, None, 0)
            return []
        last, stride, repeated = self.rows[pc]
        if last // LINE == address // LINE:
            return []
        repeated = repeated + 1 if address - last == stride else 0
        self.rows[pc] = (address, address - last, repeated)
        if repeated < self.confidence:
            return []
        ahead = range(self.distance, self.distance + self.degree)
        targets = [(address + (address - last) * step) // LINE for step in ahead]
        return [line for line in targets if line // PAGE_LINES == address // LINE // PAGE_LINES]


@pytest.mark.parametrize("distance", [1, 4])
@pytest.mark.parametrize("strides", [(64, 128, 192), (320, -64, 96), (72, 4096, 200)])
def test_stride_brings_what_the_table_says(strides, distance):
    memory = memory_with("stride", degree=2, distance=distance, confidence=2)
    table = StrideTable(degree=2, distance=distance, confidence=2)
    present: set[int] = set()  # far less than the cache holds
    address = [0x10_0000, 0x40_8000, 0x80_4000]
    asked = 0
    for step in range(240):
        stream = step % 3
        pc, at = 0x1000 + 4 * stream, address[stream] + step // 3 * strides[stream]
        latency = memory.load(0, at, 1, pc, 1000 * step) - 1000 * step
        assert latency == (4 if at // LINE in present else 100), step
        present.add(at // LINE)
        lines = table.hear(pc, at)
        asked += len(set(lines) - present)
        present.update(lines)
    assert streams.counts(memory).get(Probe.L1D_PREFETCH, 0) == asked


def test_stride_sees_a_walk_in_small_steps():
    memory = memory_with("stride", degree=1, confidence=2)
    accesses = [Access(24 * n, pc=0x1000, cycle=1000 * n) for n in range(170)]  # a page
    streams.run(memory, accesses)
    counted = streams.counts(memory)
    # The steps from line 0 to 1, 2, 3 are a first and two repetitions: lines 0 to 3 miss.
    assert counted[Probe.L1D_REFILL_LOAD] == 4
    assert counted[Probe.L1D_PREFETCH_USED] == PAGE_LINES - 4


def test_hits_are_no_news_but_for_the_first_use_and_the_first_store():
    memory = memory_with("stride", degree=1, confidence=1, crosses_pages=True)
    streams.run(memory, [Access(line * LINE, pc=line, cycle=1000 * line) for line in range(64)])
    # Loads that hit, alone or in two lines each; stores to lines that have been written.
    streams.run(memory, [Access(line * LINE, STORE, pc=line, cycle=100_000) for line in range(0, 60, 3)])
    strided = [Access(line * LINE, STORE, pc=0x1000, cycle=200_000) for line in range(0, 60, 3)]
    strided += [Access(line * LINE + LINE - 4, pc=0x2000, cycle=200_000) for line in range(1, 60, 3)]
    streams.run(memory, strided)
    counted = streams.counts(memory)
    assert (counted[Probe.L1D_SPLIT_LOAD], counted[Probe.L1D_ACCESS_STORE]) == (20, 40)
    assert counted.get(Probe.L1D_PREFETCH, 0) == 0
    streams.run(memory, [Access(line * LINE, STORE, pc=0x3000, cycle=300_000) for line in (55, 58, 61)])
    assert streams.counts(memory)[Probe.L1D_PREFETCH] == 1  # of line 64
    streams.run(memory, [Access(line * LINE, pc=0x3000, cycle=400_000) for line in (64, 65)])
    assert streams.counts(memory)[Probe.L1D_PREFETCH_USED] == 1


class Streams:
    """Runs of misses: those last used go first when a new one needs room."""

    def __init__(self, count: int, degree: int, distance: int, confidence: int, window: int) -> None:
        self.count, self.degree, self.distance = count, degree, distance
        self.confidence, self.window = confidence, window
        self.runs: OrderedDict[int, list[int]] = OrderedDict()  # number -> last, next, direction, steps
        self.made = 0

    def hear(self, line: int) -> list[int]:
        # In the order of the slots, which is that of creation until one is replaced in its place
        for number in sorted(self.runs, key=lambda number: number % self.count):
            last, following, direction, steps = self.runs[number]
            if line == last or abs(line - last) > self.window:
                continue
            now = 1 if line > last else -1
            steps = steps + 1 if now == direction else 1
            if steps == 1:
                following = line
            wanted = []
            if steps >= self.confidence:
                if (following - line) * now < 1:
                    following = line + now
                while len(wanted) < self.degree and (following - line) * now <= self.distance:
                    if following // PAGE_LINES != line // PAGE_LINES:
                        break
                    wanted.append(following)
                    following += now
            self.runs[number] = [line, following, now, steps]
            self.runs.move_to_end(number)
            return wanted
        slot = self.made
        if len(self.runs) == self.count:
            slot = self.runs.popitem(last=False)[0] % self.count
        self.runs[slot] = [line, line, 0, 0]
        self.made += 1
        return []


def test_stream_brings_what_its_description_says():
    parameters = {"streams": 3, "degree": 2, "distance": 6, "confidence": 2, "window": 4}
    memory = memory_with("stream", **parameters)
    parameters["count"] = parameters.pop("streams")
    expected = Streams(**parameters)
    ascending, descending, sparse = iter(range(400)), iter(range(1900, 1500, -1)), iter(range(3000, 4000, 3))
    alone = iter(range(5000, 9000, 37))
    sources = [ascending, descending, ascending, sparse, alone, ascending, descending]
    present: dict[int, bool] = {}  # line -> whether it was used
    for step in range(420):
        line = next(sources[step % len(sources)])
        hit, first_use = line in present, present.get(line) is False
        assert memory.load(0, line * LINE, 1, 0, 1000 * step) - 1000 * step == (4 if hit else 100), step
        present[line] = True
        if not hit or first_use:
            for wanted in expected.hear(line):
                present.setdefault(wanted, False)
    counted = streams.counts(memory)
    assert counted[Probe.L1D_PREFETCH] == counted[Probe.DRAM_READ] - counted[Probe.L1D_REFILL_LOAD]
    assert counted[Probe.L1D_PREFETCH_USED] > 150


def test_second_level_prefetches_for_itself():
    memory = MemorySystem({"l1d": L1D, "l2": L2 | {"prefetchers": ["next_line"]}, "memory": MEMORY})
    assert walk(memory, list(range(8))) == [100] + [14] * 7
    counted = streams.counts(memory)
    assert counted[Probe.L2_PREFETCH] == 8  # the last of them brings line 8
    assert counted[Probe.L2_PREFETCH_USED] == 7
    assert (counted[Probe.L2_ACCESS_LOAD], counted[Probe.L2_REFILL_LOAD]) == (8, 1)
    assert Probe.L1D_PREFETCH not in counted


def test_prefetches_of_the_first_level_are_no_accesses_of_the_second():
    memory = MemorySystem({"l1d": L1D | {"prefetchers": ["next_line"]}, "l2": L2, "memory": MEMORY})
    assert walk(memory, list(range(8))) == [100] + [4] * 7
    counted = streams.counts(memory)
    assert (counted[Probe.L2_ACCESS_LOAD], counted[Probe.L2_REFILL_LOAD]) == (1, 1)
    assert counted[Probe.DRAM_READ] == 9


def test_prefetch_without_a_free_register_is_dropped():
    config = {"l1d": L1D | {"prefetchers": ["next_line"], "mshrs": 1}, "memory": MEMORY}
    memory = MemorySystem(config)
    assert streams.run(memory, [Access(0), Access(LINE, cycle=200)]) == [100, 300]
    assert Probe.L1D_PREFETCH not in streams.counts(memory)


def test_instructions_prefetch():
    memory = MemorySystem({"l1d": L1D, "dtlb": {"entries": 4}, "memory": MEMORY})
    assert streams.run(memory, [Access(0, PREFETCH), Access(0, cycle=50), Access(0, cycle=200)])[1:] == [100, 204]
    assert streams.counts(memory) == {
        Probe.L1D_PREFETCH: 1,
        Probe.L1D_PREFETCH_USED: 1,
        Probe.L1D_ACCESS_LOAD: 2,
        Probe.DTLB_ACCESS_LOAD: 2,  # the page came with the prefetch, which is no access
        Probe.DRAM_READ: 1,
    }


def test_prefetches_by_instructions_are_known_by_their_pc_behind_the_first_level():
    memory = MemorySystem(
        {"l1d": L1D, "l2": L2 | {"prefetchers": ["stride"]}, "memory": MEMORY, "prefetcher": {"stride": {"degree": 1}}}
    )
    # One walks, the other goes anywhere between. The walk's third step brings what comes next.
    walk, others = (0, 2, 4, 6), (50, 31, 45, 20)
    pairs = zip(walk, others, strict=True)
    accesses = [Access(line * LINE, PREFETCH, pc=pc) for pair in pairs for pc, line in enumerate(pair, 1)]
    streams.run(memory, [access._replace(cycle=1000 * n) for n, access in enumerate(accesses)])
    assert streams.counts(memory)[Probe.L2_PREFETCH] == 1  # line 8


def test_fetches_have_prefetchers_of_their_own():
    memory = MemorySystem({"l1i": L1D | {"latency": 1, "prefetchers": ["next_line"]}, "memory": MEMORY})
    assert [memory.fetch(0, line * LINE, 1000 * line) - 1000 * line for line in range(4)] == [100, 1, 1, 1]
    assert streams.counts(memory)[Probe.L1I_PREFETCH] == 4
