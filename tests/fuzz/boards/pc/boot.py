"""How a random image for a pc begins: from Multiboot's 32-bit entry, or from a second CPU's real mode, to 64-bit mode
with all that the code counts on."""

from __future__ import annotations

import struct
from random import Random

from emulator.board.pc.image import MULTIBOOT_MAGIC
from emulator.board.pc.memory_map import LOCAL_APIC
from fuzz.boards.pc import x86
from fuzz.boards.pc.places import (
    ALIASED,
    ALIASED_PAGES,
    BASE_OF_APIC,
    BASE_OF_IO_APIC,
    CODE,
    CODE_BYTES,
    DEVICES,
    END,
    FIRST_TASK,
    GDT,
    GDT_BYTES,
    IDT,
    KERNEL_CODE,
    KERNEL_CODE_32,
    KERNEL_DATA,
    LOW,
    LOW_PAGES,
    POINTERS,
    SLOT,
    START,
    STRANGE,
    TABLES,
    TASK_BYTES,
    TASKS,
    TOP,
    TRAMPOLINE,
    TRAMPOLINE_IMAGE,
)

HAS_ADDRESSES = 1 << 16
PRESENT, WRITABLE, USER, LARGE, GLOBAL, NO_EXECUTE = 1, 2, 4, 1 << 7, 1 << 8, 1 << 63
EFER, STAR, LSTAR, CSTAR, SFMASK = 0xC000_0080, 0xC000_0081, 0xC000_0082, 0xC000_0083, 0xC000_0084
LONG_ENABLED = 1 << 11 | 1 << 8 | 1 << 0  # NXE, LME, SCE
NORMAL_CR0, NORMAL_CR4 = 0x8001_0033, 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10
OPERANDS = b"\x66"  # the size of operands is the other
TRAMPOLINE_TABLE = 0x80  # in it, the GDT's pseudo-descriptor
CPU_STACKS = 0x4000  # of each CPU, from DATA's end down: its own 4 KiB, then two for exceptions
TABLES_AT = IDT - 0x40  # pseudo-descriptors: of the GDT and the IDT


def beginning(random: Random, bases: dict[int, int]) -> tuple[bytes, bytes]:
    """From START on: Multiboot's header, 32-bit code, then that of both CPUs in 64-bit mode; and the second CPU's way
    there from real mode."""
    flags = HAS_ADDRESSES
    entry = START + 0x20
    header = struct.pack(
        "<8I", MULTIBOOT_MAGIC, flags, -(MULTIBOOT_MAGIC + flags) & 0xFFFF_FFFF, START, START, END, 0, entry
    )
    cr4 = NORMAL_CR4 | random.choice((0, 0, 1 << 2, 1 << 16, 1 << 3))
    copy = b"\xbe" + _u32(TRAMPOLINE_IMAGE) + b"\xbf" + _u32(TRAMPOLINE) + b"\xb9" + _u32(0x100) + b"\xf3\xa4"
    load = b"\x0f\x01\x15" + _u32(TABLES_AT)
    before = header + copy + load
    target = START + len(before) + len(_to_long_mode(b"", cr4, 0))
    first = before + _to_long_mode(b"", cr4, target) + _in_64_bits(random, bases)
    second = b"\x66\x0f\x01\x16" + struct.pack("<H", TRAMPOLINE + TRAMPOLINE_TABLE)
    second += _to_long_mode(OPERANDS, NORMAL_CR4, target)
    return first, second.ljust(TRAMPOLINE_TABLE, b"\0") + struct.pack("<HI", GDT_BYTES - 1, GDT)


