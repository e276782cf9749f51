"""Page tables of a guest's own: what is found in random ones is what the engine's own walker (AT) finds there."""

from __future__ import annotations

from random import Random

import pytest

from emulator.cpu import Level, WalkFault
from emulator.sysregs import SysReg
from tests.unit.native.bare import assemble
from tests.unit.native.test_own_kernel import LOADED_AT, MEMORY_BYTES, PAGE, PXN, READ_ONLY, UXN, Board

SCTLR, TTBR0, TTBR1 = SysReg(3, 0, 1, 0, 0), SysReg(3, 0, 2, 0, 0), SysReg(3, 0, 2, 0, 1)
TCR = SysReg(3, 0, 2, 0, 2)
ASKED_AT, ANSWERED_AT, TABLES, POOL = 0x2_0000, 0x2_1000, 0x3_0000, 8
ADDRESSES = 100
READ, WRITE = 1, 2
AT = ("s1e1r", "s1e1w", "s1e0r", "s1e0w")
KINDS = [(Level.KERNEL, READ), (Level.KERNEL, WRITE), (Level.USER, READ), (Level.USER, WRITE)]

ASK = f"""
        mov     x9, #{ASKED_AT}
        mov     x10, #{ANSWERED_AT >> 16}
        lsl     x10, x10, #16
        add     x10, x10, #{ANSWERED_AT & 0xFFFF}
        mov     x11, #{ADDRESSES}
1:      ldr     x0, [x9], #8
        {"; ".join(f"at {kind}, x0; isb; mrs x1, par_el1; str x1, [x10], #8" for kind in AT)}
        subs    x11, x11, #1
        b.ne    1b
        wfi
"""
STATUS = {WalkFault.TRANSLATION: 0b000100, WalkFault.ACCESS_FLAG: 0b001000, WalkFault.NONE: 0b001100}


def random_descriptor(random: Random) -> int:
    attributes = random.getrandbits(64) & (0xF << 59 | 3 << 53 | 3 << 6)
    accessed = (random.random() < 0.9) << 10
    kind = random.choice([0, 1, 3, 3, 3])
    output = random.randrange(MEMORY_BYTES >> 21) << 21 if kind == 1 else TABLES + random.randrange(POOL) * 0x1000
    return attributes | accessed | output | kind


def random_address(random: Random) -> int:
    address = random.getrandbits(random.choice([12, 21, 30, 39, 48]))
    return address | random.choice([0, 0xFFFF << 48, 0xFFFF_FF80 << 32, 1 << 48, 0x5A << 56])


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble("aarch64", ASK, tmp_path_factory.mktemp("page_tables"))


@pytest.mark.parametrize("seed", range(20))
def test_random_tables_lead_where_the_engine_says(seed: int, code: bytes) -> None:
    random = Random(seed)
    board = Board.load(code)
    core, tables = board.cpu.core, board.monitor.tables
    memory = board.machine.memory.view(0, MEMORY_BYTES >> 12)

    def store(address: int, value: int) -> None:
        memory[address : address + 8] = value.to_bytes(8, "little")

    def load(address: int) -> int:
        return int.from_bytes(memory[address : address + 8], "little")

    for at in range(TABLES, TABLES + POOL * 0x1000, 8):
        store(at, random_descriptor(random))
    # The first four lead, one to the next, to the program and what it reads and writes.
    for level in range(3):
        store(TABLES + level * 0x1000, TABLES + (level + 1) * 0x1000 | 3)
    store(TABLES + 0x3000 + (LOADED_AT >> 9), LOADED_AT | PAGE | READ_ONLY | UXN)
    for page in (ASKED_AT, ANSWERED_AT):
        store(TABLES + 0x3000 + (page >> 9), page | PAGE | UXN | PXN)
    asked = [LOADED_AT, ASKED_AT, *(random_address(random) for _ in range(ADDRESSES - 2))]
    for number, address in enumerate(asked):
        store(ASKED_AT + 8 * number, address)
    first_level = random.choice([0, 1, 2])
    bits = random.randint(*{0: (40, 48), 1: (31, 39), 2: (25, 30)}[first_level])
    upper_bits = random.randint(25, 48)
    tcr = 64 - bits | (64 - upper_bits) << 16 | 0b10 << 30 | random.getrandbits(2) << 37 | (seed % 5 == 0) << 23
    core.write_kernel_register(TTBR0.encoding, TABLES + first_level * 0x1000)
    core.write_kernel_register(TTBR1.encoding, TABLES + random.randrange(POOL) * 0x1000)
    core.write_kernel_register(TCR.encoding, tcr)
    core.write_kernel_register(SCTLR.encoding, core.read_kernel_register(SCTLR.encoding) | 1)
    board.machine.run_to_the_end()

    found = 0
    for number, address in enumerate(asked):
        for kind, (level, access) in enumerate(KINDS):
            answer = load(ANSWERED_AT + 8 * (4 * number + kind))
            page, fault, at, descriptors, output = tables.walk(address, level)
            if fault == WalkFault.EXTERNAL:  # AT does not look whether there is RAM
                continue
            assert all(TABLES <= each < TABLES + POOL * 0x1000 for each in descriptors)
            if at == 0 and descriptors and load(descriptors[0]) & 3 == 1:  # the engine takes it for a block
                assert fault == WalkFault.TRANSLATION
                continue
            if page is not None and page[1] & access:
                found += 1
                assert (answer & 1, answer >> 12 & (1 << 36) - 1) == (0, page[0]), hex(address)
                assert output == page[0] << 12 | address & 0xFFF
            else:
                assert (answer & 1, answer >> 1 & 0x3F) == (1, STATUS[WalkFault(fault)] | at), hex(address)
    assert found


def test_another_granule_is_refused_by_name(code: bytes) -> None:
    board = Board.load(code)
    core = board.cpu.core
    core.write_kernel_register(TCR.encoding, 25 | 0b01 << 14 | 1 << 23)  # TG0: 64 KiB
    core.write_kernel_register(SCTLR.encoding, core.read_kernel_register(SCTLR.encoding) | 1)
    with pytest.raises(RuntimeError, match=r"another granule than 4 KiB .*TCR_EL1"):
        board.machine.run_to_the_end()
