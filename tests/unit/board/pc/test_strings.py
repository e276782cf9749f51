"""String instructions: a REP whose count is of no account meets the limits, though its iterations are no instructions,
and take no time on ideal; between a port and another device there is nothing.
"""

from __future__ import annotations

import pytest

from emulator.board.board import Boot, Outside
from emulator.board.limits import ITERATIONS, Limits
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.pc import Pc
from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu
from emulator.linux.arch.x86_64 import RCX
from emulator.machine import Hardware, Machine, MachineConfig
from tests.unit.board.pc.images import assembled

OF_DEVICE = 1000  # iterations, for which one counts that a device answers
FOR_EVER = -1 & (1 << 64) - 1
FROM_MEMORY = "main: xor %esi, %esi; mov $-1, %rcx; rep lodsb; hlt\n"
FROM_A_PORT = "main: mov $0x4000000, %edi; mov $0x60, %edx; mov $-1, %rcx; rep insb; hlt\n"


def executed(program: str, most_iterations: int) -> Cpu:
    hardware = Hardware(MachineConfig("x86_64", load_core("ideal"), 128 << 20, most_instructions=10**9))
    outside = Outside(lambda text: None, lambda text: None)
    board = Pc(hardware, Boot(read_pc_image(assembled(program))), outside, [])
    hardware.cpus[0].core.limit_iterations(most_iterations)
    Machine(hardware, board).run_to_the_end()
    return hardware.cpus[0]


@pytest.mark.parametrize(("program", "each"), [(FROM_MEMORY, 1), (FROM_A_PORT, OF_DEVICE)], ids=["memory", "port"])
def test_a_repeat_without_end_ends(program: str, each: int) -> None:
    cpu = executed(program, 50_000)
    assert cpu.core.repeats_too_long
    assert FOR_EVER - cpu.core.read_register(RCX) == 50_000 // each


@pytest.mark.parametrize(
    ("limits", "most"),
    [({"most_instructions": 30}, 30), ({"most_ns": 7}, 7), ({"most_instructions": 30, "most_ns": 7}, 7)],
    ids=["instructions", "time", "both"],
)
def test_it_ends_behind_a_thousand_iterations_of_an_instruction_or_a_cycle(limits: dict[str, int], most: int) -> None:
    """The ideal core has a cycle a nanosecond."""
    hardware = Hardware(MachineConfig("x86_64", load_core("ideal"), 128 << 20, **limits))  # type: ignore[arg-type]
    asked: list[int] = []
    core = hardware.cpus[0].core

    class Asked:
        cycles = 0
        repeats_too_long = False
        limit_iterations = staticmethod(asked.append)
        total = staticmethod(core.total)

    hardware.cpus[0].core = Asked()  # type: ignore[misc, assignment]
    assert not Limits(hardware).reached
    assert asked == [ITERATIONS * most]


@pytest.mark.parametrize("program", ["insb", "outsb"])
def test_not_between_devices(program: str) -> None:
    """The local APIC is at 0xFEE00000."""
    setup = "main: mov $0xFEE00000, %edi; mov %edi, %esi; mov $0x60, %edx; "
    with pytest.raises(RuntimeError, match="INS and OUTS between a port and what is no RAM are not modelled"):
        executed(f"{setup}{program}; hlt\n", 50_000)
