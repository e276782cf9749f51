"""Threads on two CPUs that write to the same line: it goes back and forth, and nothing that they count gets lost."""

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

SOURCE = Path(__file__).with_name("sharing.c")
CORES = {"x86_64": "skylake", "aarch64": "neoverse-n1"}
TIMES = 20_000  # sharing.c


@pytest.fixture(scope="module", params=ISAS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    isa: str = request.param
    return isa, build(SOURCE, isa, tmp_path_factory.mktemp(isa) / "sharing")


def run(
    built: tuple[str, Path], *arguments: str, core: str = "ideal", cpus: int = 2, quantum: int = 1000
) -> LinuxMachine:
    isa, program = built
    return run_program(MachineConfig(isa, core=load_core(core), cpus=cpus, quantum=quantum), program, *arguments)


def cycles(machine: LinuxMachine) -> int:
    return max(cpu.core.cycles for cpu in machine.cpus)


def test_false_sharing_is_counted(built: tuple[str, Path]) -> None:
    near, far = (run(built, distance, core=CORES[built[0]], quantum=100) for distance in ("32", "128"))
    assert total(near, Probe.INST_RETIRED) == pytest.approx(total(far, Probe.INST_RETIRED), abs=100)
    for probe in (Probe.INVALIDATED, Probe.SNOOP_HITM, Probe.L1D_REFILL_LOAD):
        assert total(near, probe) > total(far, probe) + 100
    again = run(built, "32", core=CORES[built[0]], quantum=100)
    assert [cpu.core.cycles for cpu in again.cpus] == [cpu.core.cycles for cpu in near.cpus]


# How many times as long as apart the threads take at least, and how long a line takes from one CPU to the other.
SLOWER = {
    "x86_64": {"skylake": 2.8, "zen4": 1.2, "zen5": 1.2},
    "aarch64": {"cortex-a55": 2.0, "cortex-a72": 2.0, "neoverse-n1": 3.0},
}


def test_false_sharing_costs_every_core_time(built: tuple[str, Path]) -> None:
    """With turns of the default length, too: they become shorter while a line goes back and forth."""
    for core, times in SLOWER[built[0]].items():
        near, far = (run(built, distance, core=core) for distance in ("32", "128"))
        assert cycles(near) > times * cycles(far), core
        assert total(near, Probe.INST_RETIRED) == pytest.approx(total(far, Probe.INST_RETIRED), abs=200)


def test_one_cpu_has_nobody_to_share_with(built: tuple[str, Path]) -> None:
    machine = run(built, "32", core=CORES[built[0]], cpus=1)
    assert (total(machine, Probe.SNOOP), total(machine, Probe.INVALIDATED)) == (0, 0)


@pytest.mark.parametrize("quantum", [3, 10, 101, 1000])
def test_no_turn_ends_between_an_exclusive_load_and_its_store(built: tuple[str, Path], quantum: int) -> None:
    if built[0] != "aarch64":
        pytest.skip("x86 has no exclusive loads")
    machine = run(built, quantum=quantum)
    assert total(machine, Probe.STORE_EXCLUSIVE) - others(built) == 2 * TIMES


def others(built: tuple[str, Path]) -> int:
    """What the C library does of it, starting and ending a thread."""
    return total(run(built, "32", quantum=1_000_000), Probe.STORE_EXCLUSIVE)
