"""Every form of every x86-64 instruction accesses memory as its slice says, and so do registers and flags change.

Each form runs once with random registers, under an AddressTracer and under Unicorn's MEM hooks. Behind it, further
instructions access memory at addresses made from all registers or all conditions: what a slice believes to know of them
is held against what the engine has.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator
from contextlib import suppress

import capstone
import pytest
import unicorn
from unicorn import x86_const

import access_hook
from emulator._native import PAGE_SIZE, decode
from emulator.cpu import TrapKind
from native import traced
from native.bare import CODE, DATA, DATA_PAGES, EXECUTE, READ

ISA = "x86_64"
RCX = 1  # as instructions number it
RIP, RFLAGS, FS_BASE, GS_BASE = 16, 17, 18, 19  # the core's numbers
GENERAL = [
    *(getattr(x86_const, f"UC_X86_REG_{name}") for name in ("RAX", "RBX", "RCX", "RDX", "RSI", "RDI", "RBP", "RSP")),
    *(getattr(x86_const, f"UC_X86_REG_R{number}") for number in range(8, 16)),
]
SLOT = 512  # bytes of code for each form
SLOTS = 64
LOW_PAGES = 16  # at address 0, for small addresses
FLAGS = 0x8D5  # CF PF AF ZF SF OF
SYSCALL = b"\x0f\x05"

MAPS = {b"": range(256), b"\x0f": range(256), b"\x0f\x38": range(256), b"\x0f\x3a": range(256)}
PREFIXES = [b"", b"\x66", b"\xf2", b"\xf3", b"\x48", b"\x66\x48", b"\xf3\x48", b"\xf2\x48"]
MORE_PREFIXES = [b"\x67", b"\x64", b"\x65\x67", b"\x41", b"\x4f", b"\x40", b"\xf0", b"\xf0\x48"]
NOT_OPCODES = {0x0F, 0x26, 0x2E, 0x36, 0x3E, *range(0x40, 0x50), *range(0x62, 0x68), 0xC4, 0xC5, 0xF0, 0xF2, 0xF3}
# Not for user programs, or not to be run alone: the machine answers these, or they trap.
EXCLUDED = {
    b"": {*range(0x6C, 0x70), *range(0xCA, 0xD0), *range(0xE4, 0xE8), *range(0xEC, 0xF0), 0x8E, 0x9D, 0xF1, 0xF4, 0xFA,
          0xFB},
    b"\x0f": {0x00, 0x01, 0x05, 0x06, 0x07, 0x08, 0x09, *range(0x20, 0x24), *range(0x30, 0x38), 0x78, 0x79, 0xA1, 0xA2,
              0xA9, 0xB2, 0xB4, 0xB5},
}  # fmt: skip
BIT_TESTS = {0xA3, 0xAB, 0xB3, 0xBB, 0xBA}  # locked, these abort the engine where nothing guards it
UNDEFINED = len(TrapKind)  # emulator/native/ops/op.hpp: Trap, behind those that the machine answers
RANDOM = ("rdrand", "rdseed")

# Which bytes these access depends on values, or they leave some out: their sites cover all that they may access. Each
# with [rdi]: (offset, bytes, whether it is a store). XSAVE also updates the word behind the legacy area.
WHOLES = {
    "fldenv": ("d927", [(0, 28, 0)]),
    "fnstenv": ("d937", [(0, 28, 1)]),
    "frstor": ("dd27", [(0, 108, 0)]),
    "fnsave": ("dd37", [(0, 108, 1)]),
    "fbld": ("df27", [(0, 10, 0)]),
    "fbstp": ("df37", [(0, 10, 1)]),
    "maskmovq": ("0ff7c1", [(0, 8, 1)]),
    "maskmovdqu": ("660ff7c1", [(0, 16, 1)]),
    "fxsave": ("0fae07", [(0, 512, 1)]),
    "fxsave64": ("480fae07", [(0, 512, 1)]),
    "fxrstor": ("0fae0f", [(0, 512, 0)]),
    "fxrstor64": ("480fae0f", [(0, 512, 0)]),
    "xsave": ("0fae27", [(0, 512, 1), (512, 8, 0), (512, 8, 1)]),
    "xsave64": ("480fae27", [(0, 512, 1), (512, 8, 0), (512, 8, 1)]),
    "xsaveopt": ("0fae37", [(0, 512, 1), (512, 8, 0), (512, 8, 1)]),
    "xsaveopt64": ("480fae37", [(0, 512, 1), (512, 8, 0), (512, 8, 1)]),
    "xrstor": ("0fae2f", [(512, 24, 0), (0, 512, 0)]),
    "xrstor64": ("480fae2f", [(512, 24, 0), (0, 512, 0)]),
}

# How many of the forms the test takes: one in so many. Run this file as a script to try them all.
ONE_IN = {"slices": 3}
OTHERWISE = 15

disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def is_undefined(code: bytes) -> bool:
    """Whether the core never gives the first instruction to the engine."""
    return decode(ISA, CODE, code)[0][4] == UNDEFINED


def forms(rng: random.Random) -> Iterator[bytes]:
    """Prefixes, opcode and ModRM."""
    for opcode_map, opcodes in MAPS.items():
        for opcode in opcodes:
            if (opcode_map == b"" and opcode in NOT_OPCODES) or (opcode_map == b"\x0f" and opcode in (0x38, 0x3A)):
                continue
            if opcode in EXCLUDED.get(opcode_map, ()):
                continue
            group = opcode_map == b"" and (opcode & 0xF4 == 0x80 or opcode >= 0xC0)
            for prefix in [*PREFIXES, rng.choice(MORE_PREFIXES)]:
                extensions = range(8) if (group or opcode in (0xBA, 0xAE, 0xC7)) and not prefix else (rng.randrange(8),)
                for extension in extensions:
                    for mode in (rng.randrange(3), 3):
                        if opcode in BIT_TESTS and opcode_map:
                            if 0xF0 in prefix and mode == 3:
                                continue
                            if opcode != 0xBA:
                                extension = RCX
                        yield prefix + opcode_map + bytes([opcode, mode << 6 | extension << 3 | rng.randrange(8)])
    for map_number in (2, 3):
        for last in range(0, 256, 4):  # W, inverted register; variants follow
            for variant in range(4):
                opcode, extension = rng.randrange(0xF0, 0xF8), rng.randrange(8)
                modrm = rng.choice((0, 0x40, 0xC0)) | extension << 3 | rng.randrange(8)
                yield bytes([0xC4, 0xE0 | map_number, last & 0xF8 | variant, opcode, modrm])


def operand_tail(modrm: int, rng: random.Random) -> bytes:
    """SIB byte and displacement, with which the address is in DATA or LOW_PAGES. RCX, R9 and R12 are small."""
    mode, low = modrm >> 6, modrm & 7
    sib = b""
    if mode < 3 and low == 4:
        sib = bytes([rng.randrange(4) << 6 | rng.choice((RCX, 4)) << 3 | rng.randrange(8)])
    no_base = mode == 0 and (low == 5 or (sib and sib[0] & 7 == 5))
    if no_base:
        near = DATA + 0x4000 - (0 if sib else CODE)
        return sib + struct.pack("<i", near + rng.randrange(0x100))
    if mode == 3:
        return b""
    return sib + (bytes([rng.randrange(128)]) if mode == 1 else struct.pack("<i", rng.randrange(0x100)))[: mode * 4]


def instructions(rng: random.Random) -> Iterator[tuple[bytes, str]]:
    """Whole instructions, and their names."""
    seen = set()
    for form in forms(rng):
        if form[-2] in range(0xA0, 0xA4) and len(form) < 5 and form[-3:-2] != b"\x0f":  # ModRM is the address's start
            form = form[:-1] + struct.pack("<Q", DATA + rng.randrange(0x8000))
        code = (form + operand_tail(form[-1], rng) + rng.randbytes(8))[:15]
        found = next(disassembler.disasm_lite(code, CODE, 1), None)
        if found is None or code[: found[1]] in seen:
            continue
        insn = next(disassembler.disasm(code, CODE, 1))
        if insn.mnemonic in RANDOM or (is_undefined(code) and insn.mnemonic not in WHOLES):
            continue
        seen.add(code[: found[1]])
        yield code[: found[1]], insn.mnemonic.removeprefix("lock ").removeprefix("rep ").removeprefix("repne ")


def look_at_registers() -> bytes:
    """For each register, an address that depends on all of its bits: imul r, r, odd; shr r, 49; cmp [r + DATA], al."""
    code = b""
    for number in (*range(1, 16), 0):
        high, low = number >> 3, number & 7
        code += bytes([0x48 | high * 5, 0x69, 0xC0 | low << 3 | low]) + struct.pack("<i", 0x5E3779B1)
        code += bytes([0x48 | high, 0xC1, 0xE8 | low, 49])
        sib = b"\x24" if low == 4 else b""
        code += bytes([0x40 | high, 0x38, 0x80 | low]) + sib + struct.pack("<i", DATA)
    return code


def look_at_conditions() -> bytes:
    """setcc al; movzx eax, al; mov dl, [rax * 8 + DATA]"""
    look = bytes.fromhex("0fb6c08a14c5") + struct.pack("<i", DATA)
    return b"".join(bytes([0x0F, 0x90 | condition, 0xC0]) + look for condition in range(16))


class Both:
    """The tracer and the engine with MEM hooks, on the same code, data and registers."""

    def __init__(self, way: str) -> None:
        code = b"\xf4" * (SLOT * SLOTS)
        self.run = traced.bare(ISA, code, way, READ | EXECUTE)
        self.run.space.map(0, self.run.memory.allocate(LOW_PAGES), LOW_PAGES, READ | 2)
        self.engine = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
        self.engine.reg_write(x86_const.UC_X86_REG_MXCSR, 0x1F80)  # nothing is unmasked
        self.engine.reg_write(x86_const.UC_X86_REG_FPCW, 0x37F)
        self.engine.reg_write(x86_const.UC_X86_REG_FPTAG, 0xFFFF)
        self.engine.mem_map(CODE, SLOT * SLOTS)
        self.engine.mem_map(DATA, DATA_PAGES * PAGE_SIZE)
        self.engine.mem_map(0, LOW_PAGES * PAGE_SIZE)
        self.accesses = access_hook.Accesses(self.engine, ISA)
        self.engine.hook_add(unicorn.UC_HOOK_INSN, lambda *_: self.engine.emu_stop(), aux1=x86_const.UC_X86_INS_SYSCALL)
        self.engine.hook_add(unicorn.UC_HOOK_INTR, self._on_interrupt)
        self.engine.hook_add(unicorn.UC_HOOK_BLOCK, self._on_block)
        self.slot = self.blocks_left = 0
        self.values: list[int] = []
        self.interrupted = False  # the engine would make a double fault of the next exception

    def _on_interrupt(self, engine: unicorn.Uc, *_: object) -> None:
        self.interrupted = True
        engine.emu_stop()

    def _on_block(self, engine: unicorn.Uc, *_: object) -> None:
        self.blocks_left -= 1
        if self.blocks_left < 0:
            engine.emu_stop()

    def events(
        self, code: bytes, rng: random.Random, blocks: int
    ) -> tuple[str, int, list[access_hook.Event], list[access_hook.Event]]:
        """Of the code in a slot of its own: why it stops, where it is; the tracer's events; the engine's."""
        if self.slot == SLOTS:
            self.slot = 0
            self.run.tracer.flush_translations()
            self.run.tracer.drop_slices()
            self.engine.ctl_flush_tb()
        pc = CODE + self.slot * SLOT
        self.slot += 1
        # mostly addresses of data, far enough from its ends
        values = [DATA + rng.randrange(0x4000, 0x8000) & rng.choice((-1, -64)) for _ in range(16)]
        values[rng.choice((0, 1, 4, 5, 6, 8, 10, 14))] = rng.randrange(64)
        values[3] *= rng.randrange(2)  # rdx, for divisions
        values[2] = values[9] = values[12] = rng.randrange(4)  # rcx, for REP, shifts and indices
        self.values = values
        flags, fs_base, gs_base = 2 | rng.getrandbits(12) & FLAGS, rng.randrange(0x100), rng.randrange(0x100)
        data = bytes(rng.getrandbits(8) & rng.choice((0, 255)) for _ in range(64)) * (DATA_PAGES * PAGE_SIZE // 64)
        low = bytes(LOW_PAGES * PAGE_SIZE)
        tracer, space = self.run.tracer, self.run.space
        for address, contents in ((pc, code + SYSCALL), (DATA, data), (0, low)):
            space.write(address, contents)
            self.engine.mem_write(address, contents)
        for number, value in enumerate(values):
            tracer.write_register(number, value)
            self.engine.reg_write(GENERAL[number], value)
        for number, register, value in (
            (RIP, x86_const.UC_X86_REG_RIP, pc),
            (RFLAGS, x86_const.UC_X86_REG_EFLAGS, flags),
            (FS_BASE, x86_const.UC_X86_REG_FS_BASE, fs_base),
            (GS_BASE, x86_const.UC_X86_REG_GS_BASE, gs_base),
        ):
            tracer.write_register(number, value)
            self.engine.reg_write(register, value)
        why = tracer.run(blocks)
        self.blocks_left = blocks
        self.accesses.events.clear()
        with suppress(unicorn.UcError):
            self.engine.emu_start(pc, 0)
        return why, pc, self.run.seen(), self.accesses.events


def merged(events: list[access_hook.Event]) -> list[list[int]]:
    """What one instruction accesses in pieces, one behind the other, as one."""
    result: list[list[int]] = []
    for pc, address, size, store in events:
        last = result[-1] if result else None
        if last and (last[0], last[1] + last[2], last[3]) == (pc, address, store):
            last[2] += size
        else:
            result.append([pc, address, size, store])
    return result


def covers(sites: list[access_hook.Event], events: list[access_hook.Event]) -> bool:
    """Whether each of the engine's events lies in a site of the same direction."""
    return all(
        any(
            store == other and start <= address and address + size <= start + length
            for _, start, length, other in sites
        )
        for _, address, size, store in events
    )


