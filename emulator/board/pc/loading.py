"""What an image finds in memory when it starts: tables of firmware, its arguments, and what a 64-bit entry needs."""

from __future__ import annotations

import struct
from collections.abc import Callable

from emulator.board.board import Boot
from emulator.board.image import NotBootable
from emulator.board.pc.image import SETUP_HEADER, PcImage, Start
from emulator.board.pc.memory_map import (
    ACPI_TABLES,
    BASE_MEMORY_END,
    BOOT_INFORMATION,
    COMMAND_LINE,
    COMMAND_LINE_BYTES,
    DESCRIPTORS,
    HIGH_MEMORY,
    KIB,
    MEMORY_MAP,
    PAGE_TABLES,
    memory_map,
)

Place = Callable[[str, int, bytes], int]

PAGE_BYTES, TWO_MIB, GIB = 4 << 10, 2 << 20, 1 << 30
LOADER_NAME = b"perfemu\0"
FLAT_CODE, FLAT_DATA = 0x10, 0x18  # selectors: Linux's __BOOT_CS and __BOOT_DS
_GDT_CODE_32, _GDT_CODE_64, _GDT_DATA = 0x00CF_9B00_0000_FFFF, 0x00AF_9B00_0000_FFFF, 0x00CF_9300_0000_FFFF
GDT_BYTES = 4 * 8
_PRESENT_WRITABLE, _LARGE = 0b11, 1 << 7
IDENTITY_GIBS = 4  # that are mapped for a 64-bit entry

MULTIBOOT_LOADED = 0x2BAD_B002  # EAX
_MULTIBOOT_MEMORY, _MULTIBOOT_COMMAND_LINE, _MULTIBOOT_MODULES = 1 << 0, 1 << 2, 1 << 3
_MULTIBOOT_MAP, _MULTIBOOT_LOADER = 1 << 6, 1 << 9
PVH_MAGIC = 0x336E_C578
# Of boot_params and its setup header
_ACPI_RSDP, _E820_ENTRIES, _E820_TABLE = 0x070, 0x1E8, 0x2D0
_LOADER_TYPE, _RAMDISK, _COMMAND_LINE_POINTER, _MOST_COMMAND_LINE = 0x210, 0x218, 0x228, 0x238
_UNDEFINED_LOADER = 0xFF
_OLD_MOST_COMMAND_LINE = 255  # of boot protocols before 2.06
BOOT_PARAMS_BYTES = 4096


