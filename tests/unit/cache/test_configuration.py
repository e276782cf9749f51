"""A configuration that makes no sense is refused, with its key and what would be right."""

from __future__ import annotations

import copy
import re

import pytest

from emulator._native import MemorySystem

RIGHT: dict[str, dict[str, object]] = {
    "l1i": {"size": 32768, "ways": 4, "latency": 1},
    "l1d": {"size": 32768, "ways": 4, "latency": 4, "mshrs": 8},
    "l2": {"size": 262144, "ways": 8, "latency": 12},
    "llc": {"size": 1048576, "ways": 16, "latency": 40},
    "memory": {"latency": 150, "cycles_per_line": 4},
    "itlb": {"entries": 32},
    "dtlb": {"entries": 64, "ways": 4},
    "l2tlb": {"entries": 1024, "ways": 8, "latency": 5},
    "page_walk": {"latency": 30},
}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("l1d.ways", 3, "l1d.size: 32768 with 3 ways .* power of two: 24576 or 49152 would be"),
        ("l1d.size", 49152, "l1d.size: 49152 with 4 ways .* power of two: 32768 or 65536 would be"),
        ("l1d.size", 32767, "l1d.size: 32767 bytes is not a whole number of lines of 64"),
        ("l1d.size", 0, "l1d.size: 0 bytes"),
        ("l1d.ways", 1024, "l1d.ways: 1024 is not between 1 and the 512 entries"),
        ("l1d.ways", -1, "l1d.ways: -1"),
        ("l1d.line", 48, "l1d.line: 48 bytes is not a power of two"),
        ("l1d.line", 32, "line: 64 bytes, but l1d's are of 32: all must be the same"),
        ("l1d.latency", 0, "l1d.latency: 0 cycles is not between 1"),
        ("l1d.mshrs", 0, "l1d.mshrs: 0 is not between 1 and 1024"),
        ("l1d.replacement", "mru", 'l1d.replacement: "mru" is no replacement policy: there are brrip, drrip, lru'),
        (
            "l1d.prefetchers",
            ["magic"],
            'l1d.prefetchers: "magic" is no prefetcher: there are next_line, stream, stride',
        ),
        ("l1d.write_policy", "never", 'l1d.write_policy: "never" is not one of write_back, write_through, untracked'),
        ("l1d.write_allocate", 1, "l1d.write_allocate: is not true or false"),
        ("l2.inclusion", "partly", 'l2.inclusion: "partly" is not one of inclusive, exclusive, non_inclusive'),
        ("l2.scope", "ours", 'l2.scope: "ours" is not one of private, shared'),
        ("l2.latency", 3, "l2.latency: 3 cycles is less than the 4 of l1d"),
        ("llc.latency", 11, "llc.latency: 11 cycles is less than the 12 of l2"),
        ("memory.latency", 39, "memory.latency: 39 cycles is less than the 40 of the last cache"),
        ("memory.cycles_per_line", -1.0, "memory.cycles_per_line: -1.0* is not between 0"),
        ("dtlb.entries", 0, "dtlb.entries: 0 entries is not between 1"),
        ("dtlb.entries", 48, "dtlb.entries: 48 with 4 ways .* power of two: 32 or 64 would be"),
        ("l2tlb.latency", 0, "l2tlb.latency: 0 cycles"),
        ("page_walk.latency", 0, "page_walk.latency: 0 cycles"),
        ("coherence.filter", "some", 'coherence.filter: "some" is not one of directory, none'),
        ("prefetcher.stride.entries", 48, "prefetcher.stride.entries: 48 is not a power of two"),
        ("prefetcher.stride.degree", 0, "prefetcher.stride.degree: 0 is not between 1"),
        ("prefetcher.stride.speed", 1, "prefetcher.stride.speed: no such parameter: there are entries, degree, "),
    ],
)
def test_error_names_the_key_and_what_would_be_right(key, value, message):
    config: dict[str, dict[str, object]] = copy.deepcopy(RIGHT)
    *tables, name = key.split(".")
    if tables[0] == "prefetcher":
        config["l1d"]["prefetchers"] = [tables[1]]
    table: dict[str, object] = config  # type: ignore[assignment]
    for part in tables:
        table = table.setdefault(part, {})  # type: ignore[assignment]
    table[name] = value
    with pytest.raises(ValueError) as error:
        MemorySystem(config)
    assert re.match(r"(l1i\.|l2\.|llc\.)?" + message, str(error.value)), error.value
    MemorySystem(RIGHT)


def test_tables_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match=r"l2: needs an \[l1d\] before it"):
        MemorySystem({"l2": RIGHT["l2"]})
    with pytest.raises(ValueError, match=r"l2tlb: needs an \[itlb\] or a \[dtlb\] before it"):
        MemorySystem({"l2tlb": RIGHT["l2tlb"]})
    with pytest.raises(ValueError, match=r'llc.scope: "private" behind an l2 that is shared'):
        MemorySystem(RIGHT | {"l2": RIGHT["l2"] | {"scope": "shared"}, "llc": RIGHT["llc"] | {"scope": "private"}})
    with pytest.raises(ValueError, match=r"page_walk.reads_entries: needs an \[l2\] or \[llc\]"):
        MemorySystem({"dtlb": RIGHT["dtlb"], "page_walk": {"reads_entries": True}})
    with pytest.raises(ValueError, match=r"l1d\.size: missing"):
        MemorySystem({"l1d": {"ways": 4, "latency": 4}})
    with pytest.raises(ValueError, match="cores: 65 is not between 1 and 64"):
        MemorySystem(RIGHT, cores=65)
