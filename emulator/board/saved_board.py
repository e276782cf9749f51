"""SavedBoard: all that a board and its machine keep besides the bytes of RAM, to go on in another process.

Between two turns. Whoever saves goes on as whoever restores: what is only remembered is forgotten by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from emulator.board.board import Board
from emulator.board.kept import Plain, WrongState, restore, state_of
from emulator.machine import Hardware


@dataclass(frozen=True, slots=True)
class SavedBoard:
    parts: Plain
    memory: bytes  # what is known of RAM
    cores: tuple[bytes, ...]  # by CPU


def saved(board: Board[Any], hardware: Hardware) -> SavedBoard:
    """Raises NotKept."""
    listening = [unit for cpu in board.cpus for unit in cpu.listening]
    for unit in listening:
        unit.pause()
    try:
        parts = state_of(board)
        for cpu in hardware.cpus:
            cpu.core.rest()
        cores = tuple(cpu.core.saved_state() for cpu in hardware.cpus)
    finally:  # who cannot be saved goes on, too
        for unit in listening:
            unit.resume()
    return SavedBoard(parts, hardware.memory.saved_state(), cores)


def resume(board: Board[Any], hardware: Hardware, state: SavedBoard) -> None:
    """A board that was made equal, without a boot, whose RAM has the bytes. Raises WrongState: it is of no use then."""
    if len(state.cores) != len(hardware.cpus):
        raise WrongState(f"{len(state.cores)} CPUs")
    for each in board.cpus:
        for unit in each.listening:
            unit.pause()
    restore(board, state.parts)
    board.apply_restored()
    for cpu in hardware.cpus:
        cpu.core.rest()
    try:
        hardware.memory.load_state(state.memory)
        for cpu, core in zip(hardware.cpus, state.cores, strict=True):
            cpu.core.load_state(core)
        for each in board.cpus:
            each.debug.apply()  # x86's debug registers are the core's
            for unit in each.listening:
                unit.resume()
    except ValueError as problem:
        raise WrongState(str(problem)) from None
