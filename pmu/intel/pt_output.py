"""Where an Intel PT trace goes, by registers and what they lead to in memory. Intel SDM volume 3, "Trace Output"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pmu.intel.pt_registers import IA32_RTIT_OUTPUT_MASK_PTRS, TOPA_ENTRY

REGION_SIZE = 4096  # bytes of the smallest
ENTRY_BYTES = 8
MOST_REGIONS = 1 << 16  # of all tables. Our choice: a guest must not keep us busy with all of its RAM


class TraceMemory(Protocol):
    """What the output's physical addresses lead to."""

    def find(self, address: int, size: int) -> memoryview | None:
        """None: not all of it is memory."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a trace begins, and all regions that it can come to."""

    regions: list[tuple[memoryview, bool, bool]]  # each with INT and STOP, in their order
    entries: list[tuple[int, int]]  # of each: the address of its table, and its number there; of a single range none
    region: int  # number: where the next byte goes
    offset: int  # ... and where in it


def single_range(memory: TraceMemory, base: int, pointers: IA32_RTIT_OUTPUT_MASK_PTRS) -> Output | None:
    """None: an operational error."""
    mask = pointers.value & 0xFFFF_FFFF
    found = memory.find(base, mask + 1)
    if mask & mask + 1 or base & mask or found is None:
        return None
    return Output([(found, False, False)], [], 0, pointers.OUTPUT_OFFSET & mask)


def regions_of_tables(memory: TraceMemory, base: int, pointers: IA32_RTIT_OUTPUT_MASK_PTRS) -> Output | None:
    """Those of all tables of physical addresses (ToPA), from the present one on. None: an operational error."""
    if base % REGION_SIZE:
        return None
    regions: list[tuple[memoryview, bool, bool]] = []
    entries: list[tuple[int, int]] = []
    tables: set[int] = set()
    table = base
    while table not in tables:
        tables.add(table)
        number = 0
        while True:
            bits = memory.find(table + number * ENTRY_BYTES, ENTRY_BYTES)
            if bits is None:
                return None
            entry = TOPA_ENTRY(int.from_bytes(bits, "little"))
            if entry.value & ~TOPA_ENTRY.declared or (entry.END and (not number or entry.INT or entry.STOP)):
                return None
            if entry.END:
                table = entry.BASE << 12
                break
            size = REGION_SIZE << entry.SIZE
            found = memory.find(entry.BASE << 12, size)
            if found is None or (entry.BASE << 12) % size or len(regions) == MOST_REGIONS:
                return None
            regions.append((found, bool(entry.INT), bool(entry.STOP)))
            entries.append((table, number))
            number += 1
    if table != base:
        return None  # a ring that does not come back to where it began
    present = base, pointers.MASK_OR_TABLE_OFFSET
    if present not in entries:
        return None
    region = entries.index(present)
    if pointers.OUTPUT_OFFSET >= len(regions[region][0]):
        return None
    return Output(regions, entries, region, pointers.OUTPUT_OFFSET)
