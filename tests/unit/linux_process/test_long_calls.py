"""Calls that take long come back between their parts, where the user's signals and limits are looked for."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from calls import interrupted, result_of
from emulator.linux.errors import LinuxError
from emulator.linux.fs.file import O_RDWR
from emulator.linux.machine import LinuxMachine
from emulator.linux.mm.mapping import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_NORESERVE,
    MAP_POPULATE,
    MAP_PRIVATE,
    MAP_SHARED,
    PAGE_SHIFT,
    PROT_READ,
    PROT_WRITE,
)
from emulator.linux.mm.mm import POPULATED_PAGES
from emulator.linux.process.program import Program
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping, Wake
from emulator.linux.signals.signal import SIGKILL, SignalInfo
from emulator.linux.syscalls import table
from emulator.linux.syscalls.identity import RANDOM_PORTION
from emulator.linux.syscalls.memory import (
    MADV_POPULATE_READ,
    MADV_POPULATE_WRITE,
    MCL_CURRENT,
    MINCORE_BYTES,
    MS_SYNC,
    SYNCED_PAGES,
)
from emulator.machine import MachineConfig
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
    machine = LinuxMachine(MachineConfig("x86_64", memory_bytes=64 << 20))
    machine.start(Program(str(path), ("program",), (), str(tmp_path)))
    return machine.kernel.tasks[1000]


def started(task: Task, name: str, *arguments: int) -> Sleeping[int]:
    """A call that may come back before it is done."""
    row = next(row for row in table.load() if row.name == name)
    padded = tuple(argument & (1 << 64) - 1 for argument in (*arguments, 0, 0, 0, 0, 0, 0))[:6]
    call = row.compile()(task, padded)
    assert isinstance(call, Generator)
    return call


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
    call = started(task, name, *arguments)
    before = task.mm.resident_pages()
    assert next(call).works_cycles > 0
    assert task.mm.resident_pages() - before <= POPULATED_PAGES
    task.signals.post(SignalInfo(SIGKILL))
    with pytest.raises((StopIteration, LinuxError)):  # nothing is left to do for one that is killed
        call.send(Wake.CONTINUE)
    assert task.mm.resident_pages() - before <= POPULATED_PAGES


def test_msync_of_many_pages_comes_back_between_parts(task: Task, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file_on_host:
        file_on_host.truncate(2 * SYNCED_PAGES << PAGE_SHIFT)
    file = task.kernel.file_tree.open(task, str(tmp_path / "file"), O_RDWR)
    content = file.content()
    task.mm.map(HUGE, 2 * SYNCED_PAGES << PAGE_SHIFT, RW, MAP_SHARED | MAP_FIXED, content)
    for page in range(2 * SYNCED_PAGES):
        task.mm.write(HUGE + (page << PAGE_SHIFT), b"written")
    call = started(task, "msync", HUGE, 2 * SYNCED_PAGES << PAGE_SHIFT, MS_SYNC)
    assert next(call).works_cycles > 0
    on_host = (tmp_path / "file").read_bytes()
    assert on_host[(SYNCED_PAGES - 1) << PAGE_SHIFT :].startswith(b"written")
    assert not any(on_host[SYNCED_PAGES << PAGE_SHIFT :])
    assert result_of(call, interrupted) == 0
    assert (tmp_path / "file").read_bytes() == b"written".ljust(1 << PAGE_SHIFT, b"\0") * (2 * SYNCED_PAGES)


def test_mincore_of_a_huge_range_comes_back_between_parts(task: Task) -> None:
    task.mm.map(1 << 40, 3 * MINCORE_BYTES, RW, PRIVATE | MAP_FIXED | MAP_NORESERVE)
    task.mm.map(HUGE, 3 * MINCORE_BYTES >> PAGE_SHIFT, RW, PRIVATE | MAP_FIXED)
    task.mm.write((1 << 40) + MINCORE_BYTES, b"there")
    call = started(task, "mincore", 1 << 40, 3 * MINCORE_BYTES, HUGE)
    assert next(call).works_cycles > 0
    assert call.send(Wake.CONTINUE).works_cycles > 0
    assert task.mm.read(HUGE + (MINCORE_BYTES >> PAGE_SHIFT), 2) == b"\1\0"
    task.signals.post(SignalInfo(SIGKILL))
    with pytest.raises(StopIteration):
        call.send(Wake.CONTINUE)


def test_much_randomness_comes_back_between_parts(task: Task) -> None:
    task.mm.map(HUGE, 3 * RANDOM_PORTION, RW, PRIVATE | MAP_FIXED)
    call = started(task, "getrandom", HUGE, 3 * RANDOM_PORTION, 0)
    assert next(call).works_cycles > 0
    assert not any(task.mm.read(HUGE + RANDOM_PORTION, 64))
    task.signals.post(SignalInfo(SIGKILL))
    with pytest.raises(StopIteration) as end:
        call.send(Wake.CONTINUE)
    assert end.value.value == RANDOM_PORTION