def _to_long_mode(prefix: bytes, cr4: int, target: int) -> bytes:
    """`prefix`: of instructions with operands of 32 bits."""
    return b"".join(
        [
            prefix + b"\xb8" + _u32(TOP) + b"\x0f\x22\xd8",
            prefix + b"\xb8" + _u32(cr4) + b"\x0f\x22\xe0",
            prefix + b"\xb9" + _u32(EFER) + x86.RDMSR + prefix + b"\x0d" + _u32(LONG_ENABLED) + x86.WRMSR,
            prefix + b"\xb8" + _u32(NORMAL_CR0) + b"\x0f\x22\xc0",
            prefix + b"\xea" + _u32(target) + struct.pack("<H", KERNEL_CODE),
        ]
    )


def _in_64_bits(random: Random, bases: dict[int, int]) -> bytes:
    segments = [x86.move(x86.RAX, KERNEL_DATA), *(bytes([0x8E, 0xC0 | number << 3]) for number in (0, 2, 3, 4, 5))]
    task = [
        x86.move(x86.RDI, LOCAL_APIC + 0x20),
        b"\x8b\x3f\xc1\xef\x18",  # mov edi, [rdi]; shr edi, 24
        b"\x89\xf8\xc1\xe0\x04\x83\xc0" + bytes([FIRST_TASK]),  # mov eax, edi; shl eax, 4; add eax
        b"\x0f\x00\xd8",  # ltr
        b"\x89\xf8\xc1\xe0\x0e",  # mov eax, edi; shl eax, 14
        x86.move(x86.RSP, END) + b"\x29\xc4",  # sub esp, eax
    ]
    calls = x86.write_msr(STAR, (KERNEL_CODE | 0x1B << 16) << 32)
    for number in (LSTAR, CSTAR):
        calls += x86.write_msr(number, CODE + SLOT * random.randrange(0x200))
    calls += x86.write_msr(SFMASK, random.choice((0, 0x200, 0x4_7700, 0x300)))
    code = b"".join([*segments, b"\x0f\x01\x1c\x25" + _u32(TABLES_AT + 0x10), *task, *calls])
    code += b"".join(x86.move(register, value) for register, value in bases.items()) + b"\x45\x31\xff"  # xor r15d, r15d
    enables = b"".join(x86.store(BASE_OF_APIC, at, value) for at, value in ((0xF0, 0x1FF), (0x340, 0x441)))
    devices = _devices(random)
    code += enables + b"\x85\xff" + x86.jump(len(devices), 5)  # test edi, edi; jnz
    code += devices + (x86.STI if random.random() < 0.7 else b"")
    at = random.choice((0, 0, 0x400))
    return code + x86.move(x86.RAX, CODE + at) + b"\xff\xe0"


def _devices(random: Random) -> bytes:
    """Timers and the ways of their interrupts; a second CPU is started, if there is one."""
    writes: list[bytes] = []
    if random.random() < 0.7:
        for pin in (2, 4, *range(16, 20)):
            for half, value in ((0, random.choice((0x50 + pin, 0x8050 + pin, 0x1_0050))), (1, 0)):
                writes += [x86.store(BASE_OF_IO_APIC, 0, 0x10 + 2 * pin + half)]
                writes += [x86.store(BASE_OF_IO_APIC, 0x10, value)]
    if random.random() < 0.7:
        ports = ((0x20, 0x11), (0x21, 0x20), (0x21, 4), (0x21, 1), (0xA0, 0x11), (0xA1, 0x28), (0xA1, 2), (0xA1, 1))
        ports += ((0x21, random.choice((0, 0xFE, 0xFF))), (0xA1, 0), (0x43, 0x34), (0x40, 0x10), (0x40, 0))
        writes += [b"\xb0" + bytes([value]) + b"\xe6" + bytes([port]) for port, value in ports]
    if random.random() < 0.7:
        timer = (
            (0x3E0, random.choice((0, 3, 11))),
            (0x320, 0x40 | random.choice((0, 1 << 17))),
            (0x380, 10 ** random.randrange(2, 6)),
        )
        writes += [x86.store(BASE_OF_APIC, at, value) for at, value in timer]
    if random.random() < 0.8:
        starts = ((0x310, 1 << 24), (0x300, 0x4500), (0x300, 0x4600 | TRAMPOLINE >> 12))
        writes += [x86.store(BASE_OF_APIC, at, value) for at, value in starts]
    return b"".join(writes)


