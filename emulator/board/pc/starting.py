"""How the first CPU is when an image begins: registers, as each kind of image wants them."""

from __future__ import annotations

from emulator.board.pc.image import PcImage, Start
from emulator.board.pc.loading import FLAT_CODE, FLAT_DATA, GDT_BYTES, MULTIBOOT_LOADED
from emulator.board.pc.memory_map import DESCRIPTORS, PAGE_TABLES, STACK_TOP
from emulator.board.pc.pc_cpu import RAX, RBX, RIP, PcCpu
from emulator.x86_64_system import SystemRegister

RSP, RSI, RDI, RFLAGS = 7, 4, 5, 17
RFLAGS_AT_START = 0b10
LONG_MODE = 1 << 8 | 1 << 10  # EFER: LME, LMA
PROTECTED, EXTENSION_TYPE, PAGING = 1 << 0, 1 << 4, 1 << 31  # CR0: PE, ET, PG
PHYSICAL_ADDRESS_EXTENSION = 1 << 5  # CR4
CODE_32, CODE_64, DATA = 0xC09B, 0xA09B, 0xC093  # attributes of segments
TOLD_IN = {Start.MULTIBOOT: RBX, Start.PVH: RBX, Start.LINUX_32: RSI, Start.LINUX_64: RSI, Start.LONG_MODE: RDI}


def start(cpu: PcCpu, image: PcImage, told: int) -> None:
    """`told`: where in memory that is which it is told."""
    way = image.start
    registers = {RIP: image.entry, RFLAGS: RFLAGS_AT_START, RSP: STACK_TOP, TOLD_IN[way]: told}
    if way is Start.MULTIBOOT:
        registers[RAX] = MULTIBOOT_LOADED
    system: dict[int, int] = {
        SystemRegister.GDT_BASE: DESCRIPTORS,
        SystemRegister.GDT_LIMIT: GDT_BYTES - 1,
        SystemRegister.CR0: PROTECTED | EXTENSION_TYPE,
    }
    if way.is_64_bits:
        system |= {
            SystemRegister.CR3: PAGE_TABLES,
            SystemRegister.CR4: PHYSICAL_ADDRESS_EXTENSION,
            SystemRegister.EFER: LONG_MODE,
            SystemRegister.CR0: PROTECTED | EXTENSION_TYPE | PAGING,
        }
    code = CODE_64 if way.is_64_bits else CODE_32
    cpu.start(registers, system, (FLAT_CODE, code), (FLAT_DATA, DATA))
