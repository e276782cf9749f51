"""A program recorded as the tool does; and another run of the same, of which all that retires is written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator._native import Core, RetirementRecorder
from emulator.cpu import Cpu
from emulator.linux.process.task import Task
from emulator.probes import Probe
from perfemu.events.attributes import Sampling
from perfemu.file_limits import ONE_FILE, Files
from perfemu.guest import Guest
from perfemu.recording import record
from perfemu.scope import scope_of_cpus
from perfemu.session import Session
from perfemu.symbols.finder import build_id_of
from scale.programs import Command

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}


def session(
    command: Command, core: str, cpus: int, directory: Path, units: Sequence[str] = (), root: Path | None = None
) -> Session:
    """Of the working directory `directory`. Output goes nowhere. `root`: of another machine's Debian."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    binds = [f"{directory}:{directory}:rw"]
    if root is not None:
        binds = [f"{root}:/", f"{root}/bin/dash:/bin/sh", *binds]
    return Session(
        Guest(
            command.argv,
            core=core,
            cpus=cpus,
            units=units,
            cwd=directory,
            binds=binds,
            environment=ENVIRONMENT,
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
        )
    )


def recorded(
    run: Session, event: str, file: Path, aux_pages: int, sampling: Sampling | None = None, *, build_ids: bool = False
) -> int:
    """How many instructions it had."""
    ids = build_id_of if build_ids else None
    record(run, [event], sampling or Sampling(), str(file), build_id_of=ids, files=Files(aux_pages=aux_pages))
    return sum(cpu.core.total(Probe.INST_RETIRED) for cpu in run.machine.cpus)


def sampled_on_cpus(run: Session, events: Sequence[str], file: Path, sampling: Sampling, pages: int = 0) -> None:
    """All that the CPUs execute: what they sample then does not depend on which task's turn it is. `pages`: of the AUX
    area, if there is one."""
    scope = scope_of_cpus(True, None, run.guest.cpus)
    record(run, events, sampling, str(file), scope=scope, files=Files(aux_pages=pages) if pages else ONE_FILE)


@dataclass(frozen=True, slots=True)
class Turn:
    """Of a task on a CPU: how many events there had been there when it began and when it ended, for each probe."""

    tid: int
    cpu: int
    began: tuple[int, ...]
    ended: tuple[int, ...]


class Turns:
    """All of a run, in their order, heard of as the kernel switches."""

    def __init__(self, run: Session, *probes: Probe) -> None:
        self.turns: list[Turn] = []
        self._probes = probes
        self._began: dict[int, tuple[int, tuple[int, ...]]] = {}  # by CPU: whose it is
        tracepoints = run.machine.kernel.tracepoints
        tracepoints.sched_in.subscribe(self._begin)
        tracepoints.sched_out.subscribe(self._end)

    def _totals(self, cpu: Cpu) -> tuple[int, ...]:
        return tuple(cpu.core.total(probe) for probe in self._probes)

    def _begin(self, task: Task, cpu: Cpu) -> None:
        self._began[cpu.number] = task.tid, self._totals(cpu)

    def _end(self, task: Task, cpu: Cpu, following: Task | None) -> None:
        tid, began = self._began.pop(cpu.number)
        assert tid == task.tid
        self.turns.append(Turn(tid, cpu.number, began, self._totals(cpu)))


def instructions(core: Core, recorder: RetirementRecorder) -> None:
    """Each of them."""
    core.select(recorder, 1 << Probe.INST_RETIRED, 1)


def fetches(core: Core, recorder: RetirementRecorder) -> None:
    """Each instruction that accesses L1I: whose fetch it is named for."""
    core.select(recorder, 1 << Probe.L1I_ACCESS, 1)


def branches(core: Core, recorder: RetirementRecorder) -> None:
    core.listen(recorder)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Instructions of one CPU: of which all is written down."""

    probe: Probe
    distances: Sequence[int]  # events of it until the first, and from each to the next
    from_now: bool = False  # ... from when it was there, rather than from where it was due

    def listen(self, core: Core, recorder: RetirementRecorder) -> None:
        core.follow(recorder, 1 << self.probe, self.distances, self.from_now)


def write_ops(run: Session, wanted: Mapping[str, Sequence[Wanted]], directory: Path, *, fetched: bool = False) -> None:
    """The instructions that are wanted of each CPU, as files NAME.CPU of samples.OP; the addresses of all that retire,
    as retired.CPU, and with `fetched` those of all fetches, as fetched.CPU.

    Somebody wants each instruction, so that the core goes step by step.
    """
    listening: list[tuple[RetirementRecorder, int]] = []

    def open_file(cpu: Cpu, name: str, listen: Callable[[Core, RetirementRecorder], None], *, whole: bool) -> None:
        recorder = RetirementRecorder()
        path = directory / f"{name}.{cpu.number}"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        recorder.write_to(file, whole)
        listen(cpu.core, recorder)
        listening.append((recorder, file))

    for cpu in run.machine.cpus:
        open_file(cpu, "retired", instructions, whole=False)
        if fetched:
            open_file(cpu, "fetched", fetches, whole=False)
        for name, of_cpus in wanted.items():
            open_file(cpu, name, of_cpus[cpu.number].listen, whole=True)
    run.run()
    for recorder, file in listening:
        recorder.flush()
        os.close(file)


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
