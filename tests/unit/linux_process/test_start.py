"""A started program: its stack, its auxiliary vector, its place in memory, the order of what is told about it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.linux.random import Random
from emulator.machine import MachineConfig
from unit.linux_process.elf_builder import BASE, EM_AARCH64, EM_X86_64, elf

MACHINES = {"x86_64": EM_X86_64, "aarch64": EM_AARCH64}
ARGUMENTS = ("program", "one", "")
ENVIRONMENT = (("HOME", "/root"), ("EMPTY", ""))
AT_PHDR, AT_ENTRY, AT_RANDOM, AT_EXECFN, AT_PLATFORM, AT_HWCAP = 3, 9, 25, 31, 15, 16


def started(isa: str, directory: Path, seed: int = 1) -> LinuxMachine:
    path = directory / f"program-{isa}"
    path.write_bytes(elf(machine=MACHINES[isa]))
    path.chmod(0o755)
    machine = LinuxMachine(MachineConfig(isa, seed=seed))
    machine.start(Program(str(path), ARGUMENTS, ENVIRONMENT, str(directory)))
    return machine


def stack_words(machine: LinuxMachine) -> tuple[int, list[int]]:
    mm = machine.kernel.tasks[1000].mm
    core = machine.cpus[0].core
    sp = core.read_register(machine.kernel.architecture.sp)
    data = mm.read(sp, (mm.program.argument_start - sp) & -8)
    return sp, list(struct.unpack(f"<{len(data) // 8}Q", data))


@pytest.mark.parametrize("isa", MACHINES)
def test_the_stack_holds_arguments_environment_and_the_vector(isa: str, tmp_path: Path) -> None:
    machine = started(isa, tmp_path)
    mm = machine.kernel.tasks[1000].mm
    sp, words = stack_words(machine)
    assert sp % 16 == 0
    assert words[0] == 3
    assert [mm.read_string(address, 100) for address in words[1:4]] == [b"program", b"one", b""]
    assert words[4] == 0
    assert [mm.read_string(address, 100) for address in words[5:7]] == [b"HOME=/root", b"EMPTY="]
    assert words[7] == 0
    pairs = dict(zip(words[8::2], words[9::2], strict=False))
    assert pairs[AT_PHDR] == BASE + 64
    assert pairs[AT_ENTRY] == BASE + 0x800
    assert pairs[AT_HWCAP] == machine.kernel.architecture.hwcap(machine.kernel.processor)
    assert mm.read_string(pairs[AT_EXECFN], 4096) == str(tmp_path / f"program-{isa}").encode()
    assert mm.read_string(pairs[AT_PLATFORM], 100) == isa.encode()
    assert mm.read(pairs[AT_RANDOM], 16) != bytes(16)
    assert mm.program.auxiliary_vector[-16:] == bytes(16)


def test_random_bytes_follow_from_the_seed(tmp_path: Path) -> None:
    def random_bytes(seed: int) -> bytes:
        machine = started("x86_64", tmp_path, seed)
        _, words = stack_words(machine)
        pairs = dict(zip(words[8::2], words[9::2], strict=False))
        return machine.kernel.tasks[1000].mm.read(pairs[AT_RANDOM], 16)

    assert random_bytes(1) == random_bytes(1)
    assert random_bytes(1) != random_bytes(2)


def test_no_random_word_is_zero() -> None:
    generator = Random(0)
    assert all(generator.word() for _ in range(10_000))
    assert len(generator.bytes(13)) == 13


def test_what_is_told_when_a_program_starts_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf())
    path.chmod(0o755)
    machine = LinuxMachine(MachineConfig("x86_64"))
    told: list[str] = []
    tracepoints = machine.kernel.tracepoints
    tracepoints.task_exec.subscribe(lambda task: told.append("exec"))
    tracepoints.task_comm.subscribe(lambda task, by_exec: told.append(f"comm {task.comm} {by_exec}"))
    tracepoints.mmap.subscribe(lambda task, mapping: told.append(f"mmap {os.path.basename(mapping.path)}"))
    tracepoints.sched_in.subscribe(lambda task, cpu: told.append("in"))
    tracepoints.sys_enter.subscribe(lambda task, number, arguments: told.append(f"enter {number} {arguments[0]}"))
    tracepoints.task_exit.subscribe(lambda task: told.append(f"exit {task.exit_code}"))
    tracepoints.sched_out.subscribe(lambda task, cpu, following: told.append("out"))
    task = machine.kernel.lifecycle.prepare(Program(str(path), ("program",), cwd=str(tmp_path)))
    assert (task.pid, task.ppid, machine.kernel.current(machine.cpus[0])) == (1000, 999, task)
    machine.start(Program(str(path), ("program",), cwd=str(tmp_path)))
    assert machine.run() == 7 << 8
    mapped = [f"mmap {name}" for name in ("[stack]", "program", "[vvar]", "[vdso]")]
    assert told == ["exec", "comm program True", *mapped, "in", "enter 60 7", "exit 1792", "out"]


def test_a_timer_fires_at_its_exact_cycle(tmp_path: Path) -> None:
    # the program is three instructions: mov, mov, syscall
    machine = started("x86_64", tmp_path)
    core = machine.cpus[0].core
    seen: list[tuple[int, int]] = []
    for cycle in (1, 2):
        machine.kernel.add_timer(cycle, lambda: seen.append((core.cycles, core.pc)))
    machine.run()
    assert seen == [(1, BASE + 0x805), (2, BASE + 0x80A)]


def test_two_machines_run_alike(tmp_path: Path) -> None:
    runs = [started("x86_64", tmp_path) for _ in range(2)]
    assert [machine.run() for machine in runs] == [7 << 8] * 2
    assert runs[0].cpus[0].core.registers() == runs[1].cpus[0].core.registers()
    assert runs[0].cpus[0].core.cycles == runs[1].cpus[0].core.cycles == 3


def test_an_unknown_syscall_is_named_once(tmp_path: Path) -> None:
    # mov eax, 451 (cachestat); syscall; mov eax, 451; syscall; mov edi, eax; mov eax, 60; syscall
    code = bytes.fromhex("b8c3010000 0f05 b8c3010000 0f05 f7d8 89c7 b83c000000 0f05")
    path = tmp_path / "program"
    path.write_bytes(elf(code=code))
    path.chmod(0o755)
    machine = LinuxMachine(MachineConfig("x86_64"))
    messages: list[str] = []
    machine.kernel.messages = messages.append
    machine.start(Program(str(path), ("program",), cwd=str(tmp_path)))
    assert machine.run() == 38 << 8  # ENOSYS
    assert messages == ["syscall 451 (cachestat) is not modelled: ENOSYS"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("0f0b", 0x04, id="ud2: SIGILL"),
        pytest.param("cc", 0x05, id="int3: SIGTRAP"),
        pytest.param("31c031c9f7f1", 0x08, id="div by zero: SIGFPE"),
        pytest.param("48a10000000000000000", 0x0B, id="load from 0: SIGSEGV"),
        pytest.param("f4", 0x0B, id="hlt: SIGSEGV"),
        pytest.param("c5f0570000", 0x04, id="vxorps: SIGILL, there is no AVX"),
        pytest.param("0f01d0", 0x04, id="xgetbv without OSXSAVE: SIGILL"),
        pytest.param("31c90f33", 0x0B, id="rdpmc without permission: SIGSEGV"),
    ],
)
def test_a_crash_ends_with_its_signal_and_without_a_core(code: str, status: int, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf(code=bytes.fromhex(code)))
    path.chmod(0o755)
    machine = LinuxMachine(MachineConfig("x86_64"))
    machine.kernel.messages = lambda message: None
    machine.start(Program(str(path), ("program",), cwd=str(tmp_path)))
    assert machine.run() == status


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("00000000", 0x04, id="udf: SIGILL"),
        pytest.param("000020d4", 0x05, id="brk: SIGTRAP"),
        pytest.param("000080d2 000040f9", 0x0B, id="load from 0: SIGSEGV"),
        pytest.param("00003cd5", 0x04, id="mrs of an EL2 register: SIGILL"),
        pytest.param("e00320f8", 0x04, id="ldadd: SIGILL, there are no LSE atomics"),
    ],
)
def test_a_crash_on_aarch64(code: str, status: int, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(elf(code=bytes.fromhex(code), machine=EM_AARCH64))
    path.chmod(0o755)
    machine = LinuxMachine(MachineConfig("aarch64"))
    machine.kernel.messages = lambda message: None
    machine.start(Program(str(path), ("program",), cwd=str(tmp_path)))
    assert machine.run() == status
