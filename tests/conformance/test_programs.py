"""Do real programs run unchanged? Output, errors and exit status equal to qemu-user's; table in corpus.toml."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

import reference
import require
from conformance.corpus import ARCHITECTURES, ENVIRONMENT, Case, cases, write_files
from emulator.linux.program import Program
from emulator.machine import Machine, MachineConfig
from emulator.probes import Probe


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_status: int
    stdout: bytes
    stderr: bytes


def run_here(case: Case, executable: Path, sysroot: Path, directory: Path) -> tuple[Outcome, int]:
    """What the program did on our machine, and how many instructions it retired."""
    machine = Machine(MachineConfig(case.isa, sysroot=str(sysroot)))
    out, err = directory.with_suffix(".out"), directory.with_suffix(".err")
    stdin = directory / case.stdin if case.stdin else Path(os.devnull)
    with stdin.open("rb") as standard_input, out.open("wb") as output, err.open("wb") as errors:
        machine.start(
            Program(
                str(executable),
                (executable.name, *case.arguments),
                environment=tuple(ENVIRONMENT.items()),
                cwd=str(directory),
                stdin=standard_input.fileno(),
                stdout=output.fileno(),
                stderr=errors.fileno(),
            )
        )
        status = machine.run()
    outcome = Outcome(os.waitstatus_to_exitcode(status), out.read_bytes(), err.read_bytes())
    return outcome, machine.cpus[0].core.total(Probe.INST_RETIRED)


def run_reference(case: Case, executable: Path, sysroot: Path, directory: Path) -> reference.QemuRun:
    return reference.qemu_counts(
        case.isa,
        [executable.name, *case.arguments],
        ENVIRONMENT,
        executable=str(executable),
        sysroot=sysroot,
        stdin=(directory / case.stdin).read_bytes() if case.stdin else b"",
        cwd=directory,
    )


@pytest.mark.parametrize("case", cases(), ids=str)
def test_program_behaves_as_under_qemu(case: Case, tmp_path: Path) -> None:
    sysroot = require.debian_tree(ARCHITECTURES[case.isa], case.package)
    executable = sysroot / case.file
    directory = tmp_path / "work"
    directory.mkdir()
    write_files(directory)
    expected = run_reference(case, executable, sysroot, directory)
    outcome, instructions = run_here(case, executable, sysroot, directory)
    assert outcome == Outcome(expected.exit_status, expected.stdout, expected.stderr)
    assert instructions == expected.total
