"""kernel_symbols: those of what a board has booted: from a file of the user's, the image, or a kernel's memory.

A Linux kernel with CONFIG_KALLSYMS carries its symbols, compressed, among its read-only data: scripts/kallsyms.c writes
them, kernel/kallsyms.c reads them. Their addresses there are those at which the kernel runs.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from perfemu.errors import PerfemuError
from perfemu.symbols.elf import ElfFile, ElfProblem
from perfemu.symbols.kallsyms import MOST_BYTES, TEXT_SYMBOLS, KernelSymbol, kallsyms_text, parse_kallsyms
from perfemu.symbols.table import STB_GLOBAL

_ORC = re.compile(rb"[\t ](?:__start_orc_unwind|orc_find|unwind_module_init)$", re.MULTILINE)
_ELF = b"\x7fELF"
_TOKENS = 256
_DIGITS = b"".join(b"%d\0" % digit for digit in range(10))  # tokens that stand for themselves in each kernel
_ALIGNMENT = 8
_NAMES_PER_MARKER = 256
_FEWEST, _MOST = 256, 1 << 24  # symbols of a kernel
_FEWEST_BYTES, _MOST_BYTES_EACH = 3, 128  # of a name and what belongs to it, on average
_MOST_TOKEN_BYTES = 1024


def symbols_of_file(path: str) -> bytes:
    """Of System.map, of a copy of /proc/kallsyms, or of an ELF file, as kallsyms' lines. Raises PerfemuError."""
    try:
        with open(path, "rb") as file:
            contents = file.read(MOST_BYTES + 1)
        if contents.startswith(_ELF):
            return symbols_of_elf(path)
    except OSError as error:
        raise PerfemuError(f"--kallsyms {path}: {error.strerror}") from None
    except ElfProblem as problem:
        raise PerfemuError(f"--kallsyms {path}: {problem}") from None
    if len(contents) > MOST_BYTES:
        raise PerfemuError(f"--kallsyms {path}: more than {MOST_BYTES >> 20} MiB")
    symbols = [symbol for symbol in parse_kallsyms(contents) if symbol.address]
    if not symbols:
        raise PerfemuError(f"--kallsyms {path}: no line of it is a symbol with an address: kallsyms, System.map or ELF")
    return kallsyms_text(symbols)


def symbols_of_elf(path: str) -> bytes:
    """Of its functions, by the addresses that it is linked for. Raises ElfProblem and OSError."""
    with ElfFile(path) as elf:
        found = ((elf.address_of(symbol.start), symbol) for symbol in elf.functions())
        symbols = {
            KernelSymbol(address, "T" if symbol.binding == STB_GLOBAL else "t", symbol.name)
            for address, symbol in found
            if address is not None
        }
        start = min((segment.address for segment in elf.segments), default=0)
    if not any(symbol.name in TEXT_SYMBOLS for symbol in symbols):
        symbols.add(KernelSymbol(start, "T", TEXT_SYMBOLS[0]))
    return kallsyms_text(symbols)


def has_orc(kallsyms: bytes) -> bool:
    """Whether a kernel with these symbols finds its callers by ORC's tables (CONFIG_UNWINDER_ORC), and is compiled
    without frame pointers: arch/x86/kernel/unwind_orc.c and vmlinux.lds.h have these, or only some, by its options."""
    return _ORC.search(kallsyms) is not None


def symbols_in_memory(memory: bytes | memoryview) -> bytes | None:
    """Of the kernel whose image is in `memory`, as kallsyms' lines; None if it has none that we understand."""
    data = bytes(memory)
    position = data.find(_DIGITS)
    while position >= 0:
        try:
            found = _Tables(data, position).symbols()
        except (_NoKallsyms, struct.error, IndexError, ValueError):
            position = data.find(_DIGITS, position + 1)
            continue
        return kallsyms_text(found)
    return None


class _NoKallsyms(Exception):
    """It only looked so."""


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


