"""DebugStore: the save area (DS) by which Intel's BTS and PEBS know where to write, of one CPU.

Intel SDM volume 3, "BTS and DS Save Area". Software makes it in memory; IA32_DS_AREA says where. Both units read their
words there when they are enabled.
"""

from __future__ import annotations

import struct
from typing import Protocol

from emulator.sysregs import Msr
from pmu.register import RW, Register
from pmu.unit_memory import UnitMemory

BTS = struct.Struct("<4Q")  # buffer base, index, absolute maximum, interrupt threshold
BTS_AT = 0
PEBS = struct.Struct("<4Q")  # the same
PEBS_AT = BTS_AT + BTS.size
RESETS_AT = PEBS_AT + PEBS.size  # reset values of the general-purpose counters, then of the fixed ones, a word each
RESET_BYTES = 8
MOST_FIXED = 4
_USUAL_COUNTERS, _EXTENDED_COUNTERS = 8, 32  # words for general-purpose counters: of formats 3 and 4, of format 5


class IA32_DS_AREA(Register):
    """The linear address of the DS save area."""

    encoding = Msr(0x600)

    ADDRESS = RW(63, 0)


def debug_stores(cpus: int, counters: int) -> list[AllocatedStore]:
    """Of so many CPUs with so many counters, each with its area, in one memory: reserve_ds_buffers()."""
    memory = UnitMemory()
    stores = [AllocatedStore(memory) for _ in range(cpus)]
    for store in stores:
        store.address, _ = memory.allocate(area_bytes(counters))
    return stores


def general_resets(counters: int) -> int:
    """Words for the reset values of so many general-purpose counters."""
    return _USUAL_COUNTERS if counters <= _USUAL_COUNTERS else _EXTENDED_COUNTERS


def area_bytes(counters: int) -> int:
    """Of a DS save area with all that there may be."""
    return RESETS_AT + RESET_BYTES * (general_resets(counters) + MOST_FIXED)


class StoreMemory(Protocol):
    """What lies at the addresses of debug stores."""

    def find(self, address: int, size: int) -> memoryview | None:
        """So many bytes from there on; None where there are not as many."""


class DebugStore:
    """IA32_DS_AREA of one CPU, and what it and the addresses in the area lead to."""

    kept = ("address",)

    def __init__(self, memory: StoreMemory) -> None:
        self.memory = memory
        self.address = 0  # IA32_DS_AREA

    def area(self, size: int) -> memoryview:
        """The first so many bytes of the area."""
        return self.reached(self.address, size)

    def reached(self, address: int, size: int) -> memoryview:
        """ValueError where there is no memory."""
        found = self.memory.find(address, size)
        if found is None:
            raise ValueError(f"the debug store reaches {size} bytes at {address:#x}, and there is no memory")
        return found


class AllocatedStore(DebugStore):
    """One whose driver allocates its memory."""

    memory: UnitMemory
