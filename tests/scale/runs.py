"""A program recorded as the tool does; and another run of the same, of which all that retires is written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from emulator._native import Core, RetirementRecorder
from emulator.probes import Probe
from perfemu.events.attributes import Sampling
from perfemu.file_limits import Files
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.session import Session
from scale.programs import Command

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}


def session(command: Command, core: str, cpus: int, directory: Path, units: Sequence[str] = ()) -> Session:
    """Of the working directory `directory`. Output goes nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    return Session(
        Guest(
            command.argv,
            core=core,
            cpus=cpus,
            units=units,
            cwd=directory,
            binds=[f"{directory}:{directory}:rw"],
            environment=ENVIRONMENT,
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
        )
    )


def recorded(run: Session, event: str, file: Path, aux_pages: int, sampling: Sampling | None = None) -> int:
    """How many instructions it had."""
    record(run, [event], sampling or Sampling(), str(file), files=Files(aux_pages=aux_pages))
    return sum(cpu.core.total(Probe.INST_RETIRED) for cpu in run.machine.cpus)


def instructions(core: Core, recorder: RetirementRecorder) -> None:
    """Each of them."""
    core.select(recorder, 1 << Probe.INST_RETIRED, 1)


def branches(core: Core, recorder: RetirementRecorder) -> None:
    core.listen(recorder)


def write_truth(run: Session, listen: Callable[[Core, RetirementRecorder], None], directory: Path) -> None:
    """A file for each CPU, by its number."""
    recorders, files = [], []
    for cpu in run.machine.cpus:
        recorder = RetirementRecorder()
        files.append(os.open(directory / str(cpu.number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        recorder.write_to(files[-1])
        listen(cpu.core, recorder)
        recorders.append(recorder)
    run.run()
    for recorder, file in zip(recorders, files, strict=True):
        recorder.flush()
        os.close(file)
