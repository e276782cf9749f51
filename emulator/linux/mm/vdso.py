"""Vdso: the kernel's code that programs may call instead of the kernel, and what it reads: the clocks' parameters.

It is an ELF image, built from guest_programs/vdso, one page; its data are in the page before it, and never change: what
the time is, the counter says that user mode reads (TSC, CNTVCT_EL0). So its clocks show what the system calls do.
"""

from __future__ import annotations

import struct
from pathlib import Path

from emulator._native import PhysicalMemory
from emulator.clock import Clock
from emulator.linux.arch.architecture import Architecture
from emulator.linux.mm.mapping import (
    MAP_ANONYMOUS,
    MAP_FIXED_NOREPLACE,
    MAP_PRIVATE,
    PAGE_SIZE,
    PROT_EXEC,
    PROT_READ,
)
from emulator.linux.mm.mm import MemoryMap
from emulator.linux.structures import NANOSECONDS, TICK_NS

NAME = "[vdso]"
DIRECTORY = Path(__file__).parents[1] / "arch" / "vdso"
CLOCKS_OFFSET = 64  # in the data, of clock 0's entry
CLOCK_ENTRY = struct.Struct("<2Q")  # what it shows more than CLOCK_MONOTONIC; its granularity


def _data(clock: Clock) -> bytes:
    """As guest_programs/vdso/*.S read it."""
    realtime = clock.realtime_offset_ns & (1 << 64) - 1  # less than 0 on the first days of 1970
    entries = {  # by clock, uapi/linux/time.h
        0: (realtime, 1),
        1: (0, 1),  # CLOCK_MONOTONIC
        4: (0, 1),  # CLOCK_MONOTONIC_RAW
        5: (realtime, TICK_NS),
        6: (0, TICK_NS),
        7: (0, 1),  # CLOCK_BOOTTIME
        11: (realtime, 1),  # CLOCK_TAI
    }
    data = bytearray(PAGE_SIZE)
    struct.pack_into("<2Q", data, 0, NANOSECONDS, clock.frequency_hz)
    for number, entry in entries.items():
        CLOCK_ENTRY.pack_into(data, CLOCKS_OFFSET + CLOCK_ENTRY.size * number, *entry)
    return bytes(data)


def vdso_image(isa: str) -> Path:
    """The file that a machine of that ISA has its from."""
    return DIRECTORY / f"{isa}.elf"


class Vdso:
    """One machine's: each process has the same two frames, at the same address, above all that mmap gives out."""

    def __init__(self, architecture: Architecture, memory: PhysicalMemory, clock: Clock) -> None:
        code = vdso_image(architecture.isa).read_bytes()
        assert len(code) <= PAGE_SIZE, f"a vDSO of {len(code)} bytes"
        self.address = architecture.layout.mmap_top + PAGE_SIZE  # AT_SYSINFO_EHDR
        self._return = code.index(architecture.signal_trampoline) if architecture.signal_trampoline else None
        self._pages = (
            ("[vvar]", self.address - PAGE_SIZE, _frame(memory, _data(clock)), PROT_READ),
            (NAME, self.address, _frame(memory, code), PROT_READ | PROT_EXEC),
        )

    def map(self, mm: MemoryMap) -> None:
        """Into a new process."""
        for name, address, frame, protection in self._pages:
            mm.map(address, PAGE_SIZE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, name=name)
            mm.space.map(address, frame, 1, protection)
        if self._return is not None:
            mm.signal_trampoline = self.address + self._return


def _frame(memory: PhysicalMemory, content: bytes) -> int:
    frame = memory.allocate()
    memory.view(frame)[: len(content)] = content
    return frame
