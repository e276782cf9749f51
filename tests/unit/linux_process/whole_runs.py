"""Programs that run to their end on a machine of their own, for what they do to it; they say nothing."""

from __future__ import annotations

import os
from pathlib import Path

from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig
from emulator.probes import Probe


def run_program(config: MachineConfig, program: Path, *arguments: str) -> LinuxMachine:
    """The machine, after the program has succeeded."""
    machine = LinuxMachine(config)
    argv = (str(program), *arguments)
    machine.start(Program(str(program), argv, (), str(program.parent), stdin=-1, stdout=-1, stderr=-1))
    assert os.waitstatus_to_exitcode(machine.run()) == 0
    return machine


def total(machine: LinuxMachine, probe: Probe) -> int:
    """Of all CPUs."""
    return sum(cpu.core.total(probe) for cpu in machine.cpus)
