"""Modules: the code that a kernel has loaded beside itself, and its symbols."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from perfemu.guest_linux.btf import BtfProblem
from perfemu.guest_linux.kernel import KERNEL_HALF, GuestKernel
from perfemu.guest_linux.memory import Unreadable
from perfemu.symbols.kallsyms import KernelSymbol

_LIST, _TEXT = "modules", "MOD_TEXT"
_MOST_MODULES, _MOST_SYMBOLS, _MOST_NAME_BYTES = 4096, 1 << 16, 512
_MOST_PLACES = 4096  # at which the list may begin
_MOST_SEARCHES = 32
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, shndx, value, size
_CODE = b"tTwW"


@dataclass(frozen=True, slots=True)
class GuestModule:
    """`start`, `end`: of its code."""

    name: str
    start: int
    end: int
    symbols_at: int  # of the table that it has now: while it begins it has another

    @property
    def label(self) -> str:
        return f"[{self.name}]"


class Modules:
    """By the kernel's list of them."""

    def __init__(self, kernel: GuestKernel) -> None:
        self._kernel = kernel
        self._head = kernel.symbols.get(_LIST)
        self._searches = 0

    def at(self, address: int) -> GuestModule | None:
        """Whose code that is. Raises BtfProblem."""
        return next((module for module in self._all() if module.start <= address < module.end), None)

    def symbols(self, module: GuestModule) -> list[KernelSymbol]:
        """Of its code, named as in /proc/kallsyms. Raises BtfProblem."""
        try:
            return list(self._symbols(module))
        except Unreadable:
            return []

    def _all(self) -> Iterator[GuestModule]:
        if self._head is None and self._searches < _MOST_SEARCHES:
            self._searches += 1
            self._head = next(self._heads(), None)
        if self._head is None:
            return
        kernel = self._kernel
        in_module = kernel.member("module", "list").offset
        try:
            place = kernel.word(self._head)
            for _ in range(_MOST_MODULES):
                if place == self._head:
                    return
                yield self._module(place - in_module)
                place = kernel.word(place)
        except Unreadable:
            return

    def _module(self, address: int) -> GuestModule:
        kernel = self._kernel
        start, size = self._code(address)
        table = kernel.value(address, "module", "kallsyms")
        return GuestModule(kernel.text(address, "module", "name"), start, start + size, table)

    def _code(self, address: int) -> tuple[int, int]:
        """Where it lies and how long it is, in bytes. Since Linux 6.4 a module has a table of its parts."""
        kernel = self._kernel
        if not kernel.btf.has_member("module", "mem"):
            core = "core_layout"
            return kernel.value(address, "module", f"{core}.base"), kernel.value(address, "module", f"{core}.text_size")
        part = address + kernel.member("module", "mem").offset
        part += kernel.btf.enumerator("mod_mem_type", _TEXT) * kernel.btf.size("module_memory")
        return kernel.value(part, "module_memory", "base"), kernel.value(part, "module_memory", "size")

    def _heads(self) -> Iterator[int]:
        """Where in the image the list may begin: the first module's entry leads back there."""
        kernel, image = self._kernel, self._kernel.image
        words = np.frombuffer(kernel.image_bytes(), "<u8")
        # what the image keeps beside itself, its modules among that, is in the upper half of its addresses
        upper = (words >= image.start & -1 << 47) & ((words < image.start) | (words >= image.stop))
        for index in np.flatnonzero(upper[:-1] & upper[1:])[:_MOST_PLACES].tolist():
            head, first = image.start + 8 * index, int(words[index])
            try:
                if kernel.word(first + 8) != head:
                    continue
                module = self._module(first - kernel.member("module", "list").offset)
                if module.name.isprintable() and module.name and module.start >= KERNEL_HALF:
                    yield head
            except (Unreadable, BtfProblem):
                continue

    def _symbols(self, module: GuestModule) -> Iterator[KernelSymbol]:
        kernel, tables = self._kernel, self._kernel.tables
        table, names, kinds, count = (
            kernel.value(module.symbols_at, "mod_kallsyms", name)
            for name in ("symtab", "strtab", "typetab", "num_symtab")
        )
        count = min(count, _MOST_SYMBOLS)
        letters = tables.read(kinds, count)
        data = tables.read(table, count * _SYMBOL.size)
        for letter, (name_at, _, _, _, value, _) in zip(letters, _SYMBOL.iter_unpack(data), strict=True):
            if letter not in _CODE or not module.start <= value < module.end:
                continue
            name = tables.string(names + name_at, _MOST_NAME_BYTES).decode("utf-8", "replace")
            if name.isprintable() and name and not name.startswith("$"):
                yield KernelSymbol(value, chr(letter), f"{name}\t{module.label}")
