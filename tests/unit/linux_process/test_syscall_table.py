"""The syscall table: its numbers, its argument types, and what a call that is not there does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from emulator.linux.errors import EFAULT, ENAMETOOLONG, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.structures import Timespec
from emulator.linux.syscalls import table
from emulator.linux.syscalls.names import syscall_name
from emulator.linux.syscalls.table import (
    Address,
    In,
    Long,
    OptionalIn,
    OptionalPath,
    Out,
    Path,
    Support,
    Syscall,
    UInt,
    by_number,
    load,
)


@pytest.mark.parametrize("isa", ["aarch64", "x86_64"])
def test_every_row_has_the_number_that_linux_gives_its_name(isa: str) -> None:
    for number, row in by_number(load(), isa).items():
        assert syscall_name(isa, number) == row.name


@pytest.mark.parametrize("row", load(), ids=lambda row: row.name)
def test_every_row_compiles(row: Syscall) -> None:
    row.compile()


def test_a_row_that_is_not_complete_says_why() -> None:
    for row in load():
        assert row.support is Support.FULL or row.note, row.name


def test_known_numbers_have_names() -> None:
    # arch/x86/entry/syscalls/syscall_64.tbl and uapi/asm-generic/unistd.h
    assert [syscall_name("x86_64", number) for number in (0, 59, 231, 334, 451)] == [
        "read",
        "execve",
        "exit_group",
        "rseq",
        "cachestat",
    ]
    assert [syscall_name("aarch64", number) for number in (63, 221, 94, 293, 451)] == [
        "read",
        "execve",
        "exit_group",
        "rseq",
        "cachestat",
    ]
    assert syscall_name("aarch64", 250) == "unknown"
    assert syscall_name("x86_64", 100_000) == "unknown"


class Memory:
    """User memory with a few bytes at 0x1000."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def read(self, address: int, size: int) -> bytes:
        start = address - 0x1000
        if not 0 <= start <= len(self.data) - size:
            raise LinuxError(EFAULT, "test")
        return bytes(self.data[start : start + size])

    def read_string(self, address: int, limit: int) -> bytes:
        if address < 0x1000:
            raise LinuxError(EFAULT, "test")
        return bytes(self.data[address - 0x1000 :]).split(b"\0")[0][:limit]

    def write(self, address: int, data: bytes) -> None:
        self.data[address - 0x1000 : address - 0x1000 + len(data)] = data


def call(handler: table.Handler, memory: bytes, *arguments: int) -> tuple[object, Memory]:
    user = Memory(memory)
    task = SimpleNamespace(mm=user)
    row = Syscall("test", handler, 1, 1, Support.FULL, "")
    padded = (*arguments, *[0] * (6 - len(arguments)))
    return row.compile()(task, padded), user  # type: ignore[arg-type]


def test_integers_have_their_width_and_sign() -> None:
    seen: list[int] = []

    def handler(task: Task, a: int, b: UInt, c: Long, d: Address) -> int:
        seen.extend((a, b, c, d))
        return 0

    everything = (1 << 64) - 1
    call(handler, b"", everything, everything, everything, everything)
    assert seen == [-1, 0xFFFF_FFFF, -1, everything]


def test_paths_are_strings_and_may_be_optional() -> None:
    seen: list[object] = []

    def handler(task: Task, a: Path, b: OptionalPath, c: OptionalPath) -> int:
        seen.extend((a, b, c))
        return 0

    call(handler, b"/tmp/\xff\0", 0x1000, 0, 0x1005)
    assert seen == ["/tmp/\udcff", None, "\udcff"]


def test_a_path_without_end_is_enametoolong() -> None:
    def handler(task: Task, path: Path) -> int:
        return 0

    with pytest.raises(LinuxError) as error:
        call(handler, b"x" * 5000, 0x1000)
    assert error.value.code == ENAMETOOLONG


def test_structures_are_read_and_written() -> None:
    def handler(task: Task, request: In[Timespec], other: OptionalIn[Timespec], out: Out[Timespec]) -> int:
        assert other is None
        assert out
        out.write(Timespec(request.seconds + 1, request.nanoseconds))
        return 7

    result, memory = call(handler, Timespec(3, 5).pack() + bytes(16), 0x1000, 0, 0x1010)
    assert result == 7
    assert Timespec.unpack(bytes(memory.data[16:])) == Timespec(4, 5)


def test_null_where_a_structure_must_be_is_efault() -> None:
    def handler(task: Task, request: In[Timespec]) -> int:
        return 0

    with pytest.raises(LinuxError) as error:
        call(handler, b"", 0)
    assert error.value.code == EFAULT


def test_an_annotation_that_is_no_argument_type_is_refused() -> None:
    def handler(task: Task, wrong: dict[str, int]) -> int:
        return 0

    with pytest.raises(TypeError, match="is not a syscall argument type"):
        Syscall("test", handler, 1, 1, Support.FULL, "").compile()


def test_two_rows_for_one_number_are_refused() -> None:
    row = load()[0]
    with pytest.raises(ValueError, match="is both"):
        by_number([row, row], "x86_64")
