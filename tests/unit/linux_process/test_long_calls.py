"""Calls that take long come back between their parts, where the user's signals and limits are looked for."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from emulator.linux.errors import LinuxError
from emulator.linux.mapping import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_POPULATE,
    MAP_PRIVATE,
    PAGE_SHIFT,
    PROT_READ,
    PROT_WRITE,
)
from emulator.linux.mm import POPULATED_PAGES
from emulator.linux.program import Program
from emulator.linux.signal import SIGKILL, SignalInfo
from emulator.linux.syscalls import table
from emulator.linux.syscalls.memory import MADV_POPULATE_READ, MADV_POPULATE_WRITE, MCL_CURRENT
from emulator.linux.task import Task
from emulator.linux.waiting import Wake
from emulator.machine import Machine, MachineConfig
from unit.linux_process.elf_builder import EM_X86_64, elf

HUGE = 1 << 32
HUGE_BYTES = 3 * POPULATED_PAGES << PAGE_SHIFT
RW = PROT_READ | PROT_WRITE
PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS


@pytest.fixture
def task(tmp_path: Path) -> Task:
    path = tmp_path / "program"
    path.write_bytes(elf(machine=EM_X86_64))
    path.chmod(0o755)
    machine = Machine(MachineConfig("x86_64", memory_bytes=64 << 20))
    machine.start(Program(str(path), ("program",), (), str(tmp_path)))
    return machine.kernel.tasks[1000]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mlock", (HUGE, HUGE_BYTES)),
        ("mlock2", (HUGE, HUGE_BYTES, 0)),
        ("mlockall", (MCL_CURRENT,)),
        ("madvise", (HUGE, HUGE_BYTES, MADV_POPULATE_READ)),
        ("madvise", (HUGE, HUGE_BYTES, MADV_POPULATE_WRITE)),
        ("mmap", (0, HUGE_BYTES, RW, PRIVATE | MAP_POPULATE, -1, 0)),
    ],
)
def test_bringing_in_much_memory_comes_back_between_parts(name: str, arguments: tuple[int, ...], task: Task) -> None:
    task.mm.map(HUGE, HUGE_BYTES, RW, PRIVATE | MAP_FIXED)
    row = next(row for row in table.load() if row.name == name)
    padded = tuple(argument & (1 << 64) - 1 for argument in (*arguments, 0, 0, 0, 0, 0, 0))[:6]
    call = row.compile()(task, padded)
    assert isinstance(call, Generator)
    before = task.mm.resident_pages()
    assert next(call).works_cycles > 0
    assert task.mm.resident_pages() - before <= POPULATED_PAGES
    task.signals.post(SignalInfo(SIGKILL))
    with pytest.raises((StopIteration, LinuxError)):  # nothing is left to do for one that is killed
        call.send(Wake.CONTINUE)
    assert task.mm.resident_pages() - before <= POPULATED_PAGES
