"""The board pc, by bare-metal images that QEMU's PC runs, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from emulator.board.board import Boot, Ended, Outside
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.local_apic import LVT_TIMER, SVR
from emulator.board.pc.pc import Pc
from emulator.core_file.core_file import load_core
from emulator.cpu import Cpu
from emulator.machine import Hardware, Machine, MachineConfig
from perfemu.board_kinds import PC_PMUS
from pmu.model import model
from tests.unit.board.pc.images import COMMAND_LINE, IMAGES, built

CORES = ("ideal", "skylake", "zen5")
MEMORY_BYTES = 128 << 20
MOST_INSTRUCTIONS = 100_000_000


@dataclass
class Booted:
    board: Pc
    cpus: list[Cpu]
    output: str
    messages: list[str] = field(default_factory=list)


def boot(
    name: str,
    core: str = "ideal",
    cpus: int = 1,
    watch: Callable[[Sequence[Cpu]], None] | None = None,
    **offered: Any,
) -> Booted:
    loaded = load_core(core)
    hardware = Hardware(MachineConfig("x86_64", loaded, MEMORY_BYTES, cpus=cpus, most_instructions=MOST_INSTRUCTIONS))
    if watch is not None:
        watch(hardware.cpus)
    kind = model(loaded.pmu_models["x86_64"])
    pmus = [PC_PMUS[kind.driver](cpu.core.add_bank(kind.bank_size(4)), kind, 4) for cpu in hardware.cpus]
    output, messages = bytearray(), []
    outside = Outside(output.extend, messages.append, **offered)
    board = Pc(hardware, Boot(read_pc_image(built(name)), command_line=COMMAND_LINE), outside, pmus)
    Machine(hardware, board).run_to_the_end()
    return Booted(board, hardware.cpus, output.decode(), messages)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("name", IMAGES)
def test_an_image_does_what_it_does_on_qemus_pc(name: str, core: str) -> None:
    image = IMAGES[name]
    booted = boot(name, core, image.cpus)
    assert booted.output == image.prints.lstrip()
    assert (booted.board.ended, booted.board.exit_status) == (Ended.STATUS, image.status)
    assert booted.messages == []


def test_a_deadline_that_others_have_been_shown_to_have_passed_is_due() -> None:
    """A CPU that is behind reads what they have read. One that waits reads nothing: its interrupt comes in its time."""
    hardware = Hardware(MachineConfig("x86_64", load_core("ideal"), MEMORY_BYTES, cpus=2))
    board = Pc(hardware, Boot(read_pc_image(built("hello"))), Outside(lambda data: None, lambda text: None))
    cpu, clock = board.cpus[0], hardware.clock
    cpu.apic.write(SVR, 4, 0x1FF)
    cpu.apic.write(LVT_TIMER, 4, 2 << 17 | 0x40)

    def comes(deadline: int, latest: int, *, waits: bool = False) -> bool:
        cpu.apic.requested, cpu.waits, clock.latest_shown = 0, False, 0
        cpu.apic.timer.set_deadline(deadline)
        cpu.look_at_timers()
        cpu.waits, clock.latest_shown = waits, latest
        cpu.look_at_timers()
        return cpu.apic.requested == 1 << 0x40

    assert not comes(1500, 1499)
    assert cpu.due_cycle == 1500
    assert comes(1500, 1500)
    assert cpu.apic.timer.deadline == 0
    assert not comes(1500, 1600, waits=True)
