"""What a guest may ask for without bound: each has an end, and is an error there, not the host's memory."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from calls import interrupted, result_of
from emulator.linux.errors import (
    E2BIG,
    EAGAIN,
    EBADF,
    EFAULT,
    EFBIG,
    EMFILE,
    ENODEV,
    ENOMEM,
    ENOSPC,
    LinuxError,
)
from emulator.linux.fs.file import FileTable
from emulator.linux.fs.open_files import OpenFile
from emulator.linux.kernel import MOST_MESSAGES
from emulator.linux.machine import LinuxMachine
from emulator.linux.mm.mapping import (
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_NORESERVE,
    MAP_POPULATE,
    MAP_PRIVATE,
    MAP_SHARED,
    PAGE_SIZE,
)
from emulator.linux.mm.mapping_list import MAX_MAPPINGS
from emulator.linux.process.limits import RLIMIT_SIGPENDING, RLIMIT_STACK
from emulator.linux.process.program import Program
from emulator.linux.process.task import Task
from emulator.linux.syscalls import table
from emulator.linux.syscalls.user_vectors import MAX_BYTES, PORTION_BYTES
from emulator.machine import MachineConfig
from unit.linux_process.elf_builder import EM_AARCH64, EM_X86_64, elf

RW = 3
AT = 0x10_0000_0000  # where the tests' memory is
Call = Callable[..., int]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    path = tmp_path / "program"
    path.write_bytes(elf(machine=EM_X86_64))
    path.chmod(0o755)
    machine = LinuxMachine(MachineConfig("x86_64", memory_bytes=64 << 20))
    machine.start(Program(str(path), ("program",), (), str(tmp_path)))
    task = machine.kernel.tasks[1000]
    task.kernel.messages = lambda message: None  # type: ignore[attr-defined]
    task.mm.map(AT, 64 * PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)
    return task


@pytest.fixture
def call(task: Task) -> Call:
    rows = {row.name: row for row in table.load()}

    def run(name: str, *arguments: int) -> int:
        padded = tuple(argument & (1 << 64) - 1 for argument in (*arguments, 0, 0, 0, 0, 0, 0))[:6]
        try:
            return result_of(rows[name].compile()(task, padded), interrupted) or 0
        except LinuxError as error:
            return -error.code

    return run


def path(task: Task, text: str) -> int:
    task.mm.write(AT, text.encode() + b"\0")
    return AT


def test_a_huge_read_holds_a_portion_at_a_time(task: Task, call: Call, tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file_on_host:
        file_on_host.truncate(1 << 40)
    descriptor = call("open", path(task, "sparse"), 2)
    file = task.files.get(descriptor)
    sizes: list[int] = []
    read = file.read
    file.read = lambda task, to: sizes.append(to.left) or read(task, to)  # type: ignore[method-assign, func-returns-value]
    assert call("read", descriptor, AT, 1 << 62) == -EFAULT  # no process has such an address
    assert call("read", descriptor, AT, 1 << 46) == 64 * PAGE_SIZE  # which are there
    assert sizes == [PORTION_BYTES]


def test_a_huge_read_goes_on_over_portions(task: Task, call: Call, tmp_path: Path) -> None:
    length = PORTION_BYTES * 2 + 5
    data = bytes(range(251)) * (length // 251 + 1)
    (tmp_path / "file").write_bytes(data[:length])
    task.mm.map(AT << 1, length, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)
    descriptor = call("open", path(task, "file"), 2)
    assert call("read", descriptor, AT << 1, 1 << 46) == length
    assert task.mm.read(AT << 1, length) == data[:length]
    copy = call("open", path(task, "copy"), 0o102, 0o600)
    assert call("write", copy, AT << 1, length) == length
    assert (tmp_path / "copy").read_bytes() == data[:length]
    assert call("pread64", descriptor, AT << 1, 1 << 46, 7) == length - 7
    assert task.mm.read(AT << 1, 100) == data[7:107]


def test_a_write_of_more_than_is_mapped_says_how_far_it_came(task: Task, call: Call) -> None:
    there = PORTION_BYTES + 2 * PAGE_SIZE
    task.mm.map(AT << 1, there, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)
    null, file = call("open", path(task, "/dev/null"), 1), call("open", path(task, "file"), 0o102, 0o600)
    assert call("write", null, AT << 1, 1 << 62) == -EFAULT  # no process has such an address
    assert call("write", file, AT << 1, 1 << 46) == there
    assert call("write", null, AT << 1, 1 << 46) == MAX_BYTES  # it does not look


def test_vectors_of_huge_lengths(task: Task, call: Call) -> None:
    zero = call("open", path(task, "/dev/zero"), 2)
    task.mm.write(AT, struct.pack("<2Q", AT, 1 << 40) * 1024)
    assert call("readv", zero, AT, 1024) == 64 * PAGE_SIZE
    task.mm.write(AT, struct.pack("<2Q", AT, 1 << 40) * 1024)
    assert call("writev", zero, AT, 1024) == MAX_BYTES
    assert call("sendfile", zero, zero, 0, 1 << 62) == MAX_BYTES


def test_random_bytes_stop_where_memory_does(call: Call) -> None:
    assert call("getrandom", AT, 1 << 40, 0) == 64 * PAGE_SIZE
    assert call("getrandom", AT + 64 * PAGE_SIZE, 1 << 40, 0) == -EFAULT


def test_a_huge_file_in_memory_is_refused(task: Task, call: Call) -> None:
    descriptor = call("memfd_create", path(task, "x"), 0)
    assert call("ftruncate", descriptor, 1 << 62) == -ENOSPC
    assert call("fallocate", descriptor, 0, 1 << 62, 1 << 62) < 0
    assert call("pwrite64", descriptor, AT, 1, (1 << 63) - 2) < 0


def test_a_mapping_is_not_split_without_end(task: Task) -> None:
    mm = task.mm
    pages = 2 * MAX_MAPPINGS
    mm.map(AT << 1, pages * PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE)

    def split_all() -> None:
        for page in range(1, pages, 2):
            mm.protect((AT << 1) + page * PAGE_SIZE, PAGE_SIZE, 1)

    with pytest.raises(LinuxError) as caught:
        split_all()
    assert caught.value.code == ENOMEM
    assert MAX_MAPPINGS <= len(mm.mappings) <= MAX_MAPPINGS + 1
    with pytest.raises(LinuxError):
        mm.unmap((AT << 1) + (pages - 3) * PAGE_SIZE, PAGE_SIZE)
    mm.unmap(AT << 1, pages * PAGE_SIZE)  # what makes no hole is always possible
    assert len(mm.mappings) < 20


def test_shared_memory_comes_and_goes_for_ever(task: Task) -> None:
    """64 MiB of memory; each round takes 128 KiB that are neighbours, as long as there are such."""
    for _ in range(1000):
        address = task.mm.map(0, PAGE_SIZE, RW, MAP_SHARED | MAP_ANONYMOUS)
        task.mm.write(address, b"x")
        task.mm.unmap(address, PAGE_SIZE)


def test_the_lowest_descriptor_is_found_among_many() -> None:
    files = FileTable(limit=100_000)
    file = OpenFile.__new__(OpenFile)
    file._references = 0
    for number in range(100_000):
        assert files.install(file) == number
    with pytest.raises(LinuxError) as caught:
        files.install(file)
    assert caught.value.code == EMFILE
    files.close(70_000)
    files.close(500)
    assert [files.install(file, lowest=600), files.install(file)] == [70_000, 500]


def test_pipes_share_the_memory_of_files(task: Task, call: Call) -> None:
    task.fs.system.superblock.budget.limit_bytes = 5000
    assert call("pipe", AT) == 0
    reading, writing = struct.unpack("<2i", task.mm.read(AT, 8))
    assert call("write", writing, AT, 4096) == 4096
    assert call("write", writing, AT, 4096) == -ENOSPC
    assert call("read", reading, AT, 4096) == 4096
    assert call("write", writing, AT, 4096) == 4096


def test_pending_signals_have_a_limit(task: Task, call: Call) -> None:
    task.limits.set(RLIMIT_SIGPENDING, 10, 10)
    task.signals.blocked = 1 << 39  # signal 40
    task.mm.write(AT, struct.pack("<iii", 40, 0, -1).ljust(128, b"\0"))
    results = [call("rt_sigqueueinfo", task.pid, 40, AT) for _ in range(11)]
    assert results == [0] * 10 + [-EAGAIN]
    assert call("kill", task.pid, 40) == 0
    assert len(task.signals.shared.pending) == 10


def test_posix_timers_have_a_limit(task: Task, call: Call) -> None:
    task.limits.set(RLIMIT_SIGPENDING, 3, 3)
    assert [call("timer_create", 1, 0, AT) for _ in range(4)] == [0, 0, 0, -EAGAIN]


def test_timers_that_are_set_again_and_again_do_not_pile_up(task: Task, call: Call) -> None:
    for _ in range(10_000):
        call("alarm", 1000)
    assert len(task.kernel.timers._queue) < 100


@pytest.mark.parametrize("stack_limit", [8 << 20, (1 << 64) - 1])
def test_arguments_are_not_read_beyond_what_execve_takes(stack_limit: int, task: Task, call: Call) -> None:
    task.limits.set(RLIMIT_STACK, stack_limit, (1 << 64) - 1)
    program = path(task, "program")
    string, vector = AT + PAGE_SIZE, AT + 33 * PAGE_SIZE
    task.mm.write(string, b"a" * (31 * PAGE_SIZE) + b"\0")
    task.mm.write(vector, struct.pack("<Q", string) * 1000 + bytes(8))  # 127 MB
    assert call("execve", program, vector, 0) == -E2BIG


def test_dev_zero_is_mapped_as_memory(task: Task, call: Call) -> None:
    zero = call("open", path(task, "/dev/zero"), 2)
    private = call("mmap", 0, 2 * PAGE_SIZE, RW, MAP_PRIVATE, zero, 0)
    shared = call("mmap", 0, 2 * PAGE_SIZE, RW, MAP_SHARED, zero, 0)
    for address in (private, shared):
        assert task.mm.read(address, 8) == bytes(8)
        task.mm.write(address, b"x")
        assert task.mm.read(address, 2) == b"x\0"
    full = call("open", path(task, "/dev/full"), 2)
    assert call("mmap", 0, PAGE_SIZE, RW, MAP_PRIVATE, full, 0) == -ENODEV


def test_mincore_of_a_huge_mapping_needs_a_huge_vector(task: Task, call: Call) -> None:
    address = call("mmap", 0, 1 << 45, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    assert call("mincore", address, 1 << 45, AT) == -EFAULT
    task.mm.write(address + PAGE_SIZE, b"x")
    assert call("mincore", address, 3 * PAGE_SIZE, AT) == 0
    assert task.mm.read(AT, 3) == b"\0\1\0"


def test_select_looks_at_the_descriptors_that_are_asked_for(task: Task, call: Call) -> None:
    null = call("open", path(task, "/dev/null"), 2)
    task.mm.write(AT, (1 << null).to_bytes(128, "little") * 2)
    assert call("select", 1024, AT, AT + 128, 0, 0) == 2
    task.mm.write(AT, (1 << 900).to_bytes(128, "little"))
    assert call("select", 1024, AT, 0, 0, 0) == -EBADF


def test_messages_come_to_an_end_and_hold_no_control_characters(task: Task) -> None:
    said: list[str] = []
    kernel = task.kernel
    kernel.messages = said.append  # type: ignore[attr-defined]
    for number in range(2 * MOST_MESSAGES):
        kernel.name_once(f"{number} \x1b[2J \n \udcff")
    assert said[0] == "0 \\x1b[2J \\n \udcff"
    assert said[MOST_MESSAGES:] == ["further messages are not shown"]


@pytest.mark.parametrize("name", ["file", "/tmp/file"])
def test_times_before_1970_and_after_the_sun_are_told_as_they_were_set(name: str, task: Task, call: Call) -> None:
    call("open", path(task, name), 0o102, 0o600)
    for seconds in (-5, (1 << 62)):
        task.mm.write(AT + 512, struct.pack("<4q", seconds, 0, seconds, 1))
        if call("utimensat", -100, AT, AT + 512, 0) == 0:  # a host's file system may refuse
            assert call("newfstatat", -100, AT, AT + 1024, 0) == 0
            assert call("statx", -100, AT, 0, 0, AT + 1024) == 0
    task.mm.write(AT + 512, struct.pack("<4q", -5, 0, -5, 1))
    assert call("utimensat", -100, AT, AT + 512, 0) == 0
    assert call("newfstatat", -100, AT, AT + 1024, 0) == 0
    assert struct.unpack("<2q", task.mm.read(AT + 1024 + 88, 16)) == (-5, 1)  # st_mtime of asm/stat.h


def test_space_beyond_the_largest_file_is_refused(task: Task, call: Call) -> None:
    for name in ("file", "/tmp/file"):
        descriptor = call("open", path(task, name), 0o102, 0o600)
        assert call("fallocate", descriptor, 0, 1 << 62, 1 << 62) == -EFBIG


def test_populating_stops_at_the_end_of_the_file(task: Task, call: Call) -> None:
    descriptor = call("open", path(task, "file"), 0o102, 0o600)
    task.mm.write(AT + 512, b"content")
    call("write", descriptor, AT + 512, 7)
    address = call("mmap", 0, 1 << 45, 1, MAP_PRIVATE | MAP_POPULATE, descriptor, 0)
    assert task.mm.read(address, 8) == b"content\0"


# Numbers that somebody has once forgotten: signs, sizes and ends of everything; descriptors; the tests' memory.
EDGES = (
    *range(12), 16, 64, 128, 255, 256, 1000, 1023, 1024, 4095, 4096, 4097, 1 << 16, 1 << 20, 1 << 30,
    *(1 << bits for bits in (31, 32, 40, 46, 47, 48, 62, 63)), *((1 << bits) - 1 for bits in (31, 32, 47, 63, 64)),
    (1 << 64) - 2, (1 << 64) - 100, (1 << 64) - 4096, AT, AT, AT + 8, AT + PAGE_SIZE, AT + 64 * PAGE_SIZE - 6,
    0o102, 0o2, 0x22, 0x32, 0x4022, 0x8022,
)  # fmt: skip
NOT_CALLED = ("exit", "exit_group", "rt_sigreturn")


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_no_arguments_break_a_syscall(isa: str, seed: int, tmp_path: Path) -> None:
    """Whatever is asked: a result, an errno, or the guest's own memory used up; never an error of ours."""
    generator = random.Random(seed)
    path = tmp_path / "program"
    path.write_bytes(elf(machine={"aarch64": EM_AARCH64, "x86_64": EM_X86_64}[isa]))
    path.chmod(0o755)
    null = os.open(os.devnull, os.O_RDWR)
    machine = LinuxMachine(MachineConfig(isa, memory_bytes=16 << 20))
    machine.kernel.messages = lambda message: None
    machine.kernel.exit_group = lambda task, status: None  # type: ignore[method-assign]  # what waits for ever goes on
    machine.start(Program(str(path), ("program",), (), str(tmp_path), null, null, null))
    task = machine.kernel.tasks[1000]
    task.mm.map(AT, 64 * PAGE_SIZE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)
    task.mm.write(AT, b"program\0" + struct.pack("<6Q", AT, 8, AT, 1 << 63, (1 << 64) - 1, 1 << 40) * 80)
    rows = [row for row in table.load() if row.number(isa) is not None and row.name not in NOT_CALLED]
    calls = {row.name: row.compile() for row in rows}
    for _ in range(10_000):
        name = generator.choice(rows).name
        arguments = tuple(generator.choice(EDGES) for _ in range(6))
        try:
            result_of(calls[name](task, arguments), interrupted)
        except (LinuxError, MemoryError):
            pass
        except Exception as error:
            raise AssertionError(f"{name}{tuple(map(hex, arguments))}: {error!r}") from error
    os.close(null)
