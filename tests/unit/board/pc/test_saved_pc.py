"""A pc that is saved in the middle of its run goes on in another machine to the same end: cycles, counts, registers,
RAM, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from emulator._native import PhysicalMemory
from emulator.board.board import Boot, Ended, Outside
from emulator.board.kept import WrongState
from emulator.board.observers import Observers
from emulator.board.pc.image import read_pc_image
from emulator.board.pc.pc import Pc
from emulator.board.saved_board import SavedBoard, resume, saved
from emulator.core_file.core_file import load_core
from emulator.machine import Hardware, Machine, MachineConfig
from emulator.probes import Probe
from perfemu.board_kinds import PC_PMUS
from perfemu.checkpoint_file import read_checkpoint, write_checkpoint
from pmu.model import model
from tests.unit.board.pc.images import COMMAND_LINE, IMAGES, built

KEY, MEMORY_BYTES, MOST_INSTRUCTIONS = "key", 128 << 20, 100_000_000
UNASKED = Probe.BR_COND_TAKEN, Probe.BR_TAKEN  # which nobody has asked for from the start


@dataclass(frozen=True)
class End:
    """All that can be seen of a machine."""

    output: bytes
    told: list[str]
    status: int
    cycles: list[int]
    counts: list[list[int]]
    registers: list[list[int]]
    vectors: list[list[bytes]]
    ram: list[tuple[int, bytes]]  # stretches that are not zeroes
    parts: object
    memory: bytes


def _contents(memory: PhysicalMemory) -> Iterator[tuple[int, bytes]]:
    first, count = memory.next_used(0)
    while count:
        yield first, bytes(memory.view(first, count))
        first, count = memory.next_used(first + count)


class Made:
    def __init__(
        self,
        name: str | None,
        core: str,
        cpus: int,
        observers: Observers | None = None,
        most_instructions: int = MOST_INSTRUCTIONS,
    ) -> None:
        """`name`: of an image; None to be restored."""
        loaded = load_core(core)
        self.hardware = Hardware(
            MachineConfig("x86_64", loaded, MEMORY_BYTES, cpus=cpus, most_instructions=most_instructions)
        )
        kind = model(loaded.pmu_models["x86_64"])
        pmus = [PC_PMUS[kind.driver](cpu.core.add_bank(kind.bank_size(4)), kind, 4) for cpu in self.hardware.cpus]
        self.output, self.told = bytearray(), list[str]()
        boot = None if name is None else Boot(read_pc_image(built(name)), command_line=COMMAND_LINE)
        outside = Outside(self.output.extend, self.told.append, observers=observers)
        self.board = Pc(self.hardware, boot, outside, pmus)

    def to_the_end(self) -> End:
        Machine(self.hardware, self.board).run_to_the_end()
        assert self.board.ended is Ended.STATUS
        cores, memory = [cpu.core for cpu in self.hardware.cpus], self.hardware.memory
        probes = [probe for probe in Probe if probe not in UNASKED]
        state = saved(self.board, self.hardware)
        return End(
            bytes(self.output),
            self.told,
            self.board.exit_status,
            [core.cycles for core in cores],
            [[core.total(probe, level) for probe in probes for level in (0, 1)] for core in cores],
            [core.registers() for core in cores],
            [[core.read_vector(number) for number in range(16)] for core in cores],
            list(_contents(memory)),
            state.parts,
            state.memory,
        )


def paused(name: str, core: str, cpus: int, cycle: int) -> Made:
    observers = Observers(cpus)
    made = Made(name, core, cpus, observers)
    machine = Machine(made.hardware, made.board)
    observers.at_cycle(0, cycle, machine.pause)
    machine.run_to_the_end()
    assert machine.paused
    return made


@contextmanager
def checkpoint(made: Made, folder: Path) -> Iterator[int]:
    """Of its present state: a descriptor of the file."""
    with (folder / "checkpoint").open("wb+") as file:
        write_checkpoint(file.fileno(), KEY, saved(made.board, made.hardware), [], made.hardware.memory)
        yield file.fileno()


def length(name: str, core: str, cpus: int) -> int:
    """Of the first CPU's run, in cycles."""
    return Made(name, core, cpus).to_the_end().cycles[0]


PARTS = (0.02, 0.3, 0.7, 0.98)
CASES = [(name, core, PARTS) for name, core in product(IMAGES, ("ideal", "skylake", "zen5"))]
CASES += [  # while they program a PMU: before, ports take their time, and behind
    ("board_pmu_freeze", "skylake", (0.165, 0.17, 0.175, 0.18)),
    ("board_pmu_amd", "zen5", (0.13, 0.1375, 0.145, 0.15)),
]


@pytest.mark.parametrize(("name", "core", "parts"), CASES)
def test_it_goes_on_as_it_would_have(name: str, core: str, parts: Sequence[float], tmp_path: Path) -> None:
    cpus = IMAGES[name].cpus if name in IMAGES else 1
    whole = length(name, core, cpus)
    for part in parts:
        made = paused(name, core, cpus, int(whole * part))
        with checkpoint(made, tmp_path) as descriptor:
            other = Made(None, core, cpus)
            found = read_checkpoint(descriptor, KEY)
            found.map_ram(other.hardware.memory)
            resume(other.board, other.hardware, found.board)
            other.output += made.output
            other.told += made.told
            for each in (made, other):
                each.board.go_on(None)
            assert other.to_the_end() == made.to_the_end()


def test_a_state_of_another_machine_is_refused() -> None:
    made = paused("hello", "ideal", 1, 100)
    state = saved(made.board, made.hardware)
    for wrong in (
        SavedBoard(state.parts, state.memory, ()),
        SavedBoard(state.parts, state.memory, (state.cores[0][:-1],)),
        SavedBoard({}, state.memory, state.cores),
    ):
        other = Made(None, "ideal", 1)
        with pytest.raises(WrongState):
            resume(other.board, other.hardware, wrong)
