"""Programs that print what system calls answer: the same on this machine, for both ISAs, as natively on this Linux."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from c_programs import build
from emulator.linux.machine import LinuxMachine
from emulator.linux.process.program import Program
from emulator.machine import MachineConfig

HOST_ISA = platform.machine()
ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}  # the library leaves restartable sequences to the program
TIMEOUT_S = 300


def native(source: Path, directory: Path) -> list[str]:
    """What the program prints here, compiled for this host. `directory` is its current one."""
    program = build(source, HOST_ISA, directory / "native", "-w")
    done = subprocess.run(
        [program], cwd=directory, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S, umask=0o022, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def ours(source: Path, directory: Path, isa: str, cpus: int = 1) -> tuple[list[str], list[str]]:
    """What it prints on this machine, and what the user is told."""
    program = build(source, isa, directory / "program", "-w")
    working = directory / "ours"
    working.mkdir()
    messages: list[str] = []
    output = directory / "output"
    with output.open("wb") as out, open(os.devnull, "rb") as null:
        machine = LinuxMachine(MachineConfig(isa=isa, memory_bytes=512 << 20, cpus=cpus))
        machine.kernel.messages = messages.append
        descriptors = null.fileno(), out.fileno(), out.fileno()
        machine.start(Program(str(program), ("program",), tuple(ENVIRONMENT.items()), str(working), *descriptors))
        status = machine.run()
    text = output.read_text()
    assert status == 0, (text, messages)
    return text.splitlines(), messages