def of_op(events: list[access_hook.Event], pc: int) -> list[access_hook.Event]:
    return [event for event in events if event[0] == pc]


def of_other_ops(events: list[access_hook.Event], pc: int) -> list[access_hook.Event]:
    return [event for event in events if event[0] != pc]


TRANSFERS = (capstone.CS_GRP_JUMP, capstone.CS_GRP_CALL, capstone.CS_GRP_RET)


def try_forms(way: str, one_in: int, seed: int = 0) -> int:
    rng = random.Random(f"x86 accesses {way} {seed}")
    both = Both(way)
    looks = [look_at_registers(), look_at_conditions()]
    tried = excepted = 0
    wrong = []
    disassembler.detail = True
    for code, name in itertools.islice(instructions(rng), 0, None, one_in):
        if both.interrupted:
            both = Both(way)
        insn = next(disassembler.disasm(code, CODE, 1))
        transfer = any(insn.group(group) for group in TRANSFERS) or name.startswith("loop")
        look = b"" if transfer else looks[rng.randrange(2)]
        why, pc, mine, engine = both.events(code + look, rng, 1 if transfer else 40)
        if transfer:
            mine, engine = of_op(mine, pc), of_op(engine, pc)
        tried += 1
        if why in ("exception", "fault"):  # it has accessed what it could before that, but has not retired
            excepted += 1
            mine, engine = of_other_ops(mine, pc), of_other_ops(engine, pc)
        if name in WHOLES and merged(of_op(mine, pc)) != merged(of_op(engine, pc)):
            assert covers(of_op(mine, pc), of_op(engine, pc)), (code.hex(), name)
            mine, engine = of_other_ops(mine, pc), of_other_ops(engine, pc)
        if merged(mine) != merged(engine):
            first = next(pair for pair in itertools.zip_longest(merged(mine), merged(engine)) if pair[0] != pair[1])
            wrong.append(f"{code.hex()} at {pc:#x}, {name}, {why}: {first}, {both.values}")
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong[:20])
    assert excepted < tried / 4
    return tried


@pytest.mark.parametrize("way", traced.WAYS)
def test_every_form_of_every_instruction(way: str) -> None:
    one_in = ONE_IN.get(way, OTHERWISE)
    assert try_forms(way, one_in) > 6000 / one_in


@pytest.mark.parametrize("name", WHOLES)
def test_what_depends_on_values_is_told_as_a_whole(name: str) -> None:
    code, expected = WHOLES[name]
    assert name.startswith(next(disassembler.disasm(bytes.fromhex(code), CODE, 1)).mnemonic.removesuffix("64"))
    run = traced.bare(ISA, bytes.fromhex(code) + SYSCALL)
    run.tracer.write_register(5, DATA)
    assert run.tracer.run() == "syscall"
    assert merged(run.seen()) == [[CODE, DATA + offset, size, store] for offset, size, store in expected]


if __name__ == "__main__":
    for seed in itertools.count():
        print(seed, *(f"{way}: {try_forms(way, 1, seed)}" for way in traced.WAYS), sep="; ", flush=True)
