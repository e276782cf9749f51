"""Branches as a core's listener hears of them: what a unit's records are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from emulator._native import RetirementRecorder
from perfemu.guest import Guest
from perfemu.session import Session


class Branch(NamedTuple):
    """One that has retired; of its fields those that readers of its records see."""

    source: int
    target: int
    taken: bool
    mispredicted: bool


def branches(program: Path, core: str, arguments: Sequence[str] = ()) -> list[Branch]:
    """Each, taken or not, of a program that has one task, as `perfemu` runs it."""
    session = Session(Guest([str(program), *arguments], core=core, stdout=-1))
    recorder = RetirementRecorder(keep=True)
    session.machine.cpus[0].core.listen(recorder)
    session.run()
    return [Branch(source, target, taken, missed) for source, target, _, _, taken, missed in recorder.take_branches()]


def taken_branches(program: Path, core: str, arguments: Sequence[str] = ()) -> list[tuple[int, int]]:
    """(from, to) of each."""
    return [(branch.source, branch.target) for branch in branches(program, core, arguments) if branch.taken]
