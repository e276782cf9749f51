"""An independent account of a run: Unicorn's own CODE hook, with nothing of ours around it.

Knows just enough of Linux for the freestanding guest programs: write(2), which succeeds, and exit.
"""

from __future__ import annotations

import struct
from pathlib import Path

import unicorn
from elftools.elf.elffile import ELFFile
from unicorn import arm64_const, x86_const

PAGE = 4096
STACK, STACK_SIZE = 0x7FFF_0000_0000, 1 << 20
WRITE = {"aarch64": 64, "x86_64": 1}
SYSCALL_REGISTERS = {  # number, third argument, result
    "aarch64": (arm64_const.UC_ARM64_REG_X8, arm64_const.UC_ARM64_REG_X2, arm64_const.UC_ARM64_REG_X0),
    "x86_64": (x86_const.UC_X86_REG_RAX, x86_const.UC_X86_REG_RDX, x86_const.UC_X86_REG_RAX),
}
REPEAT_PREFIXES = (0xF2, 0xF3)
STRING_OPCODES = frozenset({0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF})


def make_engine(isa: str, stack_pointer: int) -> unicorn.Uc:
    """A bare engine; the caller maps memory, the stack's included."""
    if isa == "aarch64":
        engine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        engine.reg_write(arm64_const.UC_ARM64_REG_SP, stack_pointer)
    else:
        engine = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        engine.reg_write(x86_const.UC_X86_REG_RSP, stack_pointer)
    return engine


def retired_addresses(isa: str, path: Path) -> list[int]:
    """The address of every instruction of a static ELF file's run that retires, in order."""
    engine, entry = load(isa, path)
    return run(engine, isa, entry)


def load(isa: str, path: Path, arguments: tuple[str, ...] = ()) -> tuple[unicorn.Uc, int]:
    """An engine with a static ELF file and its stack, and the file's entry point."""
    stack_pointer = STACK + STACK_SIZE - PAGE
    engine = make_engine(isa, stack_pointer)
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        entry = elf["e_entry"]
        for segment in elf.iter_segments("PT_LOAD"):
            start = segment["p_vaddr"] & -PAGE
            end = -(-(segment["p_vaddr"] + segment["p_memsz"]) // PAGE) * PAGE
            engine.mem_map(start, end - start)
            engine.mem_write(segment["p_vaddr"], segment.data())
    engine.mem_map(STACK, STACK_SIZE)
    engine.mem_write(stack_pointer, stack_contents(stack_pointer, [path.name, *arguments]))
    return engine, entry


def stack_contents(stack_pointer: int, arguments: list[str]) -> bytes:
    """What a program finds on its stack: argc, argv, no environment, and the strings behind them."""
    strings = b""
    pointers = []
    behind = stack_pointer + 8 * (len(arguments) + 3)
    for argument in arguments:
        pointers.append(behind + len(strings))
        strings += argument.encode() + b"\0"
    return struct.pack(f"<{len(arguments) + 3}Q", len(arguments), *pointers, 0, 0) + strings


def run(engine: unicorn.Uc, isa: str, entry: int) -> list[int]:
    """Run to the first system call but write; what retired. A repeated string instruction retires once."""
    addresses: list[int] = []
    repeats: dict[int, bool] = {}

    def is_repeat(address: int, size: int) -> bool:
        if address not in repeats:
            *prefixes, opcode = engine.mem_read(address, size)
            repeats[address] = opcode in STRING_OPCODES and any(byte in REPEAT_PREFIXES for byte in prefixes)
        return repeats[address]

    def on_code(_engine: unicorn.Uc, address: int, size: int, _data: object) -> None:
        if not (addresses and addresses[-1] == address and isa == "x86_64" and is_repeat(address, size)):
            addresses.append(address)

    def on_syscall(_engine: unicorn.Uc, *_arguments: object) -> None:
        number, size, result = SYSCALL_REGISTERS[isa]
        if engine.reg_read(number) == WRITE[isa]:
            engine.reg_write(result, engine.reg_read(size))
        else:
            engine.emu_stop()

    engine.hook_add(unicorn.UC_HOOK_CODE, on_code)
    if isa == "aarch64":
        engine.hook_add(unicorn.UC_HOOK_INTR, on_syscall)
    else:
        engine.hook_add(unicorn.UC_HOOK_INSN, on_syscall, aux1=x86_const.UC_X86_INS_SYSCALL)
    engine.emu_start(entry, 0)
    return addresses
