"""Whatever a guest does to devices and registers: an answer, or Unmodelled with a name; and the board still runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from emulator.board.bus import Unmodelled
from emulator.sysregs import SysReg, UndefinedRegister
from tests.unit.board.booted import boot
from tests.unit.board.test_virt import WITH_VECTORS

ACCESSES = 3000
# Registers that a sentence of the architecture gives to a device, so that random offsets would seldom find them
NEAR = (0, 4, 8, 0x14, 0x20, 0x30, 0x34, 0x38, 0x44, 0x50, 0x70, 0x80, 0x100, 0x180, 0x200, 0x400, 0xC00, 0x6100)


@pytest.mark.parametrize("seed", range(20))
def test_devices_and_registers(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    board = boot("nop\n", tmp_path, cpus=2, test_device=bool(seed % 2), virtio_console=bool(seed & 2)).board
    regions = board.bus.regions
    for _ in range(ACCESSES):
        region, size = random.choice(regions), random.choice((1, 2, 4, 4, 4, 8))
        offset = random.choice((*NEAR, random.randrange(region.size))) % region.size & -size
        value = random.choice((0, 1, (1 << 8 * size) - 1, random.getrandbits(8 * size)))
        try:
            if random.random() < 0.5:
                board.bus.write(region.start + offset, size, value)
            else:
                assert 0 <= board.bus.read(region.start + offset, size) < 1 << 8 * size
        except Unmodelled as error:
            assert f"{offset:#x}" in str(error)  # noqa: PT017
        _ask_for_a_register(board.cpus[random.randrange(2)].cpu.system_registers, random)
    for cpu in board.cpus:
        assert 0 <= cpu.interface.highest() < 1024


def _ask_for_a_register(registers, random: Random) -> None:  # type: ignore[no-untyped-def]
    claimed = [register for register in registers.claimed() if isinstance(register, SysReg)]
    some = SysReg(3, random.randrange(8), random.randrange(16), random.randrange(16), random.randrange(8))
    register = random.choice((random.choice(claimed), some))
    with suppress(UndefinedRegister):
        if random.random() < 0.5:
            registers.write(register, random.choice((0, 1, random.getrandbits(64))))
        else:
            assert registers.read(register) >= 0


# CPU 17 of 18 interrupts CPU 16, which ends the run.
SENDS = """
        movz    x25, #0xc400, lsl #16
        movk    x25, #3
        mov     x26, #1
1:      mov     x0, x25
        mov     x1, x26
        adr     x2, other
        mov     x3, x26
        hvc     #0                      // CPU_ON
        add     x26, x26, #1
        cmp     x26, #18
        b.ne    1b
        wfi
2:      b       2b
other:  mov     x28, x0
        mov     x27, x0
        cmp     x0, #17
        b.eq    4f
        bl      prepare
        wfi
        mrs     x13, s3_0_c12_c12_0     // ICC_IAR1_EL1
        b       off
4:      movz    x1, #0xff, lsl #16      // so that the other is ready
5:      subs    x1, x1, #1
        b.ne    5b
        mov     x0, #1                  // CPU 16: the first of the second range
        orr     x0, x0, #8 << 24
        orr     x0, x0, #1 << 44
        msr     s3_0_c12_c11_5, x0
        wfi
prepare:
        movz    x1, #0x080b, lsl #16
        add     x1, x1, x28, lsl #17    // GICR of this CPU, its second frame
        mov     w0, #-1
        str     w0, [x1, #0x80]
        str     w0, [x1, #0x100]
        mov     x0, #1
        msr     s3_0_c12_c12_7, x0
        mov     x0, #0xf0
        msr     s3_0_c4_c6_0, x0
        ret
"""


def test_a_cpu_of_the_second_range_is_interrupted(tmp_path: Path) -> None:
    distributor = "movz x1, #0x0800, lsl #16\nmov w0, #2\nstr w0, [x1]\n"
    booted = boot(WITH_VECTORS + distributor + SENDS, tmp_path, cpus=18, instructions=100_000_000)
    assert [booted.register(13, cpu) for cpu in (15, 16)] == [0, 8]