def descriptors(random: Random) -> list[tuple[int, bytes]]:
    """GDT, both CPUs' TSS, and what LGDT and LIDT read; at their addresses."""
    segments = [
        0, 0x00AF_9B00_0000_FFFF, 0x00CF_9300_0000_FFFF, 0x00CF_FB00_0000_FFFF, 0x00CF_F300_0000_FFFF,
        0x00AF_FB00_0000_FFFF, 0x00CF_9B00_0000_FFFF,
    ]  # fmt: skip
    assert len(segments) * 8 == FIRST_TASK
    assert segments[KERNEL_CODE_32 // 8] & 1 << 54
    placed = [
        (TABLES_AT, struct.pack("<HQ", GDT_BYTES - 1, GDT)),
        (TABLES_AT + 0x10, struct.pack("<HQ", random.choice((0xFFF, 0xFFF, 0xFFF, 0x3FF)), IDT)),
    ]
    for number in range(2):
        task, stacks = TASKS + TASK_BYTES * number, END - CPU_STACKS * number
        limit = random.choice((0x67, 0x67 + 0x80))
        segments += [limit | (task & 0xFF_FFFF) << 16 | 0x89 << 40 | (task >> 24) << 56, task >> 32]
        interrupt_stacks = [stacks - 0x1000, stacks - 0x2000, 0, 0, 0, 0, random.getrandbits(64)]
        state = struct.pack("<I3QQ7QQHH", 0, stacks, 0, 0, 0, *interrupt_stacks, 0, 0, 0x68)
        placed.append((task, state + random.choice((bytes(0x81), b"\xff" * 0x81, random.randbytes(0x80) + b"\xff"))))
    assert len(segments) * 8 == STRANGE
    segments += [random.getrandbits(64) | 1 << 47 for _ in range((GDT_BYTES - STRANGE) // 8)]
    return [*placed, (GDT, struct.pack(f"<{len(segments)}Q", *segments))]


def page_tables(random: Random) -> bytes:
    """From TABLES on: the first GiB and its alias, by pages for the first 2 MiB of both; and the devices'."""
    upper = PRESENT | WRITABLE | USER
    top = [POINTERS | upper, *[0] * 510, random.choice((TABLES | upper, random.getrandbits(64), 0))]
    pointers = [LOW | upper, ALIASED | upper, random.choice((0, random.getrandbits(64))), DEVICES | upper, *[0] * 508]
    tables = [top, pointers]
    for pages in (LOW_PAGES, ALIASED_PAGES):
        tables.append([pages | upper, *((n << 21) | upper | LARGE for n in range(1, 8)), *[0] * 504])
    devices = [(0xC000_0000 + (n << 21)) | PRESENT | WRITABLE | LARGE | 0x10 for n in range(512)]
    if random.random() < 0.5:
        devices = [entry | USER for entry in devices]
    tables.append(devices)
    for extra in (random.choice((USER, USER, 0)), random.choice((0, USER, USER | NO_EXECUTE))):
        pages = [n << 12 | PRESENT | WRITABLE | (extra if n << 12 >= CODE else 0) for n in range(512)]
        for _ in range(random.randrange(8)):
            number = random.choice(
                (random.randrange(0x140, 512), random.randrange(CODE >> 12, (CODE + CODE_BYTES) >> 12))
            )
            pages[number] = random.choice((0, random.getrandbits(64), CODE | PRESENT | USER, pages[number] ^ WRITABLE))
        tables.append(pages)
    flat = [entry & (1 << 64) - 1 for table in tables for entry in table]
    return struct.pack(f"<{len(flat)}Q", *flat)


def _u32(value: int) -> bytes:
    return struct.pack("<I", value)
