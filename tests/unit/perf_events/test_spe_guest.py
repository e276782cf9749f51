"""Arm's Statistical Profiling Extension as a guest has it: spe_guest.c."""

from __future__ import annotations

from pathlib import Path

from c_programs import build
from emulator.core_file.core_file import load_core
from emulator.linux.machine import LinuxMachine
from emulator.machine import MachineConfig
from perfcore.events.subsystem import PerfEvents
from perfcore.events.syscall import install_syscall
from perfemu.cores import pmu_of
from perfemu.units import unit_drivers
from unit.perf_events.test_guest_checks import run

SOURCE = Path(__file__).with_name("spe_guest.c")


def test_a_guest_profiles_itself(tmp_path: Path) -> None:
    core = load_core("neoverse-n1")
    machine = LinuxMachine(MachineConfig("aarch64", core=core))
    units = unit_drivers(machine.kernel, pmu_of(core, "aarch64"))
    install_syscall(machine.kernel, PerfEvents(machine.kernel, [*units]))
    status, output = run(machine, build(SOURCE, "aarch64", tmp_path / "spe_guest"), tmp_path)
    assert [line for line in output.splitlines() if not line.startswith("ok ")] == []
    assert output.count("ok ") > 40
    assert status == 0
