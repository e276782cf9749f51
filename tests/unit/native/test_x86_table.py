"""The table of x86-64's instructions, against capstone: lengths and accesses, and where capstone is wrong."""

from __future__ import annotations

import random

import capstone
import pytest

from emulator._native import decode, timed_decode
from emulator.probes import Probe
from native.bare import CODE
from native.test_x86_accesses import ISA, UNDEFINED, disassembler, instructions

CONDITIONAL = ["jo", "jno", "jb", "jae", "je", "jne", "jbe", "ja", "js", "jns", "jp", "jnp", "jl", "jge", "jle", "jg"]
LOAD, STORE = 1 << Probe.LOAD, 1 << Probe.STORE
PREFIXES = (b"", b"\x66", b"\x48", b"\x66\x48", b"\x67", b"\x41", b"\x4f", b"\xf3", b"\xf2", b"\xf0", b"\x64")


def test_forms_are_as_long_as_capstone_says() -> None:
    """But for near jumps and returns behind 66: the engine reads displacements of 16 bits, as AMD's processors do."""
    rng = random.Random("x86 table")
    tried = 0
    for code, name in instructions(rng):
        if b"\x66" in code[:2] and name[0] in "jcr" and name[:4] in (*CONDITIONAL, "jmp", "call", "ret"):
            continue
        offset, length, _, _, trap = decode(ISA, CODE, code)[0]
        assert trap == UNDEFINED or (offset, length) == (0, len(code)), (code.hex(), name)
        tried += 1
    assert tried > 5000


def directions(insn: capstone.CsInsn) -> int:
    """What capstone says of memory operands: of plain general instructions it is right."""
    access = 0
    for operand in insn.operands:
        if operand.type == capstone.x86.X86_OP_MEM:
            access |= operand.access
    return (LOAD if access & capstone.CS_AC_READ else 0) | (STORE if access & capstone.CS_AC_WRITE else 0)


@pytest.mark.parametrize("prefix", PREFIXES, ids=bytes.hex)
def test_arithmetic_accesses_what_capstone_says(prefix: bytes) -> None:
    disassembler.detail = True
    tail = bytes.fromhex("102030405060708090")
    tried = 0
    for opcode in (*range(0x38), *range(0x80, 0x82), 0x83, *range(0x88, 0x8C), *range(0xC0, 0xC2), 0xD0, 0xD3, 0xFE):
        if opcode & 7 > 5 and opcode < 0x80:
            continue
        for modrm in (0x01, 0x42, 0x84, 0x3C, 0x11, 0xC8, 0xE1):
            code = prefix + bytes([opcode, modrm]) + tail
            insn = next(disassembler.disasm(code, CODE, 1), None)
            _, length, probes, _, trap = decode(ISA, CODE, code)[0]
            if insn is None or trap == UNDEFINED or insn.mnemonic in ("cmp", "rol", "ror", "rcl", "rcr"):
                continue
            assert length == insn.size, code.hex()
            assert probes & (LOAD | STORE) == directions(insn), (code.hex(), insn.mnemonic)
            tried += 1
    assert tried > (100 if prefix != b"\xf0" else 20)


@pytest.mark.parametrize(
    "code",
    [
        "660f3a0fda0f",
        "660f3804eb",
        "66410f380bc7",
        "660f381dd1",
        "660fc44e2200",
        "660fc5f800",
        "f20f2dc0",
        "f2480f2ac2",
    ],
)
def test_instructions_that_capstone_has_in_no_group_are_of_vectors(code: str) -> None:
    probes = decode(ISA, CODE, bytes.fromhex(code))[0][2]
    assert probes >> Probe.SIMD_OP & 1
    assert not probes >> Probe.INT_OP & 1


@pytest.mark.parametrize("code", ["c7f800000000", "c6f8ff", "0f01d5", "660f16e0"])
def test_what_the_cpu_does_not_offer_is_undefined(code: str) -> None:
    """XBEGIN, XABORT, which the engine takes for MOV, XEND, and MOVHPD between registers."""
    assert decode(ISA, CODE, bytes.fromhex(code))[0][4] == UNDEFINED


def test_a_call_stores_eight_bytes_with_any_prefix() -> None:
    """66 66 48 E8 is what compilers write before __tls_get_addr."""
    assert timed_decode(ISA, CODE, bytes.fromhex("666648e800000000"))[0]["width_bytes"] == 8


def test_a_scale_without_an_index_makes_no_complex_address() -> None:
    """mov eax, [rdi + riz * 8 + 5]"""
    assert "complex_address" not in timed_decode(ISA, CODE, bytes.fromhex("8b44e705"))[0]["flags"]
