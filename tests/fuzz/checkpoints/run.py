"""One mutated checkpoint in a process of its own: refused, or of a board that goes on to some end."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random

import pytest

from emulator.board.kept import WrongState
from emulator.board.saved_board import resume
from emulator.machine import Machine
from fuzz.checkpoints.mutations import Original
from fuzz.child import in_child
from perfemu.checkpoint_file import Broken, read_checkpoint
from tests.unit.board.booted import OFF, START
from tests.unit.board.pc import test_saved_pc as pc
from tests.unit.board.test_saved_board import KEY, PROGRAM, Made, checkpoint, make, paused
from tests.unit.native.bare import assemble

BASE = Path(tempfile.gettempdir())
CPUS, CYCLE, TIMES = 2, 5_000, "900"
MOST_PC_INSTRUCTIONS = 1_000_000
REFUSED, FAILED, ENDED = "refused", "something unmodelled is named", "the board has ended"


@dataclass(slots=True)
class CheckpointOutcome:
    problem: str = ""
    ending: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """A board in the midst of its run."""

    write: Callable[[Path], AbstractContextManager[int]]  # its checkpoint, into that directory
    make: Callable[[], Made | pc.Made]  # one that is equal, to be restored


def _write_virt(core: str, folder: Path) -> AbstractContextManager[int]:
    code = assemble("aarch64", START + PROGRAM.replace("TIMES", TIMES) + OFF, folder)
    return checkpoint(paused(code, core, CPUS, CYCLE), folder)


def _write_pc(image: str, core: str, cpus: int, folder: Path) -> AbstractContextManager[int]:
    cycle = pc.length(image, core, cpus) // 2
    return pc.checkpoint(pc.paused(image, core, cpus, cycle), folder)


def _virt(core: str) -> Case:
    return Case(partial(_write_virt, core), partial(make, None, core, CPUS))


def _pc(image: str, core: str, cpus: int) -> Case:
    return Case(partial(_write_pc, image, core, cpus), partial(pc.Made, None, core, cpus, None, MOST_PC_INSTRUCTIONS))


CASES = (
    _virt("cortex-a55"),
    _virt("neoverse-n1"),
    _virt("ideal"),
    _pc("cpus", "zen5", 2),
    _pc("board_pmu_freeze", "skylake", 1),
    _pc("user", "ideal", 1),
)


@cache
def original(case: Case, base: Path) -> Original:
    with tempfile.TemporaryDirectory(dir=base) as name, case.write(Path(name)):
        return Original((Path(name) / "checkpoint").read_bytes())


def case_of(seed: int) -> Case:
    return CASES[seed // 2 % len(CASES)]


def run_seed(seed: int, base: Path = BASE) -> CheckpointOutcome:
    """The even ones change the native parts."""
    case = case_of(seed)
    data = original(case, base).mutated(Random(f"checkpoint {seed}"), seed % 2 == 0)
    return in_child(CheckpointOutcome, lambda outcome: _go_on(outcome, case.make(), data, base))


def _go_on(outcome: CheckpointOutcome, made: Made | pc.Made, data: bytes, base: Path) -> str:
    with tempfile.TemporaryFile(dir=base) as file:
        file.write(data)
        file.flush()
        try:
            found = read_checkpoint(file.fileno(), KEY)
            found.map_ram(made.hardware.memory)
            resume(made.board, made.hardware, found.board)
        except (Broken, WrongState):
            outcome.ending = REFUSED
            return ""
    made.board.go_on(None)
    try:
        Machine(made.hardware, made.board).run_to_the_end()
    except pytest.fail.Exception:  # as the board says something
        outcome.ending = FAILED
    else:
        outcome.ending = ENDED
    return ""
