"""Shared segments of System V: shmget, shmat, shmdt, shmctl. ipc/shm.c"""

from __future__ import annotations

import struct

from emulator.linux.errors import EINVAL, ENOMEM, LinuxError
from emulator.linux.ipc.ipc_objects import PERMISSIONS
from emulator.linux.ipc.shared_segments import MOST_BYTES, MOST_SEGMENTS, SHM_LOCKED, Segment
from emulator.linux.mm.mapping import (
    MAP_FIXED,
    MAP_SHARED,
    PAGE_SIZE,
    PROT_EXEC,
    PROT_READ,
    PROT_WRITE,
    page_up,
)
from emulator.linux.process.task import Task
from emulator.linux.syscalls.ipc_common import (
    IPC_INFO,
    IPC_RMID,
    IPC_SET,
    IPC_STAT,
    now_s,
    permissions,
)
from emulator.linux.syscalls.table import Address, Size, syscall

SHM_HUGETLB, SHM_NORESERVE = 0o4000, 0o10000  # shmget
SHM_RDONLY, SHM_RND, SHM_REMAP, SHM_EXEC = 0o10000, 0o20000, 0o40000, 0o100000  # shmat
SHM_LOCK, SHM_UNLOCK, SHM_STAT, SHM_INFO, SHM_STAT_ANY = 11, 12, 13, 14, 15
LIMITS = struct.Struct("<9Q")  # struct shminfo64


@syscall(aarch64=194, x86_64=29)
def shmget(task: Task, key: int, size: Size, flags: int) -> int:
    """shmget(2)"""
    segments = task.kernel.ipc.segments
    segments.drop_unused()

    def make() -> Segment:
        if not size:
            raise LinuxError(EINVAL, "a segment of no bytes")
        if page_up(size) > task.kernel.memory.size_bytes or flags & SHM_HUGETLB:
            raise LinuxError(ENOMEM, f"a segment of {size} bytes, flags {flags:#o}")
        return Segment(permissions(task, key, flags), size, task.pid, now_s(task))

    def check(found: Segment) -> None:
        if found.size < size:
            raise LinuxError(EINVAL, f"the segment has {found.size} bytes, not {size}")

    return segments.get(key, flags, make, check)


@syscall(aarch64=196, x86_64=30)
def shmat(task: Task, number: int, address: Address, flags: int) -> int:
    """shmat(2)"""
    segments = task.kernel.ipc.segments
    segments.drop_unused()
    if address % PAGE_SIZE:
        if not flags & SHM_RND:
            raise LinuxError(EINVAL, f"address {address:#x}")
        address -= address % PAGE_SIZE
    if not address and flags & SHM_REMAP:
        raise LinuxError(EINVAL, "SHM_REMAP needs an address")
    segment = segments.find(number)
    memory = segments.memory(segment)
    end = address + memory.length
    if address and not flags & SHM_REMAP and task.mm.mappings.overlapping(address, end):
        raise LinuxError(EINVAL, f"something is mapped in {address:#x}..{end:#x}")
    writes = not flags & SHM_RDONLY
    protection = PROT_READ | (PROT_WRITE if writes else 0) | (PROT_EXEC if flags & SHM_EXEC else 0)
    kind = MAP_SHARED | (MAP_FIXED if address else 0)
    start = task.mm.map(address, memory.length, protection, kind, memory, may_write=writes)
    segment.attached_s, segment.last_pid = now_s(task), task.pid
    return start


@syscall(aarch64=197, x86_64=67)
def shmdt(task: Task, address: Address) -> int:
    """shmdt(2): all that is left of what was attached there, though it has been cut into pieces."""
    mm, segments = task.mm, task.kernel.ipc.segments
    first = mm.find(address)
    segment = segments.by_memory(first.content) if first is not None else None
    if first is None or first.start != address or first.offset or segment is None:
        raise LinuxError(EINVAL, f"no segment is attached at {address:#x}")
    end = address + page_up(segment.size)
    for piece in mm.mappings.overlapping(address, end):
        if piece.content is first.content and piece.start - address == piece.offset:
            mm.unmap(piece.start, piece.length)
    segment.detached_s, segment.last_pid = now_s(task), task.pid
    segments.drop_unused()
    return 0


@syscall(aarch64=195, x86_64=31)
def shmctl(task: Task, number: int, command: int, buffer: Address) -> int:
    """shmctl(2)"""
    segments = task.kernel.ipc.segments
    segments.drop_unused()
    if command == IPC_INFO:
        task.mm.write(buffer, LIMITS.pack(MOST_BYTES, 1, MOST_SEGMENTS, MOST_SEGMENTS, MOST_BYTES, 0, 0, 0, 0))
        return segments.highest_index
    if command == SHM_INFO:
        task.mm.write(buffer, segments.info())
        return segments.highest_index
    if command in (SHM_STAT, SHM_STAT_ANY):
        segment = segments.at_index(number)
        task.mm.write(buffer, segments.status(segment))
        return segment.id
    if command not in (IPC_STAT, IPC_SET, IPC_RMID, SHM_LOCK, SHM_UNLOCK):
        raise LinuxError(EINVAL, f"shmctl command {command}")
    given = task.mm.read(buffer, PERMISSIONS.size) if command == IPC_SET else b""
    segment = segments.find(number)
    if command == IPC_STAT:
        task.mm.write(buffer, segments.status(segment))
    elif command == IPC_SET:
        segment.permissions.change(given)
        segment.changed_s = now_s(task)
    elif command == IPC_RMID:
        segments.destroy(segment)
    elif command == SHM_LOCK:  # pages never leave the machine's memory
        segment.permissions.mode |= SHM_LOCKED
    else:
        segment.permissions.mode &= ~SHM_LOCKED
    return 0
