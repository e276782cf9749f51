"""The instruction forms of x86-64 that the machine offers, found by walking the opcode maps.

Every opcode of the four maps, and of VEX's, is tried with the prefixes that tell instructions from each other, with and
without REX.W, with a register and with memory, and with each value of ModRM.reg where that is part of the opcode.
Capstone names what is there; what CPUID does not announce is left out. A form is a name and an opcode.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import capstone

from emulator.arch import cpuid
from tests.instructions.form import Encoding, Form

# runner/x86_64.c, enum kind
MEMORY, STACK, ALL_MEMORY, X87_MEMORY, TARGETS, WHOLE_IMAGE = (1 << bit for bit in range(6))
SECOND_WAY = 48  # of a slot: where branches go
ADDRESS = 0x2000_1000 + 0x1000  # the border of the two pages
TRIES = 4  # for each encoding that is wanted

PREFIXES = ("", "66", "f2", "f3", "f0", "66f0", "66f2", "66f3")
MAPS = ("", "0f", "0f38", "0f3a")
# Opcodes whose ModRM.reg tells instructions apart; of those in ANY_MODRM, the rest of a register's ModRM does, too.
GROUPS = {
    "": {0x80, 0x81, 0x83, 0x8C, 0x8E, 0x8F, 0xC0, 0xC1, 0xC6, 0xC7, *range(0xD0, 0xD4), 0xF6, 0xF7, 0xFE, 0xFF},
    "0f": {0x00, 0x0D, *range(0x18, 0x20), *range(0x20, 0x24), 0x71, 0x72, 0x73, 0xAE, 0xBA, 0xC7},
    "0f38": {0xF3}, "0f3a": set(),
}  # fmt: skip
ANY_MODRM = {"": set(range(0xD8, 0xE0)), "0f": {0x01}, "0f38": set(), "0f3a": set()}
REGISTER_IN_OPCODE = {"": {0x50, 0x58, 0x90, 0xB0, 0xB8}, "0f": {0xC8}, "0f38": set(), "0f3a": set()}
LEGACY_PREFIXES = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3, *range(0x40, 0x50)}
ESCAPES = {"": {0x0F, 0xC4, 0xC5, 0x62, *LEGACY_PREFIXES}, "0f": {0x38, 0x3A, 0x0F}, "0f38": set(), "0f3a": set()}
VEX_MAPS = {"0f": 1, "0f38": 2, "0f3a": 3}
VEX_SOURCE = 2  # RDX

# What capstone's groups, and instructions that are in none, need of CPUID.
FEATURE_OF_GROUP = {
    "sse1": "sse", "sse2": "sse2", "sse3": "pni", "ssse3": "ssse3", "sse41": "sse4_1", "sse42": "sse4_2",
    "mmx": "mmx", "aes": "aes", "pclmul": "pclmulqdq", "bmi": "bmi1", "bmi2": "bmi2", "fsgsbase": "fsgsbase",
    "cmov": "cmov", "fpu": "fpu",
    **{name: name for name in ("3dnow", "adx", "avx", "avx2", "avx512", "fma", "fma4", "hle", "rtm", "sha", "smap",
                               "sse4a", "tbm", "vm", "xop", "sgx", "f16c", "dqi", "cdi", "eri", "pfi", "vlx", "bwi")},
}  # fmt: skip
FEATURE_OF_MNEMONIC = {
    "popcnt": "popcnt", "lzcnt": "abm", "movbe": "movbe", "cmpxchg16b": "cx16", "lahf": "lahf_lm", "sahf": "lahf_lm",
    "rdrand": "rdrand", "rdseed": "rdseed", "clflushopt": "clflushopt", "clwb": "clwb", "pcommit": "pcommit",
    "prefetchwt1": "prefetchwt1", "rdpid": "rdpid", "invpcid": "invpcid", "clzero": "clzero", "monitorx": "mwaitx",
    "mwaitx": "mwaitx", "monitor": "monitor", "mwait": "monitor", "wbnoinvd": "wbnoinvd", "rdpru": "rdpru",
    "xgetbv": "xsave", "xsetbv": "xsave", "encls": "sgx", "enclu": "sgx", "enclv": "sgx", "getsec": "smx",
    "rdpkru": "pku", "wrpkru": "pku", "xstore": "padlock", "montmul": "padlock", "xsha1": "padlock",
    "xsha256": "padlock", "skinit": "svm", "stgi": "svm", "clgi": "svm", "vmrun": "svm", "vmload": "svm",
    "vmsave": "svm", "stac": "smap", "clac": "smap", "pconfig": "pconfig",
    "invlpga": "svm", "vmmcall": "svm", "femms": "3dnow", "crc32": "sse4_2",
}  # fmt: skip
UNOFFERED_STARTS = ("xsave", "xrstor", "xcrypt", "vm", "inve", "invv", "incss", "rdssp", "rstorss", "savep", "setss",
                    "wruss", "wrss", "clrss", "bnd", "endbr", "tpause", "umon", "umwait", "ptwrite", "cldemote",
                    "movdir", "gf2p8", "xabort", "xbegin", "xend", "xtest", "llwpcb", "slwpcb", "lwp")  # fmt: skip

# What does nothing, or what it did before, where its extension is not there: encodings of NOP, of PREFETCH, of WBINVD.
HINTS = ("endbr", "rdssp", "cldemote", "prefetch", "wbnoinvd", "bnd")

NOT_COMPARED = {
    "a system call or a call gate": {"syscall", "sysenter", "sysexit", "sysexitq", "sysret", "sysretq"},
    "reads the time, or what the model is": {"rdtsc", "rdtscp", "cpuid", "rdpmc"},
    "may reach 32-bit code, which is not modelled": {"lcall", "ljmp", "retf", "retfq", "iret", "iretd", "iretq"},
    "Linux's kernel emulates it where the processor has UMIP": {"sgdt", "sidt", "sldt", "smsw", "str"},
    "answers from the kernel's descriptor tables": {"lar", "lsl", "verr", "verw"},
}
_SKIPPED = {mnemonic for mnemonics in NOT_COMPARED.values() for mnemonic in mnemonics}

_STACK = ("push", "pop", "call", "ret", "leave", "enter")
_TARGETS = ("call", "jmp", "ret")
_STRINGS = tuple(name + size for name in ("movs", "stos", "lods", "cmps", "scas") for size in "bwdq")
_WRITES_FAR = ("bt", "fxsave", "fnsave", "fnstenv", "enter", "maskmov")
_IMPLIED_MEMORY = ("xlatb", "maskmov", *_STRINGS)


@dataclass(frozen=True, slots=True)
class Opcode:
    """Where in the opcode maps: bytes in hex. `vex`: pp and W are in a VEX prefix."""

    prefix: str
    wide: bool
    map: str
    byte: int
    vex: bool = False

    def assembled(self, modrm: bytes, tail: bytes, extension: int = 0, leading: bytes = b"") -> bytes:
        """`extension`: REX's R and B. `leading`: prefixes before all others."""
        if self.vex:
            pp = ("", "66", "f3", "f2").index(self.prefix)
            inverted = (~extension & 4) << 5 | 0x40 | (~extension & 1) << 5
            head = bytes([0xC4, inverted | VEX_MAPS[self.map], self.wide << 7 | (~VEX_SOURCE & 15) << 3 | pp])
            return leading + head + bytes([self.byte]) + modrm + tail
        rex = extension | self.wide << 3
        head = leading + bytes.fromhex(self.prefix) + (bytes([0x40 | rex]) if rex else b"")
        return head + bytes.fromhex(self.map) + bytes([self.byte]) + modrm + tail

    @property
    def name(self) -> str:
        return ("vex " if self.vex else "") + f"{self.map}{self.byte:02x}"


