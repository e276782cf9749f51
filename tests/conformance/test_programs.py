"""Do real programs run unchanged? Output, exit status and instructions equal to qemu-user's; table in corpus.toml.

Instructions are compared from the end of start-up on: before it the C library reads the auxiliary vector, of which qemu
makes one entry less, and asks CPUID for caches that qemu's processors describe otherwise. For a static program
start-up ends with the first system call; for a dynamic one when the loader opens its first file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

import reference
import require
from conformance.corpus import ARCHITECTURES, ENVIRONMENT, Case, cases, write_files
from emulator.linux.program import Program
from emulator.linux.task import Task
from emulator.machine import Machine, MachineConfig
from emulator.probes import Probe

OPENAT = {"aarch64": 56, "x86_64": 257}
ANY = -1


@dataclass(frozen=True, slots=True)
class Outcome:
    exit_status: int
    stdout: bytes
    stderr: bytes


class StartUp:
    """Notes the instructions up to and with the first system call of that number (ANY: the first of all)."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.instructions = 0
        self._machine = machine
        self._number = number
        machine.kernel.tracepoints.sys_enter.subscribe(self._enter)

    def _enter(self, task: Task, number: int, arguments: tuple[int, ...]) -> None:
        if self._number in (ANY, number):
            self.instructions = self._machine.cpus[0].core.total(Probe.INST_RETIRED)
            self._machine.kernel.tracepoints.sys_enter.unsubscribe(self._enter)


def start_up_ends_with(case: Case) -> int:
    return ANY if case.static else OPENAT[case.isa]


def run_here(case: Case, executable: Path, sysroot: Path, directory: Path) -> tuple[Outcome, int]:
    """What the program did on our machine, and how many instructions it retired after start-up."""
    machine = Machine(MachineConfig(case.isa, sysroot=str(sysroot)))
    start_up = StartUp(machine, start_up_ends_with(case))
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
    return outcome, machine.cpus[0].core.total(Probe.INST_RETIRED) - start_up.instructions


def run_reference(case: Case, executable: Path, sysroot: Path, directory: Path) -> reference.QemuRun:
    return reference.qemu_counts(
        case.isa,
        [executable.name, *case.arguments],
        ENVIRONMENT,
        executable=str(executable),
        sysroot=sysroot,
        start=start_up_ends_with(case),
        stdin=directory / case.stdin if case.stdin else None,
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
    assert abs(instructions - expected.total) <= case.may_differ_by
