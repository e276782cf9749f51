"""Semaphores of System V: semget, semop, semtimedop, semctl. ipc/sem.c"""

from __future__ import annotations

import struct
from functools import partial

from emulator.linux.clock_ids import CLOCK_MONOTONIC
from emulator.linux.errors import E2BIG, EINVAL, ENOSPC, LinuxError
from emulator.linux.ipc.ipc_objects import PERMISSIONS
from emulator.linux.ipc.semaphores import (
    MOST_IN_ALL,
    MOST_IN_SET,
    MOST_KEPT,
    MOST_OPERATIONS,
    MOST_SETS,
    MOST_VALUE,
    Operation,
    SemaphoreSet,
)
from emulator.linux.process.task import Task
from emulator.linux.sched.hrtimers import HrTimerMode
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.structures import Timespec
from emulator.linux.syscalls.ipc_common import IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, now_s, permissions
from emulator.linux.syscalls.table import Address, OptionalIn, UInt, ULong, syscall
from emulator.linux.twos_complement import INT, signed

GETPID, GETVAL, GETALL, GETNCNT, GETZCNT, SETVAL, SETALL = range(11, 18)  # uapi/linux/sem.h
SEM_STAT, SEM_INFO, SEM_STAT_ANY = 18, 19, 20
OPERATION = struct.Struct("<Hhh")  # struct sembuf
LIMITS = struct.Struct("<10i")  # struct seminfo: map mni mns mnu msl opm ume usz vmx aem
UNDO_BYTES = 20  # SEMUSZ


@syscall(aarch64=190, x86_64=64)
def semget(task: Task, key: int, nsems: int, semflg: int) -> int:
    """semget(2)"""
    sets = task.kernel.ipc.semaphores
    if not 0 <= nsems <= MOST_IN_SET:
        raise LinuxError(EINVAL, f"{nsems} semaphores")

    def make() -> SemaphoreSet:
        if not nsems:
            raise LinuxError(EINVAL, "no semaphores")
        if sets.used + nsems > MOST_KEPT:
            raise LinuxError(ENOSPC, f"more than {MOST_KEPT} semaphores")
        return SemaphoreSet(permissions(task, key, semflg), [0] * nsems, now_s(task), lambda: now_s(task))

    def check(found: SemaphoreSet) -> None:
        if nsems > len(found.values):
            raise LinuxError(EINVAL, f"the set has {len(found.values)} semaphores, not {nsems}")

    return sets.get(key, semflg, make, check)


@syscall(aarch64=193, x86_64=65)
def semop(task: Task, semid: int, tsops: Address, nsops: UInt) -> int | Sleeping[int]:
    """semop(2)"""
    return _operate(task, semid, tsops, nsops, None)


@syscall(aarch64=192, x86_64=220)
def semtimedop(
    task: Task, semid: int, tsops: Address, nsops: UInt, timeout: OptionalIn[Timespec]
) -> int | Sleeping[int]:
    """semtimedop(2). The timeout is relative."""
    return _operate(task, semid, tsops, nsops, timeout)


def _operate(task: Task, number: int, address: int, count: int, timeout: Timespec | None) -> int | Sleeping[int]:
    if count < 1 or number < 0:
        raise LinuxError(EINVAL, f"{count} operations on semaphore set {number}")
    if count > MOST_OPERATIONS:
        raise LinuxError(E2BIG, f"{count} operations; at most {MOST_OPERATIONS}")
    operations = [Operation(*each) for each in OPERATION.iter_unpack(task.mm.read(address, count * OPERATION.size))]
    until_ns = None if timeout is None else task.clock.elapsed_ns() + timeout.ns()
    found = task.kernel.ipc.semaphores.find(number)
    timer = partial(task.sleeper, CLOCK_MONOTONIC, HrTimerMode.ABS)
    return found.operate(task, task.process, task.pid, operations, until_ns, timer)


@syscall(aarch64=191, x86_64=66)
def semctl(task: Task, semid: int, semnum: int, cmd: int, arg: ULong) -> int:
    """semctl(2). `argument` is a number or an address (union semun)."""
    sets = task.kernel.ipc.semaphores
    if semid < 0:
        raise LinuxError(EINVAL, f"semaphore set {semid}")
    if cmd in (IPC_INFO, SEM_INFO):
        kept = (len(sets), sets.used) if cmd == SEM_INFO else (UNDO_BYTES, MOST_VALUE)
        limits = MOST_IN_ALL, MOST_SETS, MOST_IN_ALL, MOST_IN_ALL, MOST_IN_SET, MOST_OPERATIONS, MOST_OPERATIONS
        task.mm.write(arg, LIMITS.pack(*limits, kept[0], MOST_VALUE, kept[1]))
        return sets.highest_index
    if cmd in (SEM_STAT, SEM_STAT_ANY):
        found = sets.at_index(semid)
        _write_status(task, found, arg)
        return found.id
    if cmd == IPC_STAT:
        _write_status(task, sets.find(semid), arg)
        return 0
    if cmd == IPC_SET:
        given = task.mm.read(arg, PERMISSIONS.size)
        found = sets.find(semid)
        found.permissions.change(given)
        found.changed_s = now_s(task)
        return 0
    if cmd == IPC_RMID:
        found = sets.find(semid)
        sets.remove(found)
        found.give_up()
        return 0
    if cmd not in (GETPID, GETVAL, GETALL, GETNCNT, GETZCNT, SETVAL, SETALL):
        raise LinuxError(EINVAL, f"semctl command {cmd}")
    return _of_values(task, sets.find(semid), semnum, cmd, arg)


def _write_status(task: Task, found: SemaphoreSet, address: int) -> None:
    task.mm.write(address, found.status(padded=task.architecture.isa == "x86_64"))


def _of_values(task: Task, found: SemaphoreSet, index: int, command: int, argument: int) -> int:
    count = len(found.values)
    if command == GETALL:
        task.mm.write(argument, struct.pack(f"<{count}H", *found.values))
        return 0
    if command == SETALL:
        values = struct.unpack(f"<{count}H", task.mm.read(argument, 2 * count))
        found.set(dict(enumerate(values)), task.pid)
        return 0
    if not 0 <= index < count:
        raise LinuxError(EINVAL, f"semaphore {index} of {count}")
    if command == SETVAL:
        value = signed(argument, INT)
        found.set({index: value}, task.pid)
        return 0
    if command == GETVAL:
        return found.values[index]
    if command == GETPID:
        return found.pids[index]
    return found.count_waiting(index, for_zero=command == GETZCNT)