class _Tables:
    """kallsyms_token_table and its neighbours, in a kernel's image."""

    def __init__(self, data: bytes, digits_at: int) -> None:
        self._data = data
        end = digits_at
        for _ in range(_TOKENS - ord("0")):
            end = data.find(b"\0", end, end + _MOST_TOKEN_BYTES) + 1
            if not end:
                raise _NoKallsyms
        self._index_at = _aligned(end)
        index = struct.unpack_from(f"<{_TOKENS}H", data, self._index_at)
        start = digits_at - index[ord("0")]
        if index[0] or start < 0 or any(low >= high for low, high in pairwise(index)):
            raise _NoKallsyms
        self._tokens = [data[start + at : data.index(b"\0", start + at)] for at in index]
        self._tokens_at = start

    def symbols(self) -> Iterable[KernelSymbol]:
        """Before the tokens lie their number, the names, markers and, in some versions, 3 bytes each to sort them."""
        import numpy as np  # takes longer than a run that wants no symbols

        words = np.frombuffer(self._data, "<u8", self._tokens_at // 8)
        sizes = self._tokens_at - 8 * np.arange(1, len(words) + 1)  # of names and all else, if their number is there
        counts = np.where(words < _MOST, words, 0).astype("<i8")
        plausible = (counts >= _FEWEST) & (counts * _FEWEST_BYTES < sizes) & (counts * _MOST_BYTES_EACH > sizes)
        for index in np.flatnonzero(plausible).tolist():
            names = self._names(8 * (index + 1), int(words[index]))
            if names is not None:
                return self._with_addresses(names, 8 * index)
        raise _NoKallsyms

    def _names(self, start: int, count: int) -> list[bytes] | None:
        """Each with its type in front; None if names do not lie there."""
        data, tokens = self._data, self._tokens
        names: list[bytes] = []
        markers: list[int] = []
        at, size = start, 0
        for number in range(count):
            if number % _NAMES_PER_MARKER == 0:
                markers.append(at - start)
            length = data[at]
            at += 1
            if length & 0x80:
                length = length & 0x7F | data[at] << 7
                at += 1
            if not length or at + length > self._tokens_at:
                return None
            name = b"".join([tokens[token] for token in data[at : at + length]])
            size += len(name)
            if size > MOST_BYTES:
                return None
            names.append(name)
            at += length
        at = _aligned(at)
        if list(struct.unpack_from(f"<{len(markers)}I", data, at)) != markers:
            return None
        end = _aligned(at + 4 * len(markers))
        return names if self._tokens_at in (end, _aligned(end + 3 * count)) else None

    def _with_addresses(self, names: list[bytes], count_at: int) -> Iterator[KernelSymbol]:
        """kallsyms_offsets lies before the names, and behind all else since Linux 6.4; its base is behind it."""
        import numpy as np

        count = len(names)
        bytes_of_offsets = _aligned(4 * count)
        behind = _aligned(self._index_at + 2 * _TOKENS)
        for start in (behind, count_at - _ALIGNMENT - bytes_of_offsets):
            if start < 0 or start + bytes_of_offsets + 8 > len(self._data):
                continue
            (base,) = struct.unpack_from("<Q", self._data, start + bytes_of_offsets)
            addresses = _addresses(np.frombuffer(self._data, "<i4", count, start).tolist(), base)
            if base >> 63 and addresses is not None:
                texts = (name.decode("utf-8", "replace") for name in names)
                return (
                    KernelSymbol(address, text[:1], text[1:]) for address, text in zip(addresses, texts, strict=True)
                )
        raise _NoKallsyms


def _addresses(offsets: Sequence[int], base: int) -> list[int] | None:
    """Of symbols in their order; None if these are no offsets.

    They count from `base`; or, where CPUs have symbols of their own (CONFIG_KALLSYMS_ABSOLUTE_PERCPU), those that are
    not negative are addresses, of those symbols, and the others' complements count from `base`.
    """
    unsigned = [offset % (1 << 32) for offset in offsets]
    if all(low <= high for low, high in pairwise(unsigned)):
        return [base + offset for offset in unsigned]
    keys = [offset if offset >= 0 else (1 << 31) + ~offset for offset in offsets]
    if any(low > high for low, high in pairwise(keys)):
        return None
    return [offset if offset >= 0 else (base - 1 - offset) % (1 << 64) for offset in offsets]
