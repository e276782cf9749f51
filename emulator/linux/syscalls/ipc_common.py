"""What the calls of System V's shared memory, semaphores and message queues have in common."""

from __future__ import annotations

from emulator.linux.ipc.ipc_objects import Permissions
from emulator.linux.process.task import Task
from emulator.linux.structures import NANOSECONDS

IPC_RMID, IPC_SET, IPC_STAT, IPC_INFO = 0, 1, 2, 3  # uapi/linux/ipc.h


def permissions(task: Task, key: int, flags: int) -> Permissions:
    """Of what the caller makes."""
    uid, gid = task.credentials.uid, task.credentials.gid
    return Permissions(key, uid, gid, uid, gid, flags & 0o777)


def now_s(task: Task) -> int:
    return task.clock.realtime_ns() // NANOSECONDS
