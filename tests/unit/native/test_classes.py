"""What the core says each instruction does, against capstone's mnemonics (AArch64) and hand-picked forms (x86-64)."""

from __future__ import annotations

from pathlib import Path

import capstone
import pytest
from elftools.elf.elffile import ELFFile

import require
from emulator._native import decode
from emulator.aarch64_features import LATER_NAMES
from emulator.probes import Probe
from tests.unit.native.bare import assemble

READ_MODIFY_WRITE = ("ldadd", "ldclr", "ldeor", "ldset", "ldsmax", "ldsmin", "ldumax", "ldumin", "swp", "cas")
MEMORY_TAGGING = ("ldg", "stg", "stzg", "st2g", "stz2g", "stgp")  # FEAT_MTE, which the modelled core lacks
PREDICATES = ("eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord")
CONDITIONAL = ("b.", "cbz", "cbnz", "tbz", "tbnz")


def accesses(mnemonic: str, operands: str) -> set[Probe]:
    """What the mnemonic says: loads are LD*, stores ST*, atomics both."""
    if mnemonic.startswith(READ_MODIFY_WRITE):
        return {Probe.LOAD, Probe.STORE}
    if mnemonic.startswith("ld"):
        return {Probe.LOAD}
    if mnemonic.startswith("st") or (mnemonic == "dc" and operands.startswith("zva")):
        return {Probe.STORE}
    return set()


def branches(mnemonic: str) -> set[Probe]:
    if mnemonic.startswith(CONDITIONAL):
        return {Probe.BR_RETIRED, Probe.BR_COND, Probe.BR_IMMED}
    kinds = {
        "b": {Probe.BR_IMMED},
        "bl": {Probe.BR_IMMED, Probe.BR_CALL},
        "br": {Probe.BR_INDIRECT},
        "blr": {Probe.BR_INDIRECT, Probe.BR_CALL},
        "ret": {Probe.BR_RETURN},
    }
    return {Probe.BR_RETIRED, Probe.BR_TAKEN, *kinds[mnemonic]} if mnemonic in kinds else set()


WATCHED = {
    Probe.LOAD,
    Probe.STORE,
    Probe.BR_RETIRED,
    Probe.BR_COND,
    Probe.BR_IMMED,
    Probe.BR_INDIRECT,
    Probe.BR_CALL,
    Probe.BR_RETURN,
    Probe.BR_TAKEN,
}


@pytest.mark.parametrize("library", ["lib/aarch64-linux-gnu/libc.so.6", "lib/aarch64-linux-gnu/libm.so.6"])
def test_aarch64_instructions_are_what_their_mnemonics_say(library: str) -> None:
    path = require.debian_arm64("libc6") / library
    with path.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".text")
        address, code = section["sh_addr"], section.data()
    disassembler = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    disassembler.skipdata = True
    ops = decode("aarch64", address, code, LATER_NAMES)
    wrong = set()
    compared = 0
    for at, size, mnemonic, operands in disassembler.disasm_lite(code, address):
        if size != 4 or mnemonic.startswith(".") or "{z" in operands:  # data; SVE, which the modelled core lacks
            continue
        probes = {probe for probe in WATCHED if ops[(at - address) // 4][2] >> probe & 1}
        compared += 1
        if probes != accesses(mnemonic, operands) | branches(mnemonic):
            wrong.add(f"{mnemonic} {operands}: {sorted(probe.name for probe in probes)}")
    assert compared > 10_000
    memory_tagging = {text for text in wrong if text.split()[0] in MEMORY_TAGGING}
    assert sorted(wrong - memory_tagging) == []


@pytest.mark.parametrize(
    ("form", "loads", "stores"),
    [
        ("movq %xmm1, (%rax)", 0, 1),
        ("movq (%rax), %xmm1", 1, 0),
        ("movhps %xmm1, (%rax)", 0, 1),
        ("movdqu %xmm1, (%rax)", 0, 1),
        ("pextrd $1, %xmm1, (%rax)", 0, 1),
        ("movnti %ecx, (%rax)", 0, 1),
        ("setae (%rax)", 0, 1),
        ("setg (%rax)", 0, 1),
        ("rolb $2, (%rax)", 1, 1),
        ("rcrq %cl, (%rax)", 1, 1),
        ("sarl (%rax)", 1, 1),
        ("shld $3, %ecx, (%rax)", 1, 1),
        ("notq (%rax)", 1, 1),
        ("cmpxchg %ecx, (%rax)", 1, 1),
        ("bts %ecx, (%rax)", 1, 1),
        ("bt %ecx, (%rax)", 1, 0),
        ("popcnt (%rax), %ecx", 1, 0),
        ("crc32b (%rax), %ecx", 1, 0),
        ("cmove (%rax), %ecx", 1, 0),
        ("push (%rax)", 1, 1),
        ("pop (%rax)", 1, 1),
        ("call *(%rax)", 1, 1),
        ("call *%rax", 0, 1),
        ("jmp *(%rax)", 1, 0),
        ("ret", 1, 0),
        ("leave", 1, 0),
        ("lea (%rax), %rcx", 0, 0),
        ("nopl (%rax)", 0, 0),
        ("prefetcht0 (%rax)", 0, 0),
        ("xchg %ecx, (%rax)", 1, 1),
        ("xchg %ecx, %eax", 0, 0),
        ("xadd %ecx, %eax", 0, 0),
        ("bts %ecx, %eax", 0, 0),
        ("rol $3, %eax", 0, 0),
        ("setg %al", 0, 0),
        ("fldcw (%rax)", 1, 0),
        ("fnstcw (%rax)", 0, 1),
        ("fistpl (%rax)", 0, 1),
        ("fstpt (%rax)", 0, 1),
        ("fld %st(1)", 0, 0),
        ("fstp %st(1)", 0, 0),
        ("fadds (%rax)", 1, 0),
        ("fnstsw %ax", 0, 0),
        ("movsd %xmm0, (%rax)", 0, 1),
        ("movsd (%rax), %xmm0", 1, 0),
        ("movsl", 1, 1),
        ("cmpsd $1, (%rax), %xmm0", 1, 0),
        *(
            (f"cmp{predicate}{kind} (%rax), %xmm0", 1, 0)
            for predicate in PREDICATES
            for kind in ("ps", "pd", "ss", "sd")
        ),
        ("cmpsl", 1, 0),
        ("lodsl", 1, 0),
        ("stosl", 0, 1),
        ("scasb", 1, 0),
        ("imul (%rax), %ecx", 1, 0),
        ("mulx (%rax), %rcx, %rdx", 1, 0),
        ("andn (%rax), %rcx, %rdx", 1, 0),
    ],
)
def test_x86_instructions_access_memory_as_their_form_says(form: str, loads: int, stores: int, tmp_path: Path) -> None:
    ops = decode("x86_64", 0, assemble("x86_64", form, tmp_path))
    assert len(ops) == 1
    probes = ops[0][2]
    assert (probes >> Probe.LOAD & 1, probes >> Probe.STORE & 1) == (loads, stores)


def test_repeated_string_instructions_access_memory_only_with_their_iterations(tmp_path: Path) -> None:
    ((_, length, probes, iteration, _),) = decode("x86_64", 0, assemble("x86_64", "rep movsq", tmp_path))
    assert length == 3
    assert iteration == 1 << Probe.LOAD | 1 << Probe.STORE
    assert probes & iteration == 0
