"""An independent account of a run's data accesses: Unicorn's own MEM hooks, with nothing of ours around them.

An event is (pc, address, size in bytes, 1 for a store), as the engine accesses memory: a pair is two, a vector so many
of 8 bytes. Two things are told as the architecture has them: STXR only stores (the engine runs it as a
compare-and-swap, which reads first), and DC ZVA stores its 64 bytes at once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import unicorn
from unicorn import arm64_const, x86_const

import code_hook
from emulator._native import tell_accesses

Event = tuple[int, int, int, int]

PC = {"aarch64": arm64_const.UC_ARM64_REG_PC, "x86_64": x86_const.UC_X86_REG_RIP}
STORE_EXCLUSIVE_MASK, STORE_EXCLUSIVE = 0x3F40_0000, 0x0800_0000  # STXR, STXP and their sizes; bit 23 is checked apart
NOT_ORDERED = 1 << 23
ZERO_LINE_MASK, ZERO_LINE = 0xFFFF_FFE0, 0xD50B_7420  # DC ZVA
LINE_BYTES = 64


def merged(events: Iterable[Event]) -> list[Event]:
    """What one instruction accesses in pieces, one behind the other, as one: a pair is two, an x87 operand 8 and 2."""
    result: list[Event] = []
    for pc, address, size, store in events:
        if result and result[-1][0] == pc and result[-1][3] == store and sum(result[-1][1:3]) == address:
            result[-1] = (pc, result[-1][1], result[-1][2] + size, store)
        else:
            result.append((pc, address, size, store))
    return result


class Accesses:
    """Everything that an engine's data accesses are, in order."""

    def __init__(self, engine: unicorn.Uc, isa: str) -> None:
        self.engine, self.isa = engine, isa
        self.events: list[Event] = []
        tell_accesses()
        engine.hook_add(unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE, self._on_access)

    def _on_access(self, engine: unicorn.Uc, kind: int, address: int, size: int, _value: int, _data: object) -> None:
        pc: int = engine.reg_read(PC[self.isa])
        store = int(kind == unicorn.UC_MEM_WRITE)
        if self.isa == "aarch64":
            (word,) = struct.unpack("<I", engine.mem_read(pc, 4))
            exclusive = word & STORE_EXCLUSIVE_MASK == STORE_EXCLUSIVE and not word & NOT_ORDERED
            if exclusive and not store:
                return
            if word & ZERO_LINE_MASK == ZERO_LINE:
                if address % LINE_BYTES:
                    return
                size = LINE_BYTES
                if self.events and self.events[-1] == (pc, address, size, store):
                    return  # the helper announces a line twice
        self.events.append((pc, address, size, store))


def of_program(isa: str, path: Path, arguments: tuple[str, ...] = ()) -> list[Event]:
    """Of a freestanding guest program up to its exit."""
    engine, entry = code_hook.load(isa, path, arguments)
    accesses = Accesses(engine, isa)
    code_hook.run(engine, isa, entry)
    return accesses.events
