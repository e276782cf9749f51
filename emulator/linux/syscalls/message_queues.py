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
def msgget(task: Task, key: int, msgflg: int) -> int:
    """msgget(2)"""

    def make() -> MessageQueue:
        budget = tree(task).superblock.budget
        return MessageQueue(permissions(task, key, msgflg), now_s(task), lambda: now_s(task), budget)

    return task.kernel.ipc.queues.get(key, msgflg, make, lambda found: None)


@syscall(aarch64=189, x86_64=69)
def msgsnd(task: Task, msqid: int, msgp: Address, msgsz: Size, msgflg: int) -> Sleeping[int]:
    """msgsnd(2)"""
    kind = int.from_bytes(task.mm.read(msgp, 8), "little", signed=True)
    if msgsz > MOST_MESSAGE_BYTES or kind < 1 or msqid < 0:
        raise LinuxError(EINVAL, f"a message of {msgsz} bytes and type {kind} to queue {msqid}")
    text = task.mm.read(msgp + 8, msgsz) if msgsz else b""
    return task.kernel.ipc.queues.find(msqid).send(task, task.pid, (kind, text), msgflg)


@syscall(aarch64=188, x86_64=70, support=Support.PARTIAL, note="MSG_COPY is ENOSYS, as in a kernel without it")
def msgrcv(task: Task, msqid: int, msgp: Address, msgsz: Size, msgtyp: Long, msgflg: int) -> Sleeping[int]:
    """msgrcv(2)"""
    if msqid < 0 or msgsz >> 63:
        raise LinuxError(EINVAL, f"{msgsz} bytes from queue {msqid}")
    if msgflg & MSG_COPY:
        raise LinuxError(ENOSYS, "MSG_COPY")
    found = task.kernel.ipc.queues.find(msqid)
    given, text = yield from found.receive(task, task.pid, msgsz, msgtyp, msgflg)
    task.mm.write(msgp, struct.pack("<q", given) + text)
    return len(text)


@syscall(aarch64=187, x86_64=71)
def msgctl(task: Task, msqid: int, cmd: int, buf: Address) -> int:
    """msgctl(2)"""
    queues = task.kernel.ipc.queues
    if msqid < 0:
        raise LinuxError(EINVAL, f"message queue {msqid}")
    if cmd in (IPC_INFO, MSG_INFO):
        pool, files, waiting = MOST_QUEUES * MOST_QUEUE_BYTES // 1024, MOST_QUEUE_BYTES, MOST_QUEUE_BYTES
        if cmd == MSG_INFO:
            pool, files = len(queues), sum(len(queue.messages) for queue in queues)
            waiting = sum(queue.bytes_waiting for queue in queues)
        limits = MOST_MESSAGE_BYTES, MOST_QUEUE_BYTES, MOST_QUEUES, 16, waiting
        task.mm.write(buf, LIMITS.pack(pool, files, *limits, 0xFFFF))
        return queues.highest_index
    if cmd in (MSG_STAT, MSG_STAT_ANY):
        found = queues.at_index(msqid)
        task.mm.write(buf, found.status())
        return found.id
    if cmd == IPC_STAT:
        task.mm.write(buf, queues.find(msqid).status())
    elif cmd == IPC_SET:
        given = task.mm.read(buf, LARGEST_BYTES)
        found = queues.find(msqid)
        found.permissions.change(given)
        found.most_bytes = int.from_bytes(given[-8:], "little")
        found.changed_s = now_s(task)
        found.freed.wake()
    elif cmd == IPC_RMID:
        found = queues.find(msqid)
        queues.remove(found)
        found.give_up()
    else:
        raise LinuxError(EINVAL, f"msgctl command {cmd}")
    return 0
