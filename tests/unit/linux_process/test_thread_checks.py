"""Do threads and processes get what thread_checks.c expects, for both ISAs, on one CPU and on four?"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import require
from c_programs import build
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import ISAS

SOURCE = Path(__file__).with_name("thread_checks.c")


@pytest.fixture(scope="module", params=ISAS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    isa: str = request.param
    return isa, build(SOURCE, isa, tmp_path_factory.mktemp(isa) / "thread_checks", "-w")


def run(isa: str, program: Path, cpus: int) -> tuple[int, str, list[int]]:
    """Status, output and the instructions of each CPU."""
    machine = LinuxMachine(MachineConfig(isa, cpus=cpus))
    machine.kernel.messages = lambda message: None
    output = program.with_suffix(".out")
    with output.open("wb") as stdout, open(os.devnull, "rb") as stdin:
        descriptors = stdin.fileno(), stdout.fileno(), stdout.fileno()
        machine.start(Program(str(program), (str(program),), (), str(program.parent), *descriptors))
        status = machine.run()
    return status, output.read_text(), [cpu.core.total(Probe.INST_RETIRED) for cpu in machine.cpus]


@pytest.mark.parametrize("cpus", [1, 4])
def test_threads_and_processes_get_what_they_may_expect_always_the_same_way(cpus: int, built: tuple[str, Path]) -> None:
    status, output, instructions = first = run(*built, cpus)
    failed = [line for line in output.splitlines() if not line.startswith("ok ")]
    assert failed == ["passed"]
    assert status == 0
    assert run(*built, cpus) == first
    assert all(instructions)  # no CPU was idle all the time


def test_the_host_does_what_the_checks_expect(tmp_path: Path) -> None:
    program = tmp_path / "thread_checks"
    subprocess.run(
        [require.command("gcc", "gcc"), "-O1", "-w", "-pthread", str(SOURCE), "-o", str(program)], check=True
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=300)
    assert [line for line in done.stdout.splitlines() if not line.startswith("ok ")] == ["passed"]
