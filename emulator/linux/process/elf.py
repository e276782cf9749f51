"""ELF64 headers, read by hand and never trusted: a file is whatever its author wrote."""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"\x7fELF"
ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR, PT_TLS = 1, 2, 3, 4, 6, 7
PT_GNU_STACK = 0x6474E551
PF_X, PF_W, PF_R = 1, 2, 4

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
MAX_PROGRAM_HEADERS = 65536 // PROGRAM_HEADER.size  # Linux: they must fit 64 KiB

EM_X86_64, EM_AARCH64 = 62, 183
MACHINES = {EM_AARCH64: "aarch64", EM_X86_64: "x86_64"}

# Names of the machines that a user is likely to meet (elf(5), gABI e_machine)
FOREIGN_MACHINES = {
    2: "SPARC",
    3: "i386",
    4: "m68k",
    8: "MIPS",
    15: "PA-RISC",
    20: "PowerPC",
    21: "PowerPC64",
    22: "s390x",
    40: "32-bit Arm",
    42: "SuperH",
    43: "SPARC64",
    50: "IA-64",
    93: "ARC",
    164: "Hexagon",
    243: "RISC-V",
    247: "BPF",
    258: "LoongArch",
    0x9026: "Alpha",
}
TYPES = {0: "no type", ET_REL: "a relocatable object (link it first)", ET_CORE: "a core dump"}


class ElfError(Exception):
    """What is wrong with the file, to be put after its name."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One program header."""

    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int
    alignment: int

    @property
    def end(self) -> int:
        return self.address + self.memory_size


@dataclass(frozen=True, slots=True)
class Elf:
    """What execve needs to know of an executable or interpreter."""

    isa: str
    type: int
    entry: int
    header_offset: int  # e_phoff
    segments: tuple[Segment, ...]

    @property
    def loads(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.type == PT_LOAD]

    def first(self, kind: int) -> Segment | None:
        return next((segment for segment in self.segments if segment.type == kind), None)


def identify_header(header: bytes) -> str:
    """The ISA of an executable, from its first 64 bytes; raises ElfError with the reason why it cannot run."""
    if header[:4] != MAGIC:
        raise ElfError("not an ELF executable, nor a script that begins with #!" if header else "an empty file")
    if len(header) < HEADER.size:
        raise ElfError(f"a truncated ELF file: {len(header)} bytes, the header alone has {HEADER.size}")
    ident, kind, machine, *_ = HEADER.unpack_from(header)
    if ident[4] == 1:
        name = {3: "i386", 40: "32-bit Arm"}.get(machine, FOREIGN_MACHINES.get(machine, f"machine {machine}"))
        raise ElfError(f"a 32-bit ELF file ({name}); AArch64 and x86-64 are modelled")
    if ident[4] != 2:
        raise ElfError(f"an ELF file of unknown class {ident[4]}")
    if ident[5] != 1:
        raise ElfError("a big-endian ELF file; AArch64 and x86-64 are modelled, little-endian both")
    if machine not in MACHINES:
        name = FOREIGN_MACHINES.get(machine, f"machine {machine:#x}")
        raise ElfError(f"an ELF file for {name}; AArch64 and x86-64 are modelled")
    if kind not in (ET_EXEC, ET_DYN):
        raise ElfError(f"an ELF file, but {TYPES.get(kind, f'of type {kind:#x}')}, not an executable")
    return MACHINES[machine]


def parse(header: bytes, file_size: int, program_headers: bytes | None = None) -> Elf:
    """The headers of an executable. `header`: the file's first bytes; `program_headers` where they lie outside it."""
    isa = identify_header(header)
    fields = HEADER.unpack_from(header)
    kind, entry, offset = fields[1], fields[4], fields[5]
    entry_size, count = fields[9], fields[10]
    if entry_size != PROGRAM_HEADER.size or not 1 <= count <= MAX_PROGRAM_HEADERS:
        raise ElfError(f"a broken ELF file: {count} program headers of {entry_size} bytes")
    size = entry_size * count
    if offset + size > file_size:
        raise ElfError(
            f"a truncated ELF file: its program headers end at {offset + size:#x}, it has {file_size:#x} bytes"
        )
    table = header[offset : offset + size] if program_headers is None else program_headers
    return Elf(isa, kind, entry, offset, tuple(_segment(table, index * entry_size) for index in range(count)))


def _segment(table: bytes, position: int) -> Segment:
    kind, flags, offset, address, _physical, file_size, memory_size, alignment = PROGRAM_HEADER.unpack_from(
        table, position
    )
    return Segment(kind, flags, offset, address, file_size, memory_size, alignment)


def program_header_range(header: bytes) -> tuple[int, int]:
    """(offset, size) of the program headers that a checked header announces."""
    fields = HEADER.unpack_from(header)
    return fields[5], fields[9] * fields[10]
