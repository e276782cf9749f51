"""perf_event_open as a guest sees it: guest_checks.c on a real core, both ISAs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from c_programs import build
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.linux.syscalls.table import ROWS
from emulator.machine import MachineConfig
from perfcore.events.drivers.arm_pmuv3 import ArmPmuV3
from perfcore.events.drivers.clock import software_clocks
from perfcore.events.drivers.intel_core import IntelCore
from perfcore.events.drivers.software import SoftwareDriver
from perfcore.events.subsystem import PerfEvents
from perfcore.events.syscall import install_syscall
from pmu.arm.pmuv3 import PmuV3
from pmu.intel.perfmon import Perfmon
from pmu.model import model
from unit.perf_events.trace_pmu import TracePmu

SOURCE = Path(__file__).with_name("guest_checks.c")
PMUS = {"x86_64": ("intel_arch_perfmon", Perfmon, IntelCore), "aarch64": ("armv8_pmuv3", PmuV3, ArmPmuV3)}


def machine_with_guest_pmu(isa: str) -> LinuxMachine:
    machine = LinuxMachine(MachineConfig(isa))
    kernel = machine.kernel
    name, device, driver = PMUS[isa]
    pmu_model = model(name)
    pmu = device(machine.cpus[0].core.add_bank(pmu_model.bank_size(pmu_model.counters)), pmu_model)
    pmu.grant_user_access(machine.cpus[0].system_registers)
    drivers = [driver(machine.cpus, [pmu]), SoftwareDriver(kernel), *software_clocks(kernel)]
    install_syscall(kernel, PerfEvents(kernel, drivers))
    return machine


def run(machine: LinuxMachine, program: Path, directory: Path) -> tuple[int, str]:
    output = directory / "output"
    with output.open("wb") as stdout, open(os.devnull, "rb") as stdin:
        descriptors = stdin.fileno(), stdout.fileno(), stdout.fileno()
        machine.start(Program(str(program), (str(program),), (), str(directory), *descriptors))
        return machine.run(), output.read_text()


@pytest.mark.parametrize("isa", PMUS)
def test_a_guest_gets_the_perf_events_it_may_expect(isa: str, tmp_path: Path) -> None:
    program = build(SOURCE, isa, tmp_path / "guest_checks")
    status, output = run(machine_with_guest_pmu(isa), program, tmp_path)
    assert [line for line in output.splitlines() if not line.startswith("ok ")] == ["done"]
    assert status == 0


@pytest.mark.parametrize("isa", PMUS)
def test_a_guest_reads_an_aux_area(isa: str, tmp_path: Path) -> None:
    """Of a unit that is registered at run time, and goes while the guest has an event of it."""
    program = build(SOURCE.with_name("aux_guest.c"), isa, tmp_path / "aux_guest")
    machine = LinuxMachine(MachineConfig(isa))
    kernel = machine.kernel
    events = PerfEvents(kernel, [SoftwareDriver(kernel)])
    install_syscall(kernel, events)
    pmu = TracePmu(kernel, most_pages=512)
    events.pmus.register(pmu)
    sign = next(row for row in ROWS if row.name == "getpgid").number(isa)
    kernel.tracepoints.sys_enter.subscribe(
        lambda task, number, arguments: events.unregister_pmu(pmu) if number == sign else None
    )
    status, output = run(machine, program, tmp_path)
    assert [line for line in output.splitlines() if not line.startswith("ok ")] == ["done"]
    assert status == 0
    made, freed = ([area for area in pmu.unit.areas if ("freed" in area) is freed] for freed in (False, True))
    assert len(made) == len(freed) == 5
