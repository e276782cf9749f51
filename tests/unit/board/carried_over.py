"""A board that is saved in the middle of its run, and one that goes on in its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from emulator.board.board import Board
from emulator.board.observers import Observers
from emulator.board.saved_board import resume, saved
from emulator.machine import Hardware, Machine
from perfemu.checkpoint_file import read_checkpoint, write_checkpoint

KEY = "key"


class Made(Protocol):
    """A board and its machine."""

    @property
    def hardware(self) -> Hardware: ...
    @property
    def board(self) -> Board[Any]: ...


@contextmanager
def carried_over(made: Made, observers: Observers, cycle: int, other: Made, folder: Path) -> Iterator[None]:
    """`made`, which has the `observers`, runs until that cycle and is saved; `other` was made equal, without an image.
    Within this, both go on from there."""
    machine = Machine(made.hardware, made.board)
    observers.at_cycle(0, cycle, machine.pause)
    machine.run_to_the_end()
    assert machine.paused
    with (folder / "checkpoint").open("wb+") as file:
        write_checkpoint(file.fileno(), KEY, saved(made.board, made.hardware), [], made.hardware.memory)
        found = read_checkpoint(file.fileno(), KEY)
        found.map_ram(other.hardware.memory)
        resume(other.board, other.hardware, found.board)
        for each in (made, other):
            each.board.go_on(None)
        yield
