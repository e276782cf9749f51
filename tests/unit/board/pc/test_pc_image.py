"""What a pc boots, and what it finds in memory: by the boot protocols' own words."""

from __future__ import annotations

import struct

import pytest

from emulator.board.board import Boot
from emulator.board.image import NotBootable
from emulator.board.pc.image import PcImage, Start, read_pc_image
from emulator.board.pc.loading import load
from emulator.board.pc.memory_map import ACPI_TABLES, BASE_MEMORY_END, COMMAND_LINE, PAGE_TABLES

RAM_BYTES = 64 << 20
MAGIC = 0x1BADB002


def elf(
    bits: int = 32, machine: int = 3, notes: bytes = b"", text: bytes = b"\x90" * 64, address: int = 0x10_0000
) -> bytes:
    """One segment with all of the file, whose virtual addresses are 1 GiB above the physical; the code is at 0x200."""
    program_headers = 2 if notes else 1
    entry = 0x4000_0000 + address + 0x200
    notes_at = 0x200 + len(text)
    size = notes_at + len(notes)
    if bits == 32:
        header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, machine, 1, entry, 52, 0, 0, 52, 32,
                             program_headers, 40, 0, 0)  # fmt: skip
        segments = struct.pack("<8I", 1, 0, 0x4000_0000 + address, address, size, size + 0x1000, 7, 4096)
        segments += struct.pack("<8I", 4, notes_at, 0, 0, len(notes), len(notes), 4, 4) if notes else b""
    else:
        header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, machine, 1, entry, 64, 0, 0, 64, 56,
                             program_headers, 64, 0, 0)  # fmt: skip
        segments = struct.pack("<2I6Q", 1, 7, 0, 0x4000_0000 + address, address, size, size + 0x1000, 4096)
        segments += struct.pack("<2I6Q", 4, 4, notes_at, 0, 0, len(notes), len(notes), 4) if notes else b""
    return (header + segments).ljust(0x200, b"\0") + text + notes


def multiboot_header(flags: int, *addresses: int) -> bytes:
    return struct.pack(f"<3I{len(addresses)}I", MAGIC, flags, -(MAGIC + flags) & 0xFFFF_FFFF, *addresses)


def linux(version: int = 0x20F, code: bytes = b"code" * 256, *, high: bool = True, xload: int = 1) -> bytes:
    """A bzImage of one setup sector besides the first."""
    image = bytearray(1024)
    image[0x1F1] = 1
    struct.pack_into("<H", image, 0x1FE, 0xAA55)
    struct.pack_into("<BB4sH", image, 0x200, 0xEB, 0x6A, b"HdrS", version)  # the jump leads to 0x202 + 0x6A
    image[0x211] = high
    struct.pack_into("<I", image, 0x214, 0x10_0000)
    struct.pack_into("<I", image, 0x238, 2047)
    struct.pack_into("<H", image, 0x236, xload)
    struct.pack_into("<QI", image, 0x258, 0x100_0000, 0x20_0000)
    return bytes(image) + code


class Ram:
    def __init__(self, image: PcImage, boot: Boot | None = None) -> None:
        self.data = bytearray(RAM_BYTES)
        self.told = load(image, boot or Boot(image), RAM_BYTES, self._place)

    def _place(self, what: str, address: int, data: bytes) -> int:
        if address + len(data) > RAM_BYTES:
            raise NotBootable(what)
        self.data[address : address + len(data)] = data
        return address + len(data)

    def unpack(self, layout: str, address: int) -> tuple[int, ...]:
        return struct.unpack_from(layout, self.data, address)

    def text(self, address: int) -> bytes:
        return bytes(self.data[address : self.data.index(0, address)])


def test_a_multiboot_image_with_addresses_in_its_header() -> None:
    # the file from its byte 16 on is at 0x200000; the header, at byte 32, is at 0x200010 then
    header = multiboot_header(0x1_0003, 0x20_0010, 0x20_0000, 0x20_0040, 0x20_1000, 0x20_0030)
    data = (b"#" * 16 + b"x" * 16 + header).ljust(200, b"y")
    image = read_pc_image(data)
    assert (image.start, image.entry, image.end) == (Start.MULTIBOOT, 0x20_0030, 0x20_1000)
    assert image.pieces == ((0x20_0000, data[16:80]),)


def test_a_multiboot_elf_file_begins_at_its_entry_physically() -> None:
    image = read_pc_image(elf(text=multiboot_header(3).ljust(64, b"\x90")))
    assert (image.start, image.entry) == (Start.MULTIBOOT, 0x10_0200)
    assert image.end == 0x10_0000 + 0x240 + 0x1000


