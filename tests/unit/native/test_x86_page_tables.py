"""Random page tables of x86-64 in all their forms, judged by a walker that was written from Intel's manual alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator.cpu import Level, WalkFault
from emulator.x86_64_system import SystemRegister
from tests.unit.native.bare import assemble
from tests.unit.native.own_x86 import (
    ACCESSED,
    DIRTY,
    LMA,
    LME,
    LOADED_AT,
    MEMORY_BYTES,
    NX,
    NXE,
    PAE,
    PE,
    PG,
    PRESENT,
    PTES,
    RAX,
    WP,
    WRITABLE,
    Pc,
)

PSE, SMEP = 1 << 4, 1 << 20
READ, WRITE, EXECUTE = 1, 2, 4
PHYSICAL_BITS = 40
PS, USER = 1 << 7, 1 << 2


@dataclass
class Answer:
    """`protection`, if no fault comes before that."""

    fault: WalkFault
    physical: int = 0
    protection: int = 0


class Walker:
    """SDM vol. 3, 4.3 to 4.6."""

    def __init__(self, pc: Pc) -> None:
        self.pc = pc
        self.cr0, self.cr3, self.cr4, self.efer = (
            pc.get(number)
            for number in (SystemRegister.CR0, SystemRegister.CR3, SystemRegister.CR4, SystemRegister.EFER)
        )

    def entry(self, address: int, size: int) -> int:
        return self.pc.read(address, size) if address + size <= MEMORY_BYTES else (1 << 8 * size) - 1

    def walk(self, linear: int, level: Level) -> Answer:
        if self.efer & LMA:
            top = linear >> 47
            if top not in (0, (1 << 17) - 1):
                return Answer(WalkFault.TRANSLATION)
            return self.wide(self.cr3 & ~0xFFF & ((1 << 52) - 1), linear, 4, level)
        linear &= 0xFFFF_FFFF
        if self.cr4 & PAE:
            return self.wide(self.cr3 & 0xFFFF_FFE0, linear, 3, level)
        return self.narrow(linear, level)

    def narrow(self, linear: int, level: Level) -> Answer:
        pde = self.entry((self.cr3 & 0xFFFF_F000) + (linear >> 22) * 4, 4)
        if not pde & 1:
            return Answer(WalkFault.TRANSLATION)
        if pde & PS and self.cr4 & PSE:
            if pde >> 21 & 1:
                return Answer(WalkFault.ADDRESS_SIZE)
            physical = (pde >> 22 << 22) | (pde >> 13 & 0xFF) << 32 | linear & 0x3F_FFFF
            return self.found(physical, bool(pde & 2), bool(pde & 4), True, level)
        pte = self.entry((pde & 0xFFFF_F000) + (linear >> 12 & 0x3FF) * 4, 4)
        if not pte & 1:
            return Answer(WalkFault.TRANSLATION)
        both = pde & pte
        return self.found((pte & 0xFFFF_F000) | linear & 0xFFF, bool(both & 2), bool(both & 4), True, level)

    def wide(self, table: int, linear: int, levels: int, level: Level) -> Answer:
        writable = user = executable = True
        for depth in range(levels, 0, -1):
            shift = 12 + 9 * (depth - 1)
            root_of_pae = levels == 3 and depth == 3
            index = linear >> shift & (3 if root_of_pae else 511)
            value = self.entry(table + index * 8, 8)
            if not value & 1:
                return Answer(WalkFault.TRANSLATION)
            may_be_page = depth == 2 or (depth == 3 and levels == 4)
            is_page = depth == 1 or (may_be_page and bool(value & PS))
            reserved = ((1 << 52) - 1) & ~((1 << PHYSICAL_BITS) - 1)
            if not self.efer & NXE:
                reserved |= NX
            if levels == 3:
                reserved |= 0x7FF << 52
            if root_of_pae:
                reserved |= NX | 0b1_1110_0110
            if depth == 4:
                reserved |= PS
            if is_page and depth > 1:
                reserved |= (1 << shift) - (1 << 13)
            if value & reserved:
                return Answer(WalkFault.ADDRESS_SIZE)
            if not root_of_pae:
                writable &= bool(value & 2)
                user &= bool(value & 4)
                executable &= not value & NX
            table = value & ((1 << 52) - 1) & ~0xFFF
            if is_page:
                offset = (1 << shift) - 1
                return self.found(table & ~offset | linear & offset, writable, user, executable, level)
        raise AssertionError

    def found(self, physical: int, writable: bool, user: bool, executable: bool, level: Level) -> Answer:
        if level is Level.USER:
            allowed = (READ | (WRITE if writable else 0) | (EXECUTE if executable else 0)) if user else 0
        else:
            allowed = READ | (WRITE if writable or not self.cr0 & WP else 0)
            if executable and not (user and self.cr4 & SMEP):
                allowed |= EXECUTE
        return Answer(WalkFault.NONE if physical < MEMORY_BYTES else WalkFault.EXTERNAL, physical, allowed)


FORMS = {
    "four levels": (LME | LMA | NXE, PAE),
    "four levels without NX": (LME | LMA, PAE | SMEP),
    "PAE": (NXE, PAE),
    "PAE without NX": (0, PAE | SMEP),
    "32 bits with large pages": (0, PSE),
    "32 bits": (0, SMEP),
}


def random_entry(choose: random.Random, size: int, tables: range) -> int:
    """Mostly present, often a table, seldom with a bit that is reserved."""
    value = choose.choice(tables) if choose.random() < 0.75 else choose.randrange(0, 1 << 26, 4096)
    value |= choose.getrandbits(7) | PRESENT
    for bit, likely in ((0, 0.05), (7, 0.25), (63, 0.2), (12, 0.1), (13, 0.05), (21, 0.1), (41, 0.03), (52, 0.05)):
        if bit < 8 * size and choose.random() < likely:
            value ^= 1 << bit
    return value & ((1 << 8 * size) - 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("write_protects", [0, WP])
def test_random_tables(form: str, write_protects: int) -> None:
    choose = random.Random(form)
    efer, control_4 = FORMS[form]
    size = 8 if control_4 & PAE else 4
    pc = Pc.load(b"")
    tables = range(0x10_0000, 0x10_6000, 4096)
    for table in tables:
        entries = (random_entry(choose, size, tables) for _ in range(4096 // size))
        pc.write(table, b"".join(entry.to_bytes(size, "little") for entry in entries))
    roots = b"".join((choose.choice(tables) | PRESENT).to_bytes(8, "little") for _ in range(4))
    root = tables[0]
    if form.startswith("PAE"):
        root = 0x12_0020  # 32 bytes
        pc.write(root, roots)
    registers = {SystemRegister.CR3: root, SystemRegister.CR4: control_4, SystemRegister.EFER: efer}
    pc.set(registers | {SystemRegister.CR0: PE | PG | write_protects})
    walker = Walker(pc)
    seen = set()
    for _ in range(1000):
        linear = choose.getrandbits(48)
        if linear >> 47 and choose.random() < 0.95:
            linear |= 0xFFFF << 48
        for level in Level:
            page, fault, _, _, physical = pc.tables.walk(linear, level)
            expected = walker.walk(linear, level)
            assert WalkFault(fault) is expected.fault, hex(linear)
            if expected.fault in (WalkFault.NONE, WalkFault.EXTERNAL):
                assert physical == expected.physical, hex(linear)
            if expected.fault is WalkFault.NONE:
                assert page == (physical >> 12, expected.protection), hex(linear)
            seen.add(expected.fault)
    assert {WalkFault.NONE, WalkFault.TRANSLATION} <= seen


# A page that is read, one that is written, one that is read first, and one that is executed.
MARKS = f"""
        .intel_syntax noprefix
        mov     rax, [0x40000]
        mov     [0x41000], rax
        mov     rax, [0x42000]
        mov     byte ptr [0x43000], 0xc3
        mov     ecx, 0x43000
        call    rcx
        mov     rax, [0x44000]
        mov     rdx, [{PTES + 8 * 0x44}]
        mov     [0x44000], rax
        hlt
"""


def test_marks_that_the_walker_leaves(tmp_path: Path) -> None:
    pc = Pc.load(assemble("x86_64", MARKS, tmp_path))
    data = {address: address | PRESENT | WRITABLE for address in range(0x4_0000, 0x4_7000, 0x1000)}
    pc.start_64({LOADED_AT: LOADED_AT | PRESENT, PTES: PTES | PRESENT | WRITABLE | NX, **data})
    pc.cpu.core.write_register(7, 0x4_6FF8)  # RSP
    pc.run()
    marks = {address: pc.read(PTES + 8 * (address >> 12)) & (ACCESSED | DIRTY) for address in data}
    both = ACCESSED | DIRTY
    assert marks == {
        0x4_0000: ACCESSED,
        0x4_1000: both,
        0x4_2000: ACCESSED,
        0x4_3000: both,
        0x4_4000: both,
        0x4_5000: 0,
        0x4_6000: both,
    }
    assert pc.read(PTES + 8 * (LOADED_AT >> 12)) & both == ACCESSED
    assert pc.cpu.core.read_register(3) & both == ACCESSED  # RDX: before the store
    assert pc.read(PTES - 0x1000) & both == ACCESSED  # tables have no D
    assert pc.cpu.core.read_register(RAX) == 0
