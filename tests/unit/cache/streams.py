"""Streams of accesses, and what a memory system says to them."""

from __future__ import annotations

import random
import struct
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from emulator._native import MemorySystem
from emulator.probes import Probe

LOAD, STORE, FETCH, PREFETCH = range(4)
LINE = 64


class Access(NamedTuple):
    """One access; the cycle is when it starts, or, in a chain, how long after the one before."""

    address: int
    kind: int = LOAD
    size: int = 8
    pc: int = 0
    cycle: int = 0
    core: int = 0


def run(memory: MemorySystem, accesses: Iterable[Access], *, chained: bool = False) -> list[int]:
    """The cycles at which the data are there."""
    record = struct.Struct("<QQQIHH")
    packed = b"".join(record.pack(a.address, a.pc, a.cycle, a.size, a.kind, a.core) for a in accesses)
    return array("Q", memory.run(packed, chained)).tolist()


def counts(memory: MemorySystem, core: int = 0) -> dict[Probe, int]:
    """What has fired."""
    return {Probe(number): count for number, count in enumerate(memory.totals(core)) if count}


def lines(seed: int, count: int, span: int) -> Iterator[int]:
    """Line numbers: random ones, runs, strides and loops, mixed as programs do."""
    generator = random.Random(seed)
    made = 0
    while made < count:
        kind = generator.randrange(4)
        start, length = generator.randrange(span), generator.randrange(1, 60)
        step = generator.choice((1, 1, 2, 4, 8, 16, -1))
        loop = generator.randrange(1, 20)
        for index in range(length):
            if kind == 0:
                yield generator.randrange(span)
            elif kind == 1:
                yield (start + index * step) % span
            elif kind == 2:
                yield (start + index % loop * step) % span
            else:
                yield start  # again and again
        made += length