def opcodes() -> Iterator[Opcode]:
    for map_, wide, prefix in product(MAPS, (False, True), PREFIXES):
        for byte in range(256):
            if byte not in ESCAPES[map_]:
                yield Opcode(prefix, wide, map_, byte)
    for map_, wide, prefix in product(VEX_MAPS, (False, True), ("", "66", "f3", "f2")):
        yield from (Opcode(prefix, wide, map_, byte, True) for byte in range(256))


class Disassembler:
    def __init__(self) -> None:
        self._capstone = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._capstone.detail = True

    def __call__(self, code: bytes) -> capstone.CsInsn | None:
        return next(self._capstone.disasm(code, 0, 1), None)


def _operand(insn: capstone.CsInsn, operand: capstone.x86.X86Op) -> str:
    if operand.type == capstone.x86.X86_OP_MEM:
        return f"m{8 * operand.size}"
    if operand.type == capstone.x86.X86_OP_IMM:
        return "rel" if "branch_relative" in _groups(insn) else f"imm{8 * insn.imm_size or ''}"
    name = insn.reg_name(operand.reg)
    for start, kind in (("xmm", "xmm"), ("mm", "mm"), ("st", "st"), ("cr", "cr"), ("dr", "dr")):
        if name.startswith(start):
            return kind
    if name in ("cs", "ds", "es", "fs", "gs", "ss"):
        return "sreg"
    return f"r{8 * operand.size}"


