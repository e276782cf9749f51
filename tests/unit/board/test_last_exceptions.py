"""When a guest dies: the last exceptions, decoded; and what devices have no register for."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.board.board import Ended
from tests.unit.board.booted import LOADED_AT, boot
from tests.unit.board.test_virt import WITH_VECTORS

RESET = "movz w0, #0x8400, lsl #16\nmovk w0, #9\nhvc #0\n"
NOWHERE = "movz x1, #0x0b00, lsl #16\n"  # where the board has nothing
ABORT = "data abort (external), ESR 0x96000010, FAR 0xb000000"


def cpu_0(cycle: int, pc: int, what: str) -> str:
    return f"exception: cycle {cycle} CPU 0 EL1 {pc:#x}: {what}"


def test_a_guest_that_asks_for_a_reset(tmp_path: Path) -> None:
    """Its handler does: after START, four instructions and one."""
    source = WITH_VECTORS.replace("b       off", RESET) + NOWHERE + "ldr w2, [x1]\n"
    booted = boot(source, tmp_path)
    assert booted.board.ended is Ended.RESET
    pc = booted.register(12)
    assert booted.board.last_exceptions() == [cpu_0(6, pc, ABORT)]


def test_a_guest_that_ends_as_it_should_has_nothing_to_tell(tmp_path: Path) -> None:
    booted = boot(WITH_VECTORS + NOWHERE + "ldr w2, [x1]\n", tmp_path)
    assert (booted.board.ended, booted.board.last_exceptions()) == (Ended.OFF, [])


def test_a_cpu_whose_vector_is_nowhere(tmp_path: Path) -> None:
    """The last one, with which it ends, has a line of its own."""
    booted = boot("mov x3, #1\nbrk #5\n", tmp_path)
    assert booted.board.ended is Ended.NONE_ON
    assert booted.board.last_exceptions() == [
        cpu_0(2, LOADED_AT + 8, "brk, ESR 0xf2000005"),
        cpu_0(2, 0x200, "instruction abort (external), ESR 0x86000010, FAR 0x200"),
    ]
    assert "cannot fetch its exception vector at 0x200" in booted.messages[0]


def test_a_handler_that_makes_exceptions_for_ever(tmp_path: Path) -> None:
    """Up to a limit: the eight that are kept are one line."""
    source = WITH_VECTORS.replace("mrs     x10, esr_el1", "mov     x9, #1\nudf     #0") + "brk #1\n"
    booted = boot(source, tmp_path, instructions=1000)
    assert booted.board.ended is Ended.LIMIT
    (line,) = booted.board.last_exceptions()
    assert "unknown, ESR 0x2000000; 8 times" in line


def test_a_limit_within_other_things_tells_nothing(tmp_path: Path) -> None:
    booted = boot(WITH_VECTORS.replace("b       off", "b .") + "brk #1\n", tmp_path, instructions=1000)
    assert (booted.board.ended, booted.board.last_exceptions()) == (Ended.LIMIT, [])
    vectors = booted.register(0)
    assert booted.board.whereabouts() == [f"CPU 0 at {vectors + 0x200 + 3 * 4:#x}, kernel"]


@pytest.mark.parametrize(
    ("place", "instruction", "says"),
    [
        (0x0900_004C, "ldr w2, [x1]", "a load at PL011 + 0x4c, where no register is modelled, gets 0"),
        (0x0900_0048, "str w3, [x1]", "a store at PL011 + 0x48, where no register is modelled, is ignored"),
        (0x0901_0020, "ldr w2, [x1]", "a load at PL031 + 0x20, where no register is modelled, gets 0"),
        (0x0800_0040, "str w3, [x1]", "a store at GICv3 distributor + 0x40, where no register is modelled, is ignored"),
        (0x080A_0070, "ldr x2, [x1]", "a load at GICv3 redistributors + 0x70, where no register is modelled, gets 0"),
    ],
)
def test_where_devices_have_no_register(place: int, instruction: str, says: str, tmp_path: Path) -> None:
    """The guest goes on; a second access there is no news."""
    source = f"mov x2, #5\nmov w3, #1\nldr x1, here\nat: {instruction}\n{instruction}\nadr x19, at\nb off\n"
    booted = boot(source + f"here: .quad {place:#x}\n", tmp_path)
    assert booted.board.ended is Ended.OFF
    assert booted.messages == [f"{says}; PC {booted.register(19):#x}"]
    assert booted.register(2) == (0 if instruction.startswith("ldr") else 5)


@pytest.mark.parametrize("place", [0x0900_0004, 0x0900_0FE0, 0x0901_0000, 0x0800_000C, 0x0800_6100, 0x080A_0014])
def test_registers_that_are_there_are_no_news(place: int, tmp_path: Path) -> None:
    assert boot(f"ldr x1, here\nldr w2, [x1]\nb off\nhere: .quad {place:#x}\n", tmp_path).messages == []


def test_gicv2s_registers(tmp_path: Path) -> None:
    source = "movz x1, #0x0801, lsl #16\nldr w2, [x1, #0xc]\nldr w2, [x1, #0x1c]\nldr w2, [x1, #0xd0]\n"
    (message,) = boot(source, tmp_path, gic=2).messages
    assert message.startswith("a load at GICv2 CPU interfaces + 0x1c, where no register is modelled, gets 0; PC")
