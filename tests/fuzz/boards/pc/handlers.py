"""Handlers of random images: what goes on behind an exception, so that most of what comes behind gets its turn."""

from __future__ import annotations

import struct
from random import Random

from fuzz.boards.pc import x86
from fuzz.boards.pc.places import (
    CODE,
    CODE_BYTES,
    HANDLERS,
    KERNEL_CODE,
    KERNEL_DATA,
    SLOT,
    TURNS,
    USER_CODE,
    USER_DATA,
)

WITH_ERROR = (8, 10, 11, 12, 13, 14, 17, 21)
TRAPS = (1, 3, 4)  # which are behind their instructions already
ESSENTIAL = (8, 12, 13, 14)  # without which little goes on
INTERRUPT_GATE, TRAP_GATE = 0x8E, 0x8F


def handlers(random: Random, stack: int, bases: dict[int, int]) -> tuple[bytes, bytes]:
    """Code at HANDLERS, and the IDT. `bases`: registers that are made good again at times."""
    go_on = _go_on(random, stack, bases)
    trap, interrupt = _trap(random), _interrupt(random)
    starts, code = [], b""
    for piece in (b"\x6a\0" + go_on, go_on, trap, interrupt):
        starts.append(HANDLERS + len(code))
        code += piece
    without_error, with_error, trapped, interrupted = starts
    idt = b""
    alone = random.random() < 0.8  # exceptions have a stack of their own
    for vector in range(256):
        if vector >= 32 or vector == 2:
            handler = interrupted
        elif vector in TRAPS:
            handler = trapped
        else:
            handler = with_error if vector in WITH_ERROR else without_error
        stacks = 1 if (vector < 32 and alone) or vector in ESSENTIAL else random.choice((0, 0, 0, 1, 2))
        kind = random.choice((INTERRUPT_GATE, INTERRUPT_GATE, TRAP_GATE)) | random.choice((0, 3 << 5))
        if vector not in ESSENTIAL and random.random() < 0.02:
            kind = random.randrange(256)
        idt += struct.pack(
            "<HHBBHII", handler & 0xFFFF, KERNEL_CODE, stacks, kind, handler >> 16 & 0xFFFF, handler >> 32, 0
        )
    return code, idt


def _go_on(random: Random, stack: int, bases: dict[int, int]) -> bytes:
    """At the next slot, if it was in the code; somewhere there if not."""
    elsewhere = b"".join(
        [
            b"\x49\xff\xc7",  # inc r15
            x86.of_registers(b"\x89", TURNS, x86.RAX),
            b"\xc1\xe0\x07",  # shl eax, 7
            b"\x25" + struct.pack("<I", 0x3FF0),  # and eax
            b"\x05" + struct.pack("<I", CODE),  # add eax
            x86.in_memory(b"\x89", x86.RAX, x86.RSP, 24, wide=True),
            *_registers(random, stack),
            *([x86.move(register, value) for register, value in bases.items()] if random.random() < 0.7 else []),
            *([x86.CLTS] if random.random() < 0.7 else []),
        ]
    )
    behind = b"".join(
        [
            b"\x83\xc8" + bytes([SLOT - 1]),  # or eax, which has all bits of an address in the code
            b"\xff\xc0",  # inc eax
            x86.in_memory(b"\x89", x86.RAX, x86.RSP, 24),
        ]
    )
    behind += x86.jump(len(elsewhere))
    return b"".join(
        [
            b"\x50\x51",  # push rax, rcx: then [rsp + 16] is the error code, then RIP, CS, RFLAGS, RSP, SS
            x86.in_memory(b"\x8b", x86.RAX, x86.RSP, 24, wide=True),
            x86.of_registers(b"\x89", x86.RAX, x86.RCX),
            b"\x81\xe1" + struct.pack("<I", 0x3FFF_FFFF),  # and ecx: the alias, too
            b"\x81\xe9" + struct.pack("<I", CODE),  # sub ecx
            b"\x81\xf9" + struct.pack("<I", CODE_BYTES - SLOT),  # cmp ecx
            x86.jump(len(behind), 3),  # jae elsewhere
            behind,
            elsewhere,
            b"\x81\x64\x24\x28" + struct.pack("<I", 0xFFFF_FEFF) if random.random() < 0.7 else b"",  # without TF
            b"\x59\x58\x48\x83\xc4\x08",  # pop rcx, rax; add rsp, 8
            x86.IRETQ,
        ]
    )


def _registers(random: Random, stack: int) -> list[bytes]:
    """What an IRET takes: of the kernel or of a user."""
    code, data = random.choice(((KERNEL_CODE, KERNEL_DATA), (KERNEL_CODE, KERNEL_DATA), (USER_CODE, USER_DATA)))
    flags = random.choice((0x202, 0x202, 0x002, 0x3202, 0x1002))
    values = {32: code, 40: flags, 48: stack, 56: data}
    return [b"\x48" + x86.store(x86.RSP, place, value) for place, value in values.items()]


def _trap(random: Random) -> bytes:
    """#DB goes on stepping in some images: the limit of instructions ends it."""
    clears = b"\x81\x64\x24\x10" + struct.pack("<I", 0xFFFF_FEFF) if random.random() < 0.8 else b""  # and [rsp + 16]
    return clears + x86.IRETQ


def _interrupt(random: Random) -> bytes:
    """With the ends of interrupts that the local APIC and both 8259s want."""
    ends = [x86.move(x86.RAX, 0xFEE0_00B0), b"\xc7\x00\0\0\0\0"]  # mov dword [rax], 0
    if random.random() < 0.7:
        ends += [b"\xb0\x20\xe6\xa0\xe6\x20"]  # mov al, 20H; out A0H; out 20H
    return b"\x50" + b"".join(ends) + b"\x58" + x86.IRETQ
