"""BootedImage: what a board has booted, as it lies in memory now."""

from __future__ import annotations

from functools import cached_property

from emulator.board.image import Image
from emulator.board.virt_tree import RAM_BASE
from emulator.machine import Hardware
from perfemu.kernel_symbols import symbols_in_memory

_PAGE = 4096


class BootedImage:
    """Make it before it begins."""

    def __init__(self, image: Image, hardware: Hardware) -> None:
        self.is_linux = image.is_linux
        self._hardware = hardware
        self.start = image.pieces[0][0]  # physical addresses
        self.end = min(image.end, RAM_BASE + hardware.config.memory_bytes)

    @property
    def ram(self) -> memoryview:
        """All of it."""
        return self._hardware.memory.view(0, self._hardware.config.memory_bytes // _PAGE)

    @cached_property
    def kallsyms(self) -> bytes | None:
        """Of a Linux kernel that has mapped itself: its symbols, as lines of /proc/kallsyms."""
        if not self.is_linux:
            return None
        return symbols_in_memory(self.ram[self.start - RAM_BASE : max(self.end, self.start + _PAGE) - RAM_BASE])
