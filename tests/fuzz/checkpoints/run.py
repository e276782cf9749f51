"""One mutated checkpoint in a process of its own: refused, or of a board that goes on to some end."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
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
from tests.unit.board.test_saved_board import KEY, PROGRAM, checkpoint, make, paused
from tests.unit.native.bare import assemble

BASE = Path(tempfile.gettempdir())
CORES = "cortex-a55", "neoverse-n1", "ideal"
CPUS, CYCLE, TIMES = 2, 5_000, "900"
REFUSED, FAILED, ENDED = "refused", "something unmodelled is named", "the board has ended"


@dataclass(slots=True)
class CheckpointOutcome:
    problem: str = ""
    ending: str = ""
    seconds: float = 0.0


@cache
def original(core: str, base: Path) -> Original:
    with tempfile.TemporaryDirectory(dir=base) as name:
        code = assemble("aarch64", START + PROGRAM.replace("TIMES", TIMES) + OFF, Path(name))
        with checkpoint(paused(code, core, CPUS, CYCLE), Path(name)):
            return Original((Path(name) / "checkpoint").read_bytes())


def core_of(seed: int) -> str:
    return CORES[seed // 2 % len(CORES)]


def run_seed(seed: int, base: Path = BASE) -> CheckpointOutcome:
    """The even ones change the native parts."""
    core = core_of(seed)
    data = original(core, base).mutated(Random(f"checkpoint {seed}"), seed % 2 == 0)
    return in_child(CheckpointOutcome, lambda outcome: _go_on(outcome, core, data, base))


def _go_on(outcome: CheckpointOutcome, core: str, data: bytes, base: Path) -> str:
    made = make(None, core, CPUS)
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
