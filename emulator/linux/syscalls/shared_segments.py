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
def shmget(task: Task, key: int, size: Size, shmflg: int) -> int:
    """shmget(2)"""
    segments = task.kernel.ipc.segments
    segments.drop_unused()

    def make() -> Segment:
        if not size:
            raise LinuxError(EINVAL, "a segment of no bytes")
        if page_up(size) > task.kernel.memory.size_bytes or shmflg & SHM_HUGETLB:
            raise LinuxError(ENOMEM, f"a segment of {size} bytes, flags {shmflg:#o}")
        return Segment(permissions(task, key, shmflg), size, task.pid, now_s(task))

    def check(found: Segment) -> None:
        if found.size < size:
            raise LinuxError(EINVAL, f"the segment has {found.size} bytes, not {size}")

    return segments.get(key, shmflg, make, check)


@syscall(aarch64=196, x86_64=30)
def shmat(task: Task, shmid: int, shmaddr: Address, shmflg: int) -> int:
    """shmat(2)"""
    segments = task.kernel.ipc.segments
    segments.drop_unused()
    if shmaddr % PAGE_SIZE:
        if not shmflg & SHM_RND:
            raise LinuxError(EINVAL, f"address {shmaddr:#x}")
        shmaddr -= shmaddr % PAGE_SIZE
    if not shmaddr and shmflg & SHM_REMAP:
        raise LinuxError(EINVAL, "SHM_REMAP needs an address")
    segment = segments.find(shmid)
    memory = segments.memory(segment)
    end = shmaddr + memory.length
    if shmaddr and not shmflg & SHM_REMAP and task.mm.mappings.overlapping(shmaddr, end):
        raise LinuxError(EINVAL, f"something is mapped in {shmaddr:#x}..{end:#x}")
    writes = not shmflg & SHM_RDONLY
    protection = PROT_READ | (PROT_WRITE if writes else 0) | (PROT_EXEC if shmflg & SHM_EXEC else 0)
    kind = MAP_SHARED | (MAP_FIXED if shmaddr else 0)
    start = task.mm.map(shmaddr, memory.length, protection, kind, memory, may_write=writes)
    segment.attached_s, segment.last_pid = now_s(task), task.pid
    return start


@syscall(aarch64=197, x86_64=67)
def shmdt(task: Task, shmaddr: Address) -> int:
    """shmdt(2): all that is left of what was attached there, though it has been cut into pieces."""
    mm, segments = task.mm, task.kernel.ipc.segments
    first = mm.find(shmaddr)
    segment = segments.by_memory(first.content) if first is not None else None
    if first is None or first.start != shmaddr or first.offset or segment is None:
        raise LinuxError(EINVAL, f"no segment is attached at {shmaddr:#x}")
    end = shmaddr + page_up(segment.size)
    for piece in mm.mappings.overlapping(shmaddr, end):
        if piece.content is first.content and piece.start - shmaddr == piece.offset:
            mm.unmap(piece.start, piece.length)
    segment.detached_s, segment.last_pid = now_s(task), task.pid
    segments.drop_unused()
    return 0


@syscall(aarch64=195, x86_64=31)
def shmctl(task: Task, shmid: int, cmd: int, buf: Address) -> int:
    """shmctl(2)"""
    segments = task.kernel.ipc.segments
    segments.drop_unused()
    if cmd == IPC_INFO:
        task.mm.write(buf, LIMITS.pack(MOST_BYTES, 1, MOST_SEGMENTS, MOST_SEGMENTS, MOST_BYTES, 0, 0, 0, 0))
        return segments.highest_index
    if cmd == SHM_INFO:
        task.mm.write(buf, segments.info())
        return segments.highest_index
    if cmd in (SHM_STAT, SHM_STAT_ANY):
        segment = segments.at_index(shmid)
        task.mm.write(buf, segments.status(segment))
        return segment.id
    if cmd not in (IPC_STAT, IPC_SET, IPC_RMID, SHM_LOCK, SHM_UNLOCK):
        raise LinuxError(EINVAL, f"shmctl command {cmd}")
    given = task.mm.read(buf, PERMISSIONS.size) if cmd == IPC_SET else b""
    segment = segments.find(shmid)
    if cmd == IPC_STAT:
        task.mm.write(buf, segments.status(segment))
    elif cmd == IPC_SET:
        segment.permissions.change(given)
        segment.changed_s = now_s(task)
    elif cmd == IPC_RMID:
        segments.destroy(segment)
    elif cmd == SHM_LOCK:  # pages never leave the machine's memory
        segment.permissions.mode |= SHM_LOCKED
    else:
        segment.permissions.mode &= ~SHM_LOCKED
    return 0
