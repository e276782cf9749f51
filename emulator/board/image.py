"""Image: what is booted: a Linux Image, an ELF file, or flat code; gzip or not; and where each goes in RAM."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass
from io import BytesIO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

GZIP, ELF = b"\x1f\x8b", b"\x7fELF"
LINUX_MAGIC, LINUX_MAGIC_AT = b"ARM\x64", 56  # Documentation/arch/arm64/booting.rst
LINUX_HEADER = struct.Struct("<2IQQQ")
FLAT_OFFSET = 0x8_0000  # from the start of RAM, by convention of boards like this
EM_AARCH64 = 183
MOST_BYTES = 1 << 30  # of an image


class NotBootable(Exception):
    """Says what the file is, and what it would have to be."""


@dataclass(frozen=True, slots=True)
class Image:
    """Pieces of memory, by physical address, and where execution begins."""

    entry: int
    pieces: tuple[tuple[int, bytes], ...]
    end: int  # of what it needs, with memory that it wants zeroed
    is_linux: bool = False
    is_elf: bool = False

    @property
    def lowest(self) -> int:
        return min(address for address, _ in self.pieces)


def read_image(data: bytes, ram_base: int) -> Image:
    """Raises NotBootable."""
    if data.startswith(GZIP):
        data = unzipped(data)
    if data[LINUX_MAGIC_AT:].startswith(LINUX_MAGIC):
        _, _, offset, size, _ = LINUX_HEADER.unpack_from(data)
        start = ram_base + offset
        return Image(start, ((start, data),), start + max(size, len(data)), is_linux=True)
    if data.startswith(ELF):
        return _elf(data)
    if len(data) < 4:
        raise NotBootable(f"a file of {len(data)} bytes: a Linux Image, an ELF file or flat code is bootable")
    start = ram_base + FLAT_OFFSET
    return Image(start, ((start, data),), start + len(data))


def unzipped(data: bytes) -> bytes:
    try:
        unzipped = gzip.GzipFile(fileobj=BytesIO(data)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise NotBootable(f"a gzip file that cannot be read: {error}") from None
    if len(unzipped) > MOST_BYTES:
        raise NotBootable(f"a gzip file of more than {MOST_BYTES >> 20} MiB")
    return unzipped


def _elf(data: bytes) -> Image:
    try:
        elf = ELFFile(BytesIO(data))
        machine = elf.header["e_machine"]
        if machine != "EM_AARCH64" or elf.elfclass != 64:
            raise NotBootable(f"an ELF file for {machine}; this board's CPUs are AArch64")
        segments = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
        pieces = tuple((segment["p_paddr"], segment.data()) for segment in segments if segment["p_filesz"])
        wanted = [segment["p_filesz"] for segment in segments if segment["p_filesz"]]
        for size, (_, piece) in zip(wanted, pieces, strict=True):
            if len(piece) < size:
                raise NotBootable(f"an ELF file that is cut off: it has {len(piece)} bytes of a segment of {size}")
        end = max((segment["p_paddr"] + segment["p_memsz"] for segment in segments), default=0)
        # An entry is a virtual address: where its segment lies physically is where the MMU, still off, finds it.
        entry = elf.header["e_entry"]
        for segment in segments:
            if segment["p_vaddr"] <= entry < segment["p_vaddr"] + segment["p_memsz"]:
                entry += segment["p_paddr"] - segment["p_vaddr"]
                break
    except (ELFError, struct.error, ValueError, KeyError) as error:
        raise NotBootable(f"a broken ELF file: {error}") from None
    if not pieces:
        raise NotBootable("an ELF file without a segment to load")
    return Image(entry, pieces, end, is_elf=True)
