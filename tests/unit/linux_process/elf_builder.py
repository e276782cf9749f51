"""Small ELF files, right and wrong, for tests of the loader."""

from __future__ import annotations

import struct

# mov edi, 7; mov eax, 60; syscall
EXIT_7 = bytes.fromhex("bf07000000b83c0000000f05")
BASE = 0x400000
PT_LOAD, PT_INTERP, PT_GNU_STACK = 1, 3, 0x6474E551
R, W, X = 4, 2, 1
EM_X86_64, EM_AARCH64 = 62, 183


def segment(
    kind: int = PT_LOAD,
    flags: int = R | X,
    offset: int = 0,
    address: int = BASE,
    file_size: int = 0x1000,
    memory_size: int | None = None,
    alignment: int = 0x1000,
) -> bytes:
    memory = file_size if memory_size is None else memory_size
    return struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, file_size, memory, alignment)


def elf(
    *segments: bytes,
    code: bytes = EXIT_7,
    machine: int = EM_X86_64,
    kind: int = 2,
    elf_class: int = 2,
    entry: int = BASE + 0x800,
    size: int = 0x1000,
    header_count: int | None = None,
    header_offset: int = 64,
) -> bytes:
    """A file of `size` bytes with the code at 0x800; by default one segment maps all of it."""
    table = segments or (segment(file_size=size),)
    count = len(table) if header_count is None else header_count
    ident = b"\x7fELF" + bytes([elf_class, 1, 1]) + bytes(9)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, entry, header_offset, 0, 0, 64, 56, count, 64, 0, 0
    )
    data = bytearray(size)
    head = header + b"".join(table)
    data[: len(head)] = head
    if size >= 0x800 + len(code):
        data[0x800 : 0x800 + len(code)] = code
    return bytes(data)
