"""One program under qemu-user and on our machine: what it did, and the instructions that each function retired."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import reference
import require
from attribution import start_attribution, tally
from conformance.corpus import ENVIRONMENT, Case, differences, write_files
from conformance.equal_start import make_machine, start, surroundings
from conformance.functions import by_function
from debian import ARCHITECTURES
from emulator.core_file.core_file import CoreFile
from emulator.linux.configuration import LinuxConfig
from emulator.linux.mm.mapping import Mapping
from emulator.linux.process.program import Program
from emulator.linux.process.task import Task
from emulator.machine import MachineConfig
from emulator.probes import Probe


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_status: int
    stdout: bytes
    stderr: bytes


@dataclass
class Mapped:
    """Where files were mapped."""

    files: list[reference.FileMapping] = field(default_factory=list)

    def note(self, task: Task, mapping: Mapping) -> None:
        if mapping.file is not None:
            self.files.append((mapping.start, mapping.end, mapping.offset, mapping.file.path))


@dataclass(frozen=True, slots=True)
class Processor:
    """The same CPU as qemu calls it, and as we have it; None: reference.CPU, `ideal`."""

    qemu: str | None = None
    core: CoreFile | None = None

    def machine(self, isa: str) -> MachineConfig:
        return MachineConfig(isa, core=self.core) if self.core is not None else MachineConfig(isa)


LEAST = Processor()


@dataclass(frozen=True, slots=True)
class Place:
    """What a case runs on."""

    executable: Path
    sysroot: Path
    directory: Path
    processor: Processor

    def stdin(self, case: Case) -> Path:
        return self.directory / case.stdin if case.stdin else Path(os.devnull)


def run_here(
    case: Case, place: Place, run: reference.QemuRun, debug: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Outcome, Counter[str]]:
    """What the program did on our machine, and how many instructions it retired in each function."""
    machine = make_machine(place.processor.machine(case.isa), run, monkeypatch, LinuxConfig(sysroot=str(place.sysroot)))
    mapped = Mapped()
    machine.kernel.tracepoints.mmap.subscribe(mapped.note)
    core = machine.cpus[0].core
    out, err = place.directory.with_suffix(".out"), place.directory.with_suffix(".err")
    with place.stdin(case).open("rb") as stdin, out.open("wb") as stdout, err.open("wb") as stderr:
        program = Program(
            str(place.executable),
            (place.executable.name, *case.arguments),
            environment=tuple(ENVIRONMENT.items()),
            cwd=str(place.directory),
            stdin=stdin.fileno(),
            stdout=stdout.fileno(),
            stderr=stderr.fileno(),
        )
        start(machine, program)
        start_attribution(core)
        status = machine.run()
    counts = tally(core)
    assert sum(counts.values()) == core.total(Probe.INST_RETIRED)
    outcome = Outcome(os.waitstatus_to_exitcode(status), out.read_bytes(), err.read_bytes())
    return outcome, by_function(counts, mapped.files, debug)


def run_under_qemu(case: Case, place: Place) -> reference.QemuRun:
    return reference.qemu_counts(
        case.isa,
        [place.executable.name, *case.arguments],
        ENVIRONMENT,
        executable=str(place.executable),
        sysroot=place.sysroot,
        cpu=place.processor.qemu,
        stdin=place.stdin(case),
        cwd=place.directory,
    )


def compare(
    case: Case,
    executable: Path,
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    processor: Processor = LEAST,
) -> Outcome:
    """Run `executable` with the libraries in `tree` both ways: all must be equal but what the corpus names."""
    debug = require.debian_tree(ARCHITECTURES[case.isa], "libc6-dbg")
    place = Place(executable, surroundings(tree, tmp_path / "root"), tmp_path / "work", processor)
    write_files(place.directory)
    expected = run_under_qemu(case, place)
    shutil.rmtree(place.directory)
    write_files(place.directory)
    outcome, ours = run_here(case, place, expected, debug, monkeypatch)
    wanted = Outcome(expected.exit_status, expected.stdout, expected.stderr)
    assert outcome == wanted, f"\nours:   {outcome}\nqemu's: {wanted}"
    theirs = by_function(expected.by_address, expected.mappings, debug)
    different = {name: (ours[name], theirs[name]) for name in ours | theirs if ours[name] != theirs[name]}
    rows = differences()
    unnamed = {name: different[name] for name in different if not any(row.covers(case, name) for row in rows)}
    assert not unnamed, "".join(f"\n{name}: ours {a:,}, qemu's {b:,}" for name, (a, b) in sorted(unnamed.items()))
    return outcome
