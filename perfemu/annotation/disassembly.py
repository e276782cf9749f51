"""disassembly: a function's bytes as instructions, by capstone; what is none becomes a line of data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import capstone

from emulator.linux.process.elf import EM_AARCH64, EM_X86_64
from perfemu.errors import UsageError

_MACHINES = {
    EM_X86_64: (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    EM_AARCH64: (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
}
SYNTAXES = {"att": capstone.CS_OPT_SYNTAX_ATT, "intel": capstone.CS_OPT_SYNTAX_INTEL}
_TARGET = re.compile(r"(?P<before>^|.*[, ])#?0x(?P<address>[0-9a-f]+)$")
_BRANCHES = re.compile(r"j|call|b$|bl$|b\.|cb|tb|adr|loop|xbegin")
_MOST_BYTES = 8 << 20


class Instruction(NamedTuple):
    """`address` is in the file's own numbering."""

    address: int
    size: int
    text: str


def instructions(
    code: bytes, address: int, machine: int, name_of: Callable[[int], str], syntax: str = "att"
) -> Iterator[Instruction]:
    """Of `code` that begins at `address`. `name_of` gives ``name+0x12`` of an address, or nothing."""
    if machine not in _MACHINES:
        raise UsageError(f"annotate: code for ELF machine {machine} is not modelled: AArch64 and x86-64 are")
    engine = capstone.Cs(*_MACHINES[machine])
    engine.skipdata = True  # literal pools, and what capstone does not know
    if machine == EM_X86_64:
        engine.syntax = SYNTAXES[syntax]
    for at, size, mnemonic, operands in engine.disasm_lite(code[:_MOST_BYTES], address):
        yield Instruction(at, size, _text(mnemonic, operands, name_of))


def _text(mnemonic: str, operands: str, name_of: Callable[[int], str]) -> str:
    found = _TARGET.match(operands) if _BRANCHES.match(mnemonic) else None
    if found:
        target = int(found["address"], 16)
        name = name_of(target)
        operands = f"{found['before']}{target:x}{f' <{name}>' if name else ''}"
    return f"{mnemonic:<6} {operands}" if operands else mnemonic