def test_what_a_multiboot_image_is_told() -> None:
    image = read_pc_image(elf(text=multiboot_header(3).ljust(64, b"\x90")))
    ram = Ram(image, Boot(image, b"module", "one two", "test.elf"))
    flags, lower, upper, _, line, modules, module_at = ram.unpack("<7I", ram.told)
    assert flags == 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9
    assert (lower, upper) == (639, RAM_BYTES // 1024 - 1024)
    assert ram.text(line) == b"test.elf one two"
    start, end, _, _ = ram.unpack("<4I", module_at)
    assert (modules, start % 4096, bytes(ram.data[start:end])) == (1, 0, b"module")
    size, at = ram.unpack("<2I", ram.told + 44)
    ranges = [ram.unpack("<IQQI", at + offset) for offset in range(0, size, 24)]
    assert ranges[0] == (20, 0, BASE_MEMORY_END, 1)
    assert ranges[-1] == (20, 0x10_0000, RAM_BYTES - 0x10_0000, 1)
    assert ram.text(ram.unpack("<I", ram.told + 64)[0]) == b"perfemu"


def test_pvh() -> None:
    note = struct.pack("<3I4sI", 4, 4, 18, b"Xen\0", 0x10_0220)
    image = read_pc_image(elf(64, 62, notes=note))
    assert (image.start, image.entry) == (Start.PVH, 0x10_0220)
    ram = Ram(image, Boot(image, b"module", "quiet"))
    magic, version, _, modules, module_at, line, rsdp, map_at, entries, _ = ram.unpack("<4I4Q2I", ram.told)
    assert (magic, version, modules, rsdp, entries) == (0x336E_C578, 1, 1, ACPI_TABLES, 4)
    assert ram.text(line) == b"quiet"
    start, size, _, _ = ram.unpack("<4Q", module_at)
    assert bytes(ram.data[start : start + size]) == b"module"
    assert ram.unpack("<QQII", map_at) == (0, BASE_MEMORY_END, 1, 0)


def test_an_elf_file_of_64_bits_begins_in_64_bit_mode_identity_mapped() -> None:
    image = read_pc_image(elf(64, 62))
    assert (image.start, image.entry) == (Start.LONG_MODE, 0x10_0200)
    ram = Ram(image)
    (top,) = ram.unpack("<Q", PAGE_TABLES)
    pointers = ram.unpack("<4Q", top & ~0xFFF)
    last = ram.unpack("<512Q", pointers[3] & ~0xFFF)
    assert (top & 3, [pointer & 3 for pointer in pointers]) == (3, [3] * 4)
    assert last[511] == (4 << 30) - (2 << 20) | 0x83  # present, writable, large


def test_a_linux_bzimage_at_its_64_bit_entry() -> None:
    data = linux()
    image = read_pc_image(data)
    assert (image.start, image.is_linux) == (Start.LINUX_64, True)
    assert image.pieces == ((0x100_0000, b"code" * 256),)
    assert (image.entry, image.end) == (0x100_0200, 0x120_0000)
    ram = Ram(image, Boot(image, b"initrd", "console=ttyS0"))
    parameters = ram.told
    assert bytes(ram.data[parameters + 0x1F1 : parameters + 0x210]) == data[0x1F1:0x210]
    assert ram.data[parameters + 0x210] == 0xFF  # type_of_loader
    start, size = ram.unpack("<2I", parameters + 0x218)
    assert (start, bytes(ram.data[start : start + size])) == (0x120_0000, b"initrd")
    assert ram.unpack("<I", parameters + 0x228) == (COMMAND_LINE,)
    assert ram.text(COMMAND_LINE) == b"console=ttyS0"
    assert ram.unpack("<Q", parameters + 0x70) == (ACPI_TABLES,)
    assert ram.data[parameters + 0x1E8] == 4
    assert ram.unpack("<QQI", parameters + 0x2D0 + 60) == (0x10_0000, RAM_BYTES - 0x10_0000, 1)


def test_a_linux_of_32_bits_at_its_32_bit_entry() -> None:
    assert read_pc_image(linux(xload=0)).start is Start.LINUX_32
    old = read_pc_image(linux(version=0x206))
    assert (old.start, old.entry) == (Start.LINUX_32, 0x10_0000)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"flat code, of which nothing is known", "a file of 36 bytes: a Linux bzImage, "),
        (linux(high=False), "a Linux zImage, by boot protocol 2.15"),
        (linux()[:0x206], "a Linux bzImage of 518 bytes: less than its header"),
        (elf(), "an ELF file of 32 bits without a Multiboot header or PVH's note"),
        (elf(64, 183), "an ELF file for EM_AARCH64; this board's CPUs are x86-64"),
        (elf()[:60], "a broken ELF file"),
        (multiboot_header(3).ljust(100, b"\0"), "a Multiboot image without addresses in its header"),
        (multiboot_header(0x1_0011, 1, 2, 3, 4, 5), "a Multiboot image that asks for what is not here: flags 0x10"),
        (multiboot_header(0x1_0003, 16, 32, 48, 64, 32), "a Multiboot image with its header at 0x10, before"),
        (multiboot_header(0x1_0003), "a Multiboot image that ends within its header"),
        (b"\x1f\x8b broken", "a gzip file that cannot be read"),
    ],
)
def test_what_is_not_bootable_says_so(data: bytes, message: str) -> None:
    with pytest.raises(NotBootable) as refused:
        read_pc_image(data)
    assert str(refused.value).startswith(message)


def test_what_does_not_fit() -> None:
    image = read_pc_image(linux())
    with pytest.raises(NotBootable, match="a command line of 2048 bytes: the image takes 2047"):
        Ram(image, Boot(image, command_line="x" * 2048))
    with pytest.raises(NotBootable, match="the initrd"):
        Ram(image, Boot(image, bytes(RAM_BYTES)))
