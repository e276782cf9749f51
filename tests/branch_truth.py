"""Branches as a core's listener hears of them: what a unit's records are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emulator._native import RetirementRecorder
from perfemu.guest import Guest
from perfemu.session import Session


def taken_branches(program: Path, core: str, arguments: Sequence[str] = ()) -> list[tuple[int, int]]:
    """(from, to) of each, of a program that has one task, as `perfemu` runs it."""
    session = Session(Guest([str(program), *arguments], core=core, stdout=-1))
    recorder = RetirementRecorder(keep=True)
    session.machine.cpus[0].core.listen(recorder)
    session.run()
    return [(branch[0], branch[1]) for branch in recorder.take_branches() if branch[4]]