# CMPPS and its kin, whose immediate is part of capstone's name
_COMPARES = re.compile("cmp(eq|lt|le|unord|neq|nlt|nle|ord|)(ps|pd|ss|sd)")


def _groups(insn: capstone.CsInsn) -> set[str]:
    return {insn.group_name(group) for group in insn.groups}


def name_of(insn: capstone.CsInsn) -> str:
    operands = ", ".join(_operand(insn, operand) for operand in insn.operands)
    if (compared := _COMPARES.fullmatch(insn.mnemonic)) and operands.startswith("xmm"):
        return f"cmp{compared[2]} {operands.removesuffix(', imm8')}, imm8"
    return f"{insn.mnemonic} {operands}".strip()


def plain(mnemonic: str) -> str:
    """Without "lock" and "rep"."""
    return mnemonic.rsplit(" ", 1)[-1]


OFFERED = {
    *cpuid.FEATURES_1_EDX, *cpuid.FEATURES_1_ECX, *cpuid.FEATURES_7_EBX, *cpuid.FEATURES_EXTENDED_ECX,
    *cpuid.FEATURES_EXTENDED_EDX,
}  # fmt: skip


def offered(insn: capstone.CsInsn) -> bool:
    mnemonic = plain(insn.mnemonic)
    groups = _groups(insn)
    needs = {feature for group, feature in FEATURE_OF_GROUP.items() if group in groups}
    if mnemonic in FEATURE_OF_MNEMONIC:
        needs.add(FEATURE_OF_MNEMONIC[mnemonic])
    if mnemonic.startswith("v") and not mnemonic.startswith(("verr", "verw")):
        needs.add("avx")
    return needs <= OFFERED and not mnemonic.startswith(UNOFFERED_STARTS)


def _kind(insn: capstone.CsInsn) -> int:
    mnemonic = plain(insn.mnemonic)
    memory = any(operand.type == capstone.x86.X86_OP_MEM for operand in insn.operands)
    kind = 0
    if memory or mnemonic.startswith(_IMPLIED_MEMORY):
        kind |= MEMORY
    if mnemonic.startswith(_STACK):
        kind |= STACK
    if mnemonic.startswith(_TARGETS):
        kind |= TARGETS
    if kind & MEMORY and (insn.mnemonic.startswith("rep") or mnemonic.startswith(_WRITES_FAR)):
        kind |= ALL_MEMORY
    if memory and mnemonic.startswith("f") and not mnemonic.startswith("fx"):
        kind |= X87_MEMORY
    if mnemonic.startswith("fxrstor"):
        kind |= WHOLE_IMAGE | ALL_MEMORY
    return kind


_MEMORY_MODRM, _REGISTER_MODRM = 0x03, 0xC1  # [rbx]; the second register


def _modrms(opcode: Opcode) -> list[int]:
    if opcode.byte in ANY_MODRM[opcode.map] and not opcode.vex:
        return [reg << 3 | _MEMORY_MODRM for reg in range(8)] + list(range(0xC0, 0x100))
    if opcode.byte in GROUPS[opcode.map]:
        return [reg << 3 | base for base in (_MEMORY_MODRM, _REGISTER_MODRM) for reg in range(8)]
    return [2 << 3 | _MEMORY_MODRM, 2 << 3 | _REGISTER_MODRM]


@dataclass(slots=True)
class _Found:
    opcode: Opcode
    modrm: int  # -1: none
    memory: bool
    kind: int


def _walk(disassemble: Disassembler) -> Iterator[tuple[str, capstone.CsInsn, _Found]]:
    """(name, instruction, where), some of them several times."""
    for opcode in opcodes():
        for modrm in _modrms(opcode):
            insn = disassemble(opcode.assembled(bytes([modrm]), bytes(9)))
            if insn is None or plain(insn.mnemonic) in _SKIPPED or _far(opcode, modrm):
                continue
            name = name_of(insn)
            if _ignores_prefix(insn, opcode):
                continue
            has_modrm = insn.modrm_offset > 0
            yield name, insn, _Found(opcode, modrm if has_modrm else -1, modrm < 0xC0, _kind(insn))
            if not has_modrm:
                break


def _far(opcode: Opcode, modrm: int) -> bool:
    """CALL and JMP through a far pointer, which capstone does not always call so."""
    return (opcode.map, opcode.byte) == ("", 0xFF) and modrm >> 3 & 7 in (3, 5)


_OF_BOTH_PREFIXES = ("popcnt", "lzcnt", "tzcnt", "crc32")  # 66 is the operand's size there, behind a mandatory one