def load(image: PcImage, boot: Boot, ram_bytes: int, place: Place) -> int:
    """Everything but tables of firmware. The address of what the image is told."""
    for address, piece in image.pieces:
        place("the image", address, piece)
    if image.end > ram_bytes:
        raise NotBootable(f"the image wants memory up to {image.end:#x}: RAM ends at {ram_bytes:#x}")
    initrd = -(-image.end // TWO_MIB) * TWO_MIB
    if boot.initrd:
        place("the initrd", initrd, boot.initrd)
    place("the GDT", DESCRIPTORS, struct.pack("<4Q", 0, 0, _code(image.start), _GDT_DATA))
    if image.start.is_64_bits:
        place("page tables", PAGE_TABLES, identity_tables())
    tell = {
        Start.MULTIBOOT: _multiboot_information,
        Start.PVH: _start_info,
        Start.LONG_MODE: _start_info,
        Start.LINUX_32: _boot_params,
        Start.LINUX_64: _boot_params,
    }[image.start]
    tell(image, boot, (initrd, len(boot.initrd)), ram_bytes, place)
    return BOOT_INFORMATION


def _code(start: Start) -> int:
    return _GDT_CODE_64 if start.is_64_bits else _GDT_CODE_32


def identity_tables() -> bytes:
    """PML4, PDPT and page directories: large pages that lead to where they are."""
    first_directory = PAGE_TABLES + 2 * PAGE_BYTES
    top = struct.pack("<Q", PAGE_TABLES + PAGE_BYTES | _PRESENT_WRITABLE).ljust(PAGE_BYTES, b"\0")
    directories = [first_directory + number * PAGE_BYTES | _PRESENT_WRITABLE for number in range(IDENTITY_GIBS)]
    pointers = struct.pack(f"<{IDENTITY_GIBS}Q", *directories).ljust(PAGE_BYTES, b"\0")
    pages = (page * TWO_MIB | _PRESENT_WRITABLE | _LARGE for page in range(IDENTITY_GIBS * GIB // TWO_MIB))
    return top + pointers + struct.pack(f"<{IDENTITY_GIBS * GIB // TWO_MIB}Q", *pages)


def _command_line(text: str, most: int) -> bytes:
    line = text.encode()
    if len(line) > most:
        raise NotBootable(f"a command line of {len(line)} bytes: the image takes {most}")
    return line + b"\0"


def _multiboot_information(image: PcImage, boot: Boot, initrd: tuple[int, int], ram_bytes: int, place: Place) -> None:
    """Multiboot Specification, "Boot information format". A command line begins with the image's name."""
    line = f"{boot.name} {boot.command_line}" if boot.command_line else boot.name
    place("the command line", COMMAND_LINE, _command_line(line, COMMAND_LINE_BYTES - 1))
    entries = b"".join(struct.pack("<IQQI", 20, each.start, each.size, each.type) for each in memory_map(ram_bytes))
    place("the memory map", MEMORY_MAP, entries)
    start, size = initrd
    module_at = BOOT_INFORMATION + 0x100
    name_at = module_at + 0x20
    modules = place("the module", module_at, struct.pack("<4I", start, start + size, COMMAND_LINE, 0)) if size else 0
    place("the loader's name", name_at, LOADER_NAME)
    flags = _MULTIBOOT_MEMORY | _MULTIBOOT_COMMAND_LINE | _MULTIBOOT_MODULES | _MULTIBOOT_MAP | _MULTIBOOT_LOADER
    lower, upper = BASE_MEMORY_END // KIB, (ram_bytes - HIGH_MEMORY) // KIB
    information = struct.pack(
        "<7I16x6I", flags, lower, upper, 0, COMMAND_LINE, 1 if modules else 0, module_at if modules else 0,
        len(entries), MEMORY_MAP, 0, 0, 0, name_at,
    )  # fmt: skip
    place("Multiboot's information", BOOT_INFORMATION, information)


def _start_info(image: PcImage, boot: Boot, initrd: tuple[int, int], ram_bytes: int, place: Place) -> None:
    """hvm_start_info: xen/include/public/arch-x86/hvm/start_info.h, version 1."""
    place("the command line", COMMAND_LINE, _command_line(boot.command_line, COMMAND_LINE_BYTES - 1))
    entries = memory_map(ram_bytes)
    place(
        "the memory map",
        MEMORY_MAP,
        b"".join(struct.pack("<QQII", each.start, each.size, each.type, 0) for each in entries),
    )
    start, size = initrd
    module_at = BOOT_INFORMATION + 0x100
    place("the module", module_at, struct.pack("<4Q", start, size, 0, 0))
    information = struct.pack(
        "<4I4Q2I", PVH_MAGIC, 1, 0, 1 if size else 0, module_at if size else 0, COMMAND_LINE, ACPI_TABLES,
        MEMORY_MAP, len(entries), 0,
    )  # fmt: skip
    place("the start info", BOOT_INFORMATION, information)


def _boot_params(image: PcImage, boot: Boot, initrd: tuple[int, int], ram_bytes: int, place: Place) -> None:
    """Documentation/arch/x86/boot.rst, and "zero page"."""
    parameters = bytearray(BOOT_PARAMS_BYTES)
    parameters[SETUP_HEADER : SETUP_HEADER + len(image.setup_header)] = image.setup_header
    most = int.from_bytes(parameters[_MOST_COMMAND_LINE : _MOST_COMMAND_LINE + 4], "little") or _OLD_MOST_COMMAND_LINE
    place("the command line", COMMAND_LINE, _command_line(boot.command_line, min(most, COMMAND_LINE_BYTES - 1)))
    parameters[_LOADER_TYPE] = _UNDEFINED_LOADER
    struct.pack_into("<I", parameters, _COMMAND_LINE_POINTER, COMMAND_LINE)
    start, size = initrd
    if size:
        struct.pack_into("<2I", parameters, _RAMDISK, start, size)
    struct.pack_into("<Q", parameters, _ACPI_RSDP, ACPI_TABLES)
    entries = memory_map(ram_bytes)
    parameters[_E820_ENTRIES] = len(entries)
    for number, each in enumerate(entries):
        struct.pack_into("<QQI", parameters, _E820_TABLE + 20 * number, each.start, each.size, each.type)
    place("boot_params", BOOT_INFORMATION, bytes(parameters))
