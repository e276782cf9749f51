"""Branches as a core's listener hears of them: what a unit's records are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emulator._native import RetirementRecorder
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from perfemu.environment import DEFAULT_ENVIRONMENT


def taken_branches(program: Path, isa: str, core: str, arguments: Sequence[str] = ()) -> list[tuple[int, int]]:
    """(from, to) of each, of a program that has one task, as `perfemu` runs it."""
    machine = LinuxMachine(MachineConfig(isa, core=load_core(core)))
    recorder = RetirementRecorder(keep=True)
    machine.cpus[0].core.listen(recorder)
    machine.start(Program(str(program), (str(program), *arguments), DEFAULT_ENVIRONMENT, stdout=-1))
    machine.run()
    return [(from_, to) for from_, to, _, _, taken, _ in recorder.take_branches() if taken]
