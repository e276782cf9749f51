"""Message queues of System V: msgget, msgsnd, msgrcv, msgctl. ipc/msg.c"""

from __future__ import annotations

import struct

from emulator.linux.errors import EINVAL, ENOSYS, LinuxError
from emulator.linux.ipc.message_queues import (
    MOST_MESSAGE_BYTES,
    MOST_QUEUE_BYTES,
    MOST_QUEUES,
    MessageQueue,
)
from emulator.linux.process.task import Task
from emulator.linux.sched.waiting import Sleeping
from emulator.linux.syscalls.at import tree
from emulator.linux.syscalls.ipc_common import IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, now_s, permissions
from emulator.linux.syscalls.table import Address, Long, Size, Support, syscall

MSG_COPY = 0o40000
MSG_STAT, MSG_INFO, MSG_STAT_ANY = 11, 12, 13
LIMITS = struct.Struct("<7iH2x")  # struct msginfo: pool map max mnb mni ssz tql, seg
LARGEST_BYTES = 88 + 8  # of struct msqid64_ds up to msg_qbytes


@syscall(aarch64=186, x86_64=68)
def msgget(task: Task, key: int, flags: int) -> int:
    """msgget(2)"""

    def make() -> MessageQueue:
        budget = tree(task).superblock.budget
        return MessageQueue(permissions(task, key, flags), now_s(task), lambda: now_s(task), budget)

    return task.kernel.ipc.queues.get(key, flags, make, lambda found: None)


@syscall(aarch64=189, x86_64=69)
def msgsnd(task: Task, number: int, message: Address, size: Size, flags: int) -> Sleeping[int]:
    """msgsnd(2)"""
    kind = int.from_bytes(task.mm.read(message, 8), "little", signed=True)
    if size > MOST_MESSAGE_BYTES or kind < 1 or number < 0:
        raise LinuxError(EINVAL, f"a message of {size} bytes and type {kind} to queue {number}")
    text = task.mm.read(message + 8, size) if size else b""
    return task.kernel.ipc.queues.find(number).send(task, task.pid, (kind, text), flags)


@syscall(aarch64=188, x86_64=70, support=Support.PARTIAL, note="MSG_COPY is ENOSYS, as in a kernel without it")
def msgrcv(task: Task, number: int, message: Address, size: Size, kind: Long, flags: int) -> Sleeping[int]:
    """msgrcv(2)"""
    if number < 0 or size >> 63:
        raise LinuxError(EINVAL, f"{size} bytes from queue {number}")
    if flags & MSG_COPY:
        raise LinuxError(ENOSYS, "MSG_COPY")
    found = task.kernel.ipc.queues.find(number)
    given, text = yield from found.receive(task, task.pid, size, kind, flags)
    task.mm.write(message, struct.pack("<q", given) + text)
    return len(text)


@syscall(aarch64=187, x86_64=71)
def msgctl(task: Task, number: int, command: int, buffer: Address) -> int:
    """msgctl(2)"""
    queues = task.kernel.ipc.queues
    if number < 0:
        raise LinuxError(EINVAL, f"message queue {number}")
    if command in (IPC_INFO, MSG_INFO):
        pool, files, waiting = MOST_QUEUES * MOST_QUEUE_BYTES // 1024, MOST_QUEUE_BYTES, MOST_QUEUE_BYTES
        if command == MSG_INFO:
            pool, files = len(queues), sum(len(queue.messages) for queue in queues)
            waiting = sum(queue.bytes_waiting for queue in queues)
        limits = MOST_MESSAGE_BYTES, MOST_QUEUE_BYTES, MOST_QUEUES, 16, waiting
        task.mm.write(buffer, LIMITS.pack(pool, files, *limits, 0xFFFF))
        return queues.highest_index
    if command in (MSG_STAT, MSG_STAT_ANY):
        found = queues.at_index(number)
        task.mm.write(buffer, found.status())
        return found.id
    if command == IPC_STAT:
        task.mm.write(buffer, queues.find(number).status())
    elif command == IPC_SET:
        given = task.mm.read(buffer, LARGEST_BYTES)
        found = queues.find(number)
        found.permissions.change(given)
        found.most_bytes = int.from_bytes(given[-8:], "little")
        found.changed_s = now_s(task)
        found.freed.wake()
    elif command == IPC_RMID:
        found = queues.find(number)
        queues.remove(found)
        found.give_up()
    else:
        raise LinuxError(EINVAL, f"msgctl command {command}")
    return 0
