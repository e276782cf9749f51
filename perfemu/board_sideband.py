"""BoardSideband: the records that make a board's samples readable: its address spaces, and where its image has code."""

from __future__ import annotations

import os

from emulator.board.image import Image
from emulator.board.virt_tree import RAM_BASE
from emulator.cpu import Cpu, Level
from emulator.machine import Hardware
from perfcore.abi.constants import Misc
from perfcore.abi.records import Comm, Mmap, Record
from perfcore.events.event import PerfEvent
from perfemu.kernel_symbols import symbols_in_memory, symbols_of_elf
from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.kallsyms import KALLSYMS, TEXT_SYMBOLS, parse_kallsyms

NO_PID = 0xFFFFFFFF  # of the kernel's text
_PAGE = 4096


class BoardSideband:
    """Written as samples need them, to the first event of their CPU. `path`: of the image."""

    def __init__(self, path: str) -> None:
        self.kallsyms: bytes | None = None
        self._path = os.path.abspath(path)
        self._events: dict[int, PerfEvent] = {}  # by CPU: the one that hears of mappings
        self._image: Image | None = None
        self._hardware: Hardware | None = None
        self._code: list[tuple[int, int, int]] = []  # of an ELF image: address, size in bytes, offset in its file
        self._kernel_is_known = False

    def add(self, event: PerfEvent) -> None:
        if event.attr.mmap:
            self._events.setdefault(event.cpu, event)

    def booted(self, image: Image, hardware: Hardware) -> None:
        """Before it begins."""
        self._image, self._hardware = image, hardware
        if not self._events:
            return
        try:
            with ElfFile(self._path) as elf:
                self._code = [(s.address, s.memory_size, s.offset) for s in elf.segments]
            if self.kallsyms is None:
                self.kallsyms = symbols_of_elf(self._path)
        except (ElfProblem, OSError):
            pass  # a Linux Image, or flat code

    def seen(self, cpu: Cpu, new_tables: int | None) -> None:
        """A sample of `cpu` is about to be written."""
        event = self._events.get(cpu.number)
        if event is None:
            return
        if new_tables is not None:
            pid = event.kernel.thread(cpu)[0]
            self._write(event, Comm(pid, pid, f"ttbr0:{new_tables:x}"), 0, cpu)
            for address, size, offset in self._code:
                self._write(event, Mmap(pid, pid, address, size, offset, self._path), Misc.USER, cpu)
        if not self._kernel_is_known and cpu.level == Level.KERNEL:
            self._tell_of_kernel(event, cpu)

    def _tell_of_kernel(self, event: PerfEvent, cpu: Cpu) -> None:
        assert self._image is not None, "it executes"
        assert self._hardware is not None, "it executes"
        if self._image.is_linux and cpu.core.pc < 1 << 63:
            return  # it has yet to map itself
        self._kernel_is_known = True
        if self.kallsyms is None and self._image.is_linux:
            self.kallsyms = symbols_in_memory(_image_memory(self._hardware, self._image))
        if self.kallsyms is None:
            return
        addresses = {symbol.name: symbol.address for symbol in parse_kallsyms(self.kallsyms)}
        name = next((name for name in TEXT_SYMBOLS if name in addresses), "")
        start = addresses.get(name, 0)
        size = (1 << 64) - 1 - start
        self._write(event, Mmap(NO_PID, 0, start, size, start, f"{KALLSYMS}{name}"), Misc.KERNEL, cpu)

    def _write(self, event: PerfEvent, record: Record, misc: int, cpu: Cpu) -> None:
        event.write_record(event.output.record(record, misc, cpu))


def _image_memory(hardware: Hardware, image: Image) -> memoryview:
    """Where it was loaded, as it is now."""
    pages = min(image.end - RAM_BASE, hardware.config.memory_bytes) // _PAGE
    first = (image.pieces[0][0] - RAM_BASE) // _PAGE
    return hardware.memory.view(first, max(pages - first, 1))
