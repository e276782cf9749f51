"""BootedImage: what a board has booted, as it lies in memory now."""

from __future__ import annotations

from functools import cached_property

from emulator.board.image import Image
from emulator.machine import Hardware
from perfemu.kernel_symbols import symbols_in_memory

_PAGE = 4096


class BootedImage:
    """Make it before it begins."""

    def __init__(self, image: Image, hardware: Hardware, ram_base: int) -> None:
        """`ram_base`: the physical address at which RAM begins."""
        self.is_linux = image.is_linux
        self.ram_base = ram_base
        self._hardware = hardware
        self._elsewhere: bytes | None = None  # symbols of a kernel that has moved itself
        self.start = image.pieces[0][0]  # physical addresses
        self.end = min(image.end, ram_base + hardware.config.memory_bytes)

    @property
    def ram(self) -> memoryview:
        """All of it."""
        return self._hardware.memory.view(0, self._hardware.config.memory_bytes // _PAGE)

    @cached_property
    def kallsyms(self) -> bytes | None:
        """Of a Linux kernel that has mapped itself: its symbols, as lines of /proc/kallsyms."""
        return self._symbols_between(self.start, max(self.end, self.start + _PAGE))

    def kallsyms_around(self, code: int) -> bytes | None:
        """The same of one that may have moved itself: `code` is the physical address of some of its code."""
        size, page = self.end - self.start, code & -_PAGE
        if self._elsewhere is None:
            self._elsewhere = self.kallsyms or self._symbols_between(page - size, page + size)
        return self._elsewhere

    def _symbols_between(self, start: int, end: int) -> bytes | None:
        if not self.is_linux:
            return None
        return symbols_in_memory(self.ram[max(start - self.ram_base, 0) : end - self.ram_base])
