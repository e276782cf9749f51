"""What a debugger sees of an x86-64 CPU's registers: names, sizes, and how each is read and written.

Names and order of those that GDB knows: its manual, "i386 Features". The others have the SDM's names.
"""

from __future__ import annotations

from functools import partial

from emulator.board.pc.pc_cpu import PcCpu
from emulator.board.visible_register import VisibleRegister
from emulator.x86_64_system import SegmentField, SegmentRegister, SystemRegister, segment

Register = VisibleRegister[PcCpu]

RIP, RFLAGS, FS_BASE, GS_BASE, MXCSR, FPCW, FPSW, FPTAG = range(16, 24)  # Core.read_register
GENERAL = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "rip")
SEGMENTS = ("cs", "ss", "ds", "es", "fs", "gs")
VECTORS, VECTOR_BYTES = 16, 16
STACK_REGISTERS = 8  # of the x87
# What the last x87 instruction was and accessed: not modelled
LAST_X87 = ("fiseg", "fioff", "foseg", "fooff", "fop")


def _general(number: int, name: str, bits: int = 64) -> Register:
    mask = (1 << bits) - 1

    def write(cpu: PcCpu, value: int) -> None:
        cpu.core.write_register(number, value & mask)

    return Register(name, bits, lambda cpu: cpu.core.read_register(number) & mask, write)


def _in_core(number: int, cpu: PcCpu) -> int:
    return cpu.core.read_kernel_register(number)


def _selector(name: str) -> Register:
    number = segment(SegmentRegister[name.upper()], SegmentField.SELECTOR)
    return Register(name, 32, partial(_in_core, number), None)


def _x87(number: int) -> Register:
    """ST(n): counted from the stack's top, which FPSW says."""

    def physical(cpu: PcCpu) -> int:
        return (cpu.core.read_register(FPSW) >> 11) + number & 7

    def read(cpu: PcCpu) -> int:
        return int.from_bytes(cpu.core.read_x87(physical(cpu)), "little")

    def write(cpu: PcCpu, value: int) -> None:
        cpu.core.write_x87(physical(cpu), value.to_bytes(10, "little"))

    return Register(f"st{number}", 80, read, write)


def _vector(number: int) -> Register:
    def write(cpu: PcCpu, value: int) -> None:
        cpu.core.write_vector(number, value.to_bytes(VECTOR_BYTES, "little"))

    return Register(
        f"xmm{number}", 8 * VECTOR_BYTES, lambda cpu: int.from_bytes(cpu.core.read_vector(number), "little"), write
    )


CORE = [
    *(_general(number, name) for number, name in enumerate(GENERAL)),
    _general(RFLAGS, "eflags", 32),
    *map(_selector, SEGMENTS),
    *map(_x87, range(STACK_REGISTERS)),
    _general(FPCW, "fctrl", 32),
    _general(FPSW, "fstat", 32),
    _general(FPTAG, "ftag", 32),
    *(Register(name, 32, lambda cpu: None, None) for name in LAST_X87),
]
SSE = [*map(_vector, range(VECTORS)), _general(MXCSR, "mxcsr", 32)]
BASES = [_general(FS_BASE, "fs_base"), _general(GS_BASE, "gs_base")]
SYSTEM = [
    Register("k_gs_base", 64, partial(_in_core, SystemRegister.KERNEL_GS_BASE), None),
    *(Register(name.lower(), 64, partial(_in_core, SystemRegister[name]), None)
      for name in ("CR0", "CR2", "CR3", "CR4", "CR8", "EFER")),
]  # fmt: skip
