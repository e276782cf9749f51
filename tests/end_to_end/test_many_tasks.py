"""Processes on one CPU and on several: they do the same, take turns, and every instruction of theirs is counted."""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from emulator.cpu import Cpu
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.lifecycle import FIRST_PID
from emulator.linux.process.program import Program
from emulator.linux.process.task import INIT, Task
from emulator.machine import MachineConfig
from emulator.probes import Probe
from end_to_end.assembled import program
from guests import ISAS

# Four times: fork; the n-th child counts down from 20,000 and exits with n. Then four times: wait4(-1, &status), add up
# the exit statuses, which are the parent's own in the end.
FORKS = {
    "aarch64": "130080d2200280d2010080d2881b80d2010000d4800200b4730600917f1200f121ffff54140080d2950080d200008092"
    "e14300d1020080d2030080d2882080d2010000d4e1035fb8217c08539402018bb50600f1c1feff54e00314aac80b80d2"
    "010000d401c489d2210400f1e1ffff5460060091c80b80d2010000d4",
    "x86_64": "31dbb8390000000f0585c07441ffc383fb0475ee4531e441bd0400000048c7c7ffffffff488d7424f031d24531d2b83d"
    "0000000f058b4424f0c1e8084101c441ffcd75d94489e7b8e70000000f05b9204e0000ffc975fc8d7b01b8e70000000f"
    "05",
}
# AArch64: 1, 8 a fork, 2, 11 a wait, 3 to exit; a child 2 + 40,000 + 3.
# x86-64: 1, 7 a fork, 2, 11 a wait, 3; a child 3 + 40,000 + 3.
INSTRUCTIONS = {
    "aarch64": 1 + 4 * 8 + 2 + 4 * 11 + 3 + 4 * 40_005,
    "x86_64": 1 + 4 * 7 + 2 + 4 * 11 + 3 + 4 * 40_006,
}


def forking_machine(isa: str, directory: Path, cpus: int, quantum: int = 1000) -> LinuxMachine:
    path = str(program(directory / "forks", isa, FORKS[isa]))
    machine = LinuxMachine(MachineConfig(isa, cpus=cpus, quantum=quantum))
    machine.start(Program(path, (path,), cwd=str(directory), stdin=-1, stdout=-1, stderr=-1))
    return machine


def instructions(machine: LinuxMachine) -> int:
    return sum(cpu.core.total(Probe.INST_RETIRED) for cpu in machine.cpus)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("cpus", "quantum"), [(1, 1000), (2, 1000), (4, 1000), (4, 77), (4, 1_000_000)])
def test_processes_do_and_count_the_same_on_any_machine(isa: str, cpus: int, quantum: int, tmp_path: Path) -> None:
    machine = forking_machine(isa, tmp_path, cpus, quantum)
    assert os.waitstatus_to_exitcode(machine.run()) == 1 + 2 + 3 + 4
    assert instructions(machine) == INSTRUCTIONS[isa]
    assert sorted(machine.kernel.tasks) == [INIT, FIRST_PID]  # the others have been waited for


@pytest.mark.parametrize("isa", ISAS)
def test_four_cpus_do_in_a_quarter_of_the_time_what_one_does(isa: str, tmp_path: Path) -> None:
    times = {}
    for cpus in (1, 4):
        machine = forking_machine(isa, tmp_path, cpus)
        machine.run()
        times[cpus] = machine.clock.elapsed_ns()
    assert times[1] == INSTRUCTIONS[isa]  # nobody waits while another could go on; a cycle is 1 ns
    assert 40_000 < times[4] < 42_000


Told = list[tuple[object, ...]]


def _note_switch(told: Told, cpu: Cpu, previous: Task | None, following: Task | None, preempted: bool) -> None:
    told.append((cpu.number, cpu.core.cycles, previous and previous.tid, following and following.tid, preempted))


def _note_migration(told: Told, task: Task, old: Cpu, new: Cpu) -> None:
    told.append((task.tid, old.number, new.number))


@pytest.mark.parametrize("cpus", [1, 4])
def test_switches_and_migrations_are_told_and_two_runs_are_alike(cpus: int, tmp_path: Path) -> None:
    runs = []
    for _ in range(2):
        machine = forking_machine("aarch64", tmp_path, cpus)
        told: Told = []
        tracepoints = machine.kernel.tracepoints

        tracepoints.sched_switch.subscribe(partial(_note_switch, told))
        tracepoints.sched_migrate_task.subscribe(partial(_note_migration, told))
        machine.run()
        runs.append(told)
    assert runs[0] == runs[1]
    assert len(runs[0]) >= 5


@pytest.mark.parametrize("isa", ISAS)
def test_what_waits_gets_the_cpu_when_a_slice_is_over(isa: str, tmp_path: Path) -> None:
    """Four children of 40,000 cycles on one CPU, in slices of 10,000: 12 times one that could go on makes way."""
    machine = forking_machine(isa, tmp_path, 1)
    machine.kernel.dispatcher.slice_cycles = 10_000
    preempted: list[int] = []
    machine.kernel.tracepoints.sched_switch.subscribe(
        lambda cpu, previous, following, could_go_on: preempted.append(cpu.core.cycles) if could_go_on else None
    )
    machine.run()
    assert instructions(machine) == INSTRUCTIONS[isa]
    assert 12 <= len(preempted) <= 17
    assert all(later - earlier == 10_000 for earlier, later in pairwise(preempted[1:10]))
