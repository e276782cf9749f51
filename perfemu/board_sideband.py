"""BoardSideband: the records that make a board's samples readable: its address spaces, and where its image has code."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import chain

from emulator.cpu import Cpu, Level
from perfcore.abi.constants import Misc
from perfcore.abi.records import Comm, Mmap, Record
from perfcore.events.event import PerfEvent
from perfemu.board_kinds import BoardKind
from perfemu.booted_image import BootedImage
from perfemu.kernel_symbols import has_orc, symbols_of_elf
from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.kallsyms import KALLSYMS, TEXT_SYMBOLS, KernelSymbol, addresses_by_name, kallsyms_text

NO_PID = 0xFFFFFFFF  # of the kernel's text


class BoardSideband:
    """Written as samples need them, to the first event of their CPU. `path`: of the image."""

    def __init__(self, path: str, kind: BoardKind, tell: Callable[[str], None]) -> None:
        """`tell`: lines for the user."""
        self.kallsyms: bytes | None = None
        self.symbols_of_modules: dict[int, Sequence[KernelSymbol]] = {}  # by where the module's code starts
        self._path = os.path.abspath(path)
        self._kind = kind
        self._events: dict[int, PerfEvent] = {}  # by CPU: the one that hears of mappings
        self._booted: BootedImage | None = None
        self._code: list[tuple[int, int, int]] = []  # of an ELF image: address, size in bytes, offset in its file
        self._kernel_is_known = False
        self._keeps_frames: bool | None = None  # where that is known
        self._tell = tell

    def add(self, event: PerfEvent) -> None:
        if event.attr.mmap:
            self._events.setdefault(event.cpu, event)

    def booted(self, image: BootedImage) -> None:
        """Before it begins."""
        self._booted = image
        if not self._events:
            return
        try:
            with ElfFile(self._path) as elf:
                if not image.is_linux:  # whose programs execute other files
                    self._code = [(s.address, s.memory_size, s.offset) for s in elf.segments]
                is_stripped = not elf.functions()
            if self.kallsyms is None and not (is_stripped and image.is_linux):  # which has those in its memory
                self.kallsyms = symbols_of_elf(self._path)
        except (ElfProblem, OSError):
            pass  # a Linux Image, or flat code

    def all_kallsyms(self) -> bytes | None:
        """With those of modules."""
        if self.kallsyms is None or not self.symbols_of_modules:
            return self.kallsyms
        return self.kallsyms + kallsyms_text(chain.from_iterable(self.symbols_of_modules.values()))

    def event(self, cpu: Cpu) -> PerfEvent | None:
        """That is told of what `cpu` does, if one is."""
        return self._events.get(cpu.number)

    def seen_space(self, cpu: Cpu, new_tables: int | None) -> None:
        """A sample of `cpu` is about to be written, of a process that is nothing but its tables."""
        event = self.event(cpu)
        if event is None:
            return
        if new_tables is not None:
            pid = event.kernel.thread(cpu)[0]
            self.write(event, Comm(pid, pid, f"{self._kind.tables.name}:{new_tables:x}"), 0, cpu)
            for address, size, offset in self._code:
                self.write(event, Mmap(pid, pid, address, size, offset, self._path), Misc.USER, cpu)
        self.tell_of_kernel(event, cpu)

    def tell_of_kernel(self, event: PerfEvent, cpu: Cpu) -> None:
        """Once, when it executes."""
        if self._kernel_is_known or cpu.level != Level.KERNEL:
            return
        assert self._booted is not None, "it executes"
        if self._booted.is_linux and cpu.core.pc not in self._kind.kernel_code:
            return  # it has yet to map itself
        self._kernel_is_known = True
        if self.kallsyms is None:
            self.kallsyms = self._booted.kallsyms_around(self._physical(cpu, cpu.core.pc))
        if self.kallsyms is None:
            return
        addresses = addresses_by_name(self.kallsyms)
        name = next((name for name in TEXT_SYMBOLS if name in addresses), "")
        start = addresses.get(name, 0)
        size = min(self._kind.kernel_code.stop, (1 << 64) - 1) - start
        self.write(event, Mmap(NO_PID, 0, start, size, start, f"{KALLSYMS}{name}"), Misc.KERNEL, cpu)

    def frames_are_kept(self) -> bool:
        """Whether the guest's kernel keeps frame pointers, as far as its symbols say. One that has not mapped itself
        has symbols later."""
        if self._keeps_frames is not None:
            return self._keeps_frames
        assert self._booted is not None, "it executes"
        if self._kind.keeps_frame_pointers or (self.kallsyms is None and not self._booted.is_linux):
            self._keeps_frames = True
        elif self.kallsyms is not None:
            self._keeps_frames = not has_orc(self.kallsyms)
            if not self._keeps_frames:
                self._tell("-g: this kernel has ORC's tables, and no frame pointers: samples in it have no callers")
        elif self._kernel_is_known:
            self._keeps_frames = False
            self._tell("-g: whether this kernel keeps frame pointers is not known: samples in it have no callers")
        return bool(self._keeps_frames)

    def _physical(self, cpu: Cpu, address: int) -> int:
        assert cpu.guest_tables is not None, "a board's CPU has its guest's"
        return cpu.guest_tables.walk(address)[4]

    def write(self, event: PerfEvent, record: Record, misc: int, cpu: Cpu) -> None:
        event.write_record(event.output.record(record, misc, cpu))
