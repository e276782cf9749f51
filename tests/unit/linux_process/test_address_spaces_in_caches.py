"""Caches know memory by what it is, and not by where a process sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import build
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.machine import MachineConfig
from emulator.probes import Probe
from guests import ISAS
from unit.linux_process.whole_runs import run_program, total

SOURCE = Path(__file__).with_name("processes.c")
CORES = {"x86_64": ("skylake", "zen5"), "aarch64": ("cortex-a55", "neoverse-n1")}
CASES = [(isa, core) for isa in ISAS for core in CORES[isa]]
COHERENCE = (Probe.INVALIDATED, Probe.SNOOP_HITM)


def built(isa: str, directory: Path) -> Path:
    program = directory / f"processes-{isa}"
    if not program.exists():
        build(SOURCE, isa, program)
    return program


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("processes")


def run(isa: str, core: str, directory: Path, *arguments: str, cpus: int = 2) -> LinuxMachine:
    return run_program(MachineConfig(isa, core=load_core(core), cpus=cpus), built(isa, directory), *arguments)


@pytest.mark.parametrize(("isa", "core"), CASES)
def test_processes_at_the_same_address_do_not_disturb_each_other(isa: str, core: str, directory: Path) -> None:
    """They share the pages of the program, which they read, and what one wrote before the other was there."""
    machine = run(isa, core, directory)
    for probe in COHERENCE:
        assert total(machine, probe) < 100


@pytest.mark.parametrize(("isa", "core"), CASES)
def test_processes_that_share_memory_take_it_from_each_other(isa: str, core: str, directory: Path) -> None:
    machine = run(isa, core, directory, "shared")
    for probe in COHERENCE:
        assert total(machine, probe) > 300
    again = run(isa, core, directory, "shared")
    assert [cpu.core.cycles for cpu in machine.cpus] == [cpu.core.cycles for cpu in again.cpus]


@pytest.mark.parametrize(("isa", "core"), CASES)
def test_on_one_cpu_nobody_is_asked(isa: str, core: str, directory: Path) -> None:
    for arguments in ((), ("shared",)):
        machine = run(isa, core, directory, *arguments, cpus=1)
        assert [total(machine, probe) for probe in COHERENCE] == [0, 0]
