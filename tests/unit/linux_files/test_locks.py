"""Locks on files between two processes, and between two opens of one file."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import SimpleNamespace

import pytest

from emulator.linux.errors import EAGAIN, EBADF, EDEADLK, EINVAL, ENOLCK, ERESTARTSYS
from emulator.linux.fs.file import FileTable
from emulator.linux.fs.locks import MOST_LOCKS_OF_FILE

FLOCK, BUFFER = 0x5000, 0x4000
READ, WRITE, UNLOCK = range(3)
SETLK, SETLKW, GETLK, OFD_GETLK, OFD_SETLK = 6, 7, 5, 36, 37
SHARED, ALONE, NOT_WAITING, FREE = 1, 2, 4, 8


@pytest.fixture
def other(program):
    """Another process of the same machine, with memory of its own."""
    guest = program.guest
    task = SimpleNamespace(**vars(guest.task))
    task.pid, task.files, task.mm = 2000, FileTable(), type(guest.task.mm)()
    return type(program)(replace(guest, task=task))


def opened(program, flags: int = 0o102) -> int:
    return program.guest.open("file", flags)


def lock(program, descriptor: int, kind: int, start: int = 0, length: int = 0, command: int = SETLK) -> int:
    program.data(struct.pack("<hh4xqqi4x", kind, 0, start, length, 0), FLOCK)
    return program("fcntl", descriptor, command, FLOCK)


def holder(program, descriptor: int, kind: int, start: int = 0, length: int = 0, command: int = GETLK) -> tuple:
    """(type, start, length, pid) of who is in the way"""
    assert lock(program, descriptor, kind, start, length, command) == 0
    kind, _, start, length, pid = struct.unpack("<hh4xqqi4x", program.memory.read(FLOCK, 32))
    return (kind, start, length, pid) if kind != UNLOCK else ()


def test_a_process_has_a_range_alone(program, other):
    mine, theirs = opened(program), opened(other)
    assert lock(program, mine, WRITE, 10, 10) == 0
    assert lock(other, theirs, WRITE, 0, 10) == 0
    assert lock(other, theirs, READ, 15, 1) == -EAGAIN
    assert holder(other, theirs, READ, 15, 1) == (WRITE, 10, 10, 1000)
    assert holder(program, mine, WRITE) == (WRITE, 0, 10, 2000)
    assert lock(program, mine, UNLOCK, 12, 4) == 0  # a hole
    assert lock(other, theirs, READ, 15, 1) == 0
    assert holder(other, theirs, WRITE, 11, 100) == (WRITE, 10, 2, 1000)
    assert holder(other, theirs, WRITE, 13, 100) == (WRITE, 16, 4, 1000)


def test_readers_share_and_neighbours_merge(program, other):
    mine, theirs = opened(program), opened(other)
    assert lock(program, mine, READ, 0, 10) == lock(program, mine, READ, 10) == 0
    assert lock(other, theirs, READ) == 0
    assert holder(other, theirs, WRITE) == (READ, 0, 0, 1000)  # to the end, however long it grows


def test_closing_any_descriptor_of_the_file_unlocks(program, other):
    mine, again, theirs = opened(program), opened(program), opened(other)
    lock(program, mine, WRITE)
    program("close", again)
    assert lock(other, theirs, WRITE) == 0


def test_who_cannot_lock(program, other):
    mine, reading = opened(program), opened(program, 0)
    assert lock(program, reading, WRITE) == -EBADF
    assert lock(program, mine, 7) == -EINVAL
    assert lock(program, mine, READ, -1) == -EINVAL
    assert lock(program, mine, WRITE, command=OFD_SETLK) == 0
    assert holder(other, opened(other), READ) == (WRITE, 0, 0, -1)  # an open file is no process
    assert lock(program, mine, WRITE) == -EAGAIN  # nor is the process that opened it the owner


def test_a_wait_for_a_lock_ends_with_a_signal_or_would_never(program, other):
    mine, theirs = opened(program), opened(other)
    lock(program, mine, WRITE, 0, 1)
    lock(other, theirs, WRITE, 1, 1)
    assert lock(program, mine, WRITE, 1, 1, SETLKW) == -ERESTARTSYS  # here nobody else runs
    assert program.guest.messages == [f"a lock of {program.guest.cwd}/file waits for what nobody can bring"]
    locks = program.guest.tree.locks
    ranges = locks.ranges(program.guest.task.files.get(mine).lock_key())
    blocked = ranges._locks[1]
    locks.waiting[program.guest.task.files] = ranges, replace(blocked, owner=program.guest.task.files)
    assert lock(other, theirs, WRITE, 0, 1, SETLKW) == -EDEADLK


def test_flock_is_of_the_open_file(program, other):
    mine, again, theirs = opened(program), opened(program), opened(other)
    assert program("flock", mine, SHARED) == other("flock", theirs, SHARED) == 0
    assert program("flock", mine, ALONE | NOT_WAITING) == -EAGAIN
    assert other("flock", theirs, ALONE | NOT_WAITING) == 0  # what the first had is gone, as in Linux
    assert program("flock", again, SHARED | NOT_WAITING) == -EAGAIN
    assert lock(program, mine, WRITE) == 0  # the other family
    duplicate = other("dup", theirs)
    other("close", theirs)
    assert program("flock", again, SHARED | NOT_WAITING) == -EAGAIN
    other("close", duplicate)
    assert program("flock", again, ALONE) == 0
    assert program("flock", again, FREE) == 0
    assert program("flock", mine, 3) == -EINVAL


def test_locks_of_a_file_come_to_an_end(program, other):
    mine = opened(program)
    results = [lock(program, mine, WRITE, 2 * number, 1) for number in range(MOST_LOCKS_OF_FILE + 1)]
    assert results == [0] * MOST_LOCKS_OF_FILE + [-ENOLCK]
    program("close", mine)
    assert lock(other, opened(other), WRITE) == 0