def _ignores_prefix(insn: capstone.CsInsn, opcode: Opcode) -> bool:
    """The prefix does not make it another instruction, or capstone is wrong about which."""
    mnemonic = plain(insn.mnemonic)
    if opcode.vex or not opcode.prefix:
        return False
    if mnemonic.startswith(_TARGETS) or "jump" in _groups(insn):
        return True  # vendors differ in what 66 means; F2 and F3 are hints
    if opcode.prefix in ("66f2", "66f3") and opcode.map:
        return mnemonic not in _OF_BOTH_PREFIXES
    if opcode.prefix.endswith("f0"):
        return not insn.mnemonic.startswith("lock")
    return opcode.prefix != "66" and opcode.map == "" and not insn.mnemonic.startswith(("rep", "pause"))


def forms(encodings: int) -> list[Form]:
    """Those that the machine offers, with at most so many encodings each."""
    return _forms(encodings, offered)


def others(encodings: int) -> list[Form]:
    """Those of extensions that it does not offer, and that are undefined for it."""
    return _forms(encodings, lambda insn: not offered(insn) and not plain(insn.mnemonic).startswith(HINTS))


def _forms(encodings: int, wanted: Callable[[capstone.CsInsn], bool]) -> list[Form]:
    disassemble = Disassembler()
    found: dict[tuple[str, str], list[_Found]] = {}
    for name, insn, where in _walk(disassemble):
        if wanted(insn):
            opcode = where.opcode
            base = opcode.byte & ~7
            byte = base if base in REGISTER_IN_OPCODE[opcode.map] else opcode.byte
            key = name, Opcode("", False, opcode.map, byte, opcode.vex).name
            found.setdefault(key, []).append(where)
    times = Counter(name for name, _ in found)
    result = []
    for (name, opcode_name), places in found.items():
        if chosen := _encodings(disassemble, name, places, encodings):
            result.append(Form(f"{name} ({opcode_name})" if times[name] > 1 else name, chosen))
    return sorted(result, key=lambda form: form.name)


def _encodings(disassemble: Disassembler, name: str, places: list[_Found], wanted: int) -> tuple[Encoding, ...]:
    generator = random.Random(name)
    order = generator.sample(places, len(places))
    chosen: dict[bytes, Encoding] = {}
    for attempt in range(TRIES * max(wanted, len(places))):
        where = order[attempt % len(order)]
        code = _varied(generator, where)
        insn = disassemble(code)
        if insn is None or name_of(insn) != name:
            continue
        code = bytes(insn.bytes)
        if "branch_relative" in _groups(insn):
            size = insn.imm_size
            code = code[:-size] + (SECOND_WAY - len(code)).to_bytes(size, "little")
        if plain(insn.mnemonic) == "int" and code[-1] == 0x80:
            continue  # a system call
        chosen[code] = Encoding(code, where.kind)
        if len(chosen) == wanted:
            break
    return tuple(chosen.values())


_DISPLACEMENTS = (0, 8, 0x10, 0x20, 0xF0, 0xFF, 1)
_LEADING = (b"\x67", b"\x64", b"\x65")


def _varied(generator: random.Random, where: _Found) -> bytes:
    """The instruction with other registers and immediates; it may have become another one."""
    tail = bytes(generator.choice((generator.randrange(256), generator.randrange(64))) for _ in range(10))
    leading = generator.choice(_LEADING) if generator.random() < 0.1 else b""
    if where.modrm < 0:
        byte = where.opcode.byte
        if where.opcode.map == "" and 0xA0 <= byte <= 0xA3:
            tail = (ADDRESS + generator.randrange(-16, 16)).to_bytes(8, "little")
            leading = b""
        extension = generator.choice((0, 1)) if byte & ~7 in REGISTER_IN_OPCODE[where.opcode.map] else 0
        return where.opcode.assembled(b"", tail, extension, leading)
    group = where.opcode.byte in GROUPS[where.opcode.map] | ANY_MODRM[where.opcode.map]
    reg = where.modrm >> 3 & 7 if group else generator.randrange(8)
    extension = generator.choice((0, 4)) if not group else 0
    if where.memory:
        if generator.random() < 0.3:
            modrm = bytes([0x40 | reg << 3 | 3, generator.choice(_DISPLACEMENTS)])
        else:
            modrm = bytes([reg << 3 | 3])
        return where.opcode.assembled(modrm, tail, extension, leading)
    rm = where.modrm & 7 if where.opcode.byte in ANY_MODRM[where.opcode.map] else generator.randrange(8)
    if where.opcode.byte not in ANY_MODRM[where.opcode.map]:
        extension |= generator.choice((0, 1))
    return where.opcode.assembled(bytes([0xC0 | reg << 3 | rm]), tail, extension)
