"""What a pc boots: Linux's bzImage, Multiboot, PVH, or an ELF file of 64 bits; and how each wants to be started.

In this order: a bzImage has "HdrS" in its header; Multiboot's header is in the first 8 KiB; PVH is an ELF note; an ELF
file for x86-64 that has neither begins at its entry in 64-bit mode. Nothing else is bootable.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from io import BytesIO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from emulator.board.image import ELF, GZIP, Image, NotBootable, unzipped
from emulator.board.pc.memory_map import HIGH_MEMORY

BOOTABLE = "a Linux bzImage, a Multiboot or PVH image, or an ELF file for x86-64 is bootable"


class Start(Enum):
    """As what the first CPU is started."""

    MULTIBOOT = "Multiboot"  # 32-bit, paging off: EAX is a magic number, EBX Multiboot's information
    PVH = "PVH"  # 32-bit, paging off: EBX is hvm_start_info
    LINUX_32 = "Linux's 32-bit entry"  # ESI is boot_params
    LINUX_64 = "Linux's 64-bit entry"  # 64-bit, identity-mapped: RSI is boot_params
    LONG_MODE = "64-bit entry"  # 64-bit, identity-mapped: RDI is hvm_start_info

    @property
    def is_64_bits(self) -> bool:
        return self in (Start.LINUX_64, Start.LONG_MODE)


@dataclass(frozen=True, slots=True)
class PcImage(Image):
    start: Start = Start.LONG_MODE
    setup_header: bytes = b""  # Linux's, at SETUP_HEADER of boot_params


# Multiboot Specification 0.6.96, "Header layout"
MULTIBOOT_MAGIC, MULTIBOOT_WITHIN = 0x1BAD_B002, 8192
_HEADER = struct.Struct("<3I")
_ADDRESSES = struct.Struct("<5I")
_UNDERSTOOD = 0b111  # of the flags that a loader must understand: page-aligned modules, memory, a video mode
_HAS_ADDRESSES = 1 << 16

# Documentation/arch/x86/boot.rst
SETUP_HEADER, SETUP_HEADER_END = 0x1F1, 0x290
_SETUP_SECTS, _MAGIC, _VERSION, _LOAD_FLAGS, _CODE32 = 0x1F1, 0x202, 0x206, 0x211, 0x214
_XLOAD_FLAGS, _PREFERRED, _INIT_SIZE, _RELOCATABLE = 0x236, 0x258, 0x260, 0x234
_LOADED_HIGH, _KERNEL_64 = 1 << 0, 1 << 0
_SECTOR = 512
_FIRST_WITH_64_BITS = 0x20C
_ENTRY_64 = 0x200  # from the start of the protected-mode code

_XEN_GUEST_OS, _XEN_PHYS32_ENTRY = 6, 18  # Xen's ELF notes: xen/include/public/elfnote.h; the second is PVH's
_LINUX = b"linux"


def read_pc_image(data: bytes) -> PcImage:
    """Raises NotBootable."""
    if data.startswith(GZIP):
        data = unzipped(data)
    if data[_MAGIC : _MAGIC + 4] == b"HdrS":
        return _linux(data)
    if (header := _multiboot_header(data)) is not None:
        return _multiboot(data, header)
    if data.startswith(ELF):
        return _elf(data, None)
    raise NotBootable(f"a file of {len(data)} bytes: {BOOTABLE}")


def _linux(data: bytes) -> PcImage:
    def word(at: int, layout: str) -> int:
        try:
            return int(struct.unpack_from(layout, data, at)[0])
        except struct.error:
            raise NotBootable(f"a Linux bzImage of {len(data)} bytes: less than its header") from None

    version = word(_VERSION, "<H")
    if not word(_LOAD_FLAGS, "<B") & _LOADED_HIGH or version < 0x200:
        raise NotBootable(f"a Linux zImage, by boot protocol {version >> 8}.{version & 0xFF:02}: a bzImage is bootable")
    setup_bytes = ((word(_SETUP_SECTS, "<B") or 4) + 1) * _SECTOR
    code = data[setup_bytes:]
    header_end = min(_MAGIC + data[_MAGIC - 1], SETUP_HEADER_END)  # the jump there leads behind the header
    header = data[SETUP_HEADER:header_end]
    address, needed, start = word(_CODE32, "<I"), len(code), Start.LINUX_32
    if version >= _FIRST_WITH_64_BITS:
        address = word(_PREFERRED, "<Q") or address
        needed = max(needed, word(_INIT_SIZE, "<I"))
        if word(_XLOAD_FLAGS, "<H") & _KERNEL_64:
            start = Start.LINUX_64
    entry = address + (_ENTRY_64 if start is Start.LINUX_64 else 0)
    return PcImage(entry, ((address, code),), address + needed, is_linux=True, start=start, setup_header=header)


def _multiboot_header(data: bytes) -> int | None:
    """Where it is."""
    for at in range(0, min(MULTIBOOT_WITHIN, len(data)) - _HEADER.size + 1, 4):
        magic, flags, check = _HEADER.unpack_from(data, at)
        if magic == MULTIBOOT_MAGIC and (magic + flags + check) & 0xFFFF_FFFF == 0:
            return at
    return None


def _multiboot(data: bytes, at: int) -> PcImage:
    flags = _HEADER.unpack_from(data, at)[1]
    if unknown := flags & 0xFFFF & ~_UNDERSTOOD:
        raise NotBootable(f"a Multiboot image that asks for what is not here: flags {unknown:#x}")
    if not flags & _HAS_ADDRESSES:
        if not data.startswith(ELF):
            raise NotBootable("a Multiboot image without addresses in its header: it must be an ELF file then")
        return _elf(data, Start.MULTIBOOT)
    try:
        header, load, load_end, bss_end, entry = _ADDRESSES.unpack_from(data, at + _HEADER.size)
    except struct.error:
        raise NotBootable("a Multiboot image that ends within its header") from None
    first = at - (header - load)
    size = load_end - load if load_end else len(data) - first
    if load > header or first < 0 or size < 0:
        raise NotBootable(f"a Multiboot image with its header at {header:#x}, before its start at {load:#x}")
    piece = data[first : first + size]
    return PcImage(entry, ((load, piece),), max(load + len(piece), bss_end), start=Start.MULTIBOOT)


def _elf(data: bytes, start: Start | None) -> PcImage:
    """`start`: None if the file says."""
    try:
        elf = ELFFile(BytesIO(data))
        machine = elf.header["e_machine"]
        if machine not in ("EM_X86_64", "EM_386"):
            raise NotBootable(f"an ELF file for {machine}; this board's CPUs are x86-64")
        segments = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
        pieces = tuple((segment["p_paddr"], segment.data()) for segment in segments if segment["p_filesz"])
        end = max((segment["p_paddr"] + segment["p_memsz"] for segment in segments), default=0)
        entry = int(elf.header["e_entry"])
        for segment in segments:  # an entry is a virtual address; paging is off, or is the identity
            if segment["p_vaddr"] <= entry < segment["p_vaddr"] + segment["p_memsz"]:
                entry += segment["p_paddr"] - segment["p_vaddr"]
                break
        notes = _xen_notes(elf)
        if start is None and _XEN_PHYS32_ENTRY in notes:
            start, entry = Start.PVH, int.from_bytes(notes[_XEN_PHYS32_ENTRY][:8], "little")
        is_linux = notes.get(_XEN_GUEST_OS, b"").rstrip(b"\0") == _LINUX
    except (ELFError, struct.error, ValueError, KeyError) as error:
        raise NotBootable(f"a broken ELF file: {error}") from None
    if not pieces:
        raise NotBootable("an ELF file without a segment to load")
    if start is None and machine != "EM_X86_64":
        raise NotBootable(f"an ELF file of 32 bits without a Multiboot header or PVH's note: {BOOTABLE}")
    return PcImage(entry, pieces, max(end, HIGH_MEMORY), is_linux=is_linux, start=start or Start.LONG_MODE)


def _xen_notes(elf: ELFFile) -> dict[object, bytes]:
    """By type; the numbers that GNU's have, too, are not among those asked for."""
    notes: dict[object, bytes] = {}
    for segment in elf.iter_segments("PT_NOTE"):
        assert isinstance(segment, NoteSegment), "they are PT_NOTE"
        for note in segment.iter_notes():
            if note["n_name"] == "Xen":
                description = note["n_desc"]
                raw = description.encode("latin-1") if isinstance(description, str) else bytes(description)
                notes.setdefault(note["n_type"], raw)
    return notes
