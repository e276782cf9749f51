"""Message queues of System V: messages with a type, taken in order or by type (msgop(2)). ipc/msg.c"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from emulator.linux.errors import E2BIG, EAGAIN, EIDRM, ENOMEM, ENOMSG, LinuxError
from emulator.linux.fs.nodes import MemoryBudget
from emulator.linux.ipc.ipc_objects import IPC_NOWAIT, Objects, Permissions
from emulator.linux.sched.waiting import Sleeper, Sleeping, WaitQueue, wait_until

MOST_QUEUES, MOST_MESSAGE_BYTES, MOST_QUEUE_BYTES = 32_000, 8192, 16_384  # MSGMNI, MSGMAX, MSGMNB
MSG_NOERROR, MSG_EXCEPT = 0o10000, 0o20000
MESSAGE_BYTES = 256  # that a message takes of the machine's memory besides its text
STATUS = struct.Struct("<3q3Q2I16x")  # struct msqid64_ds behind its permissions

Message = tuple[int, bytes]  # type and text


@dataclass(slots=True, eq=False)
class MessageQueue:
    """One queue."""

    permissions: Permissions
    changed_s: int
    now_s: Callable[[], int]
    budget: MemoryBudget
    id: int = -1
    messages: list[Message] = field(default_factory=list)
    bytes_waiting: int = 0
    most_bytes: int = MOST_QUEUE_BYTES
    sent_s: int = 0
    received_s: int = 0
    last_sender: int = 0  # pids
    last_receiver: int = 0
    arrived: WaitQueue = field(default_factory=WaitQueue)
    freed: WaitQueue = field(default_factory=WaitQueue)
    removed: bool = False

    def _has_room(self, size: int) -> bool:
        return self.removed or (
            self.bytes_waiting + size <= self.most_bytes and len(self.messages) + 1 <= self.most_bytes
        )

    def send(self, sleeper: Sleeper, pid: int, message: Message, flags: int) -> Sleeping[int]:
        size = len(message[1])
        if not self._has_room(size):
            if flags & IPC_NOWAIT:
                raise LinuxError(EAGAIN, f"{self.bytes_waiting} bytes wait in message queue {self.id}")
            yield from wait_until(
                sleeper, lambda: self._has_room(size), lambda: (self.freed,), "a message queue with room", restart=False
            )
        self._check_there()
        try:
            self.budget.take(size + MESSAGE_BYTES)
        except LinuxError as error:
            raise LinuxError(ENOMEM, error.why) from None
        self.messages.append(message)
        self.bytes_waiting += size
        self.last_sender, self.sent_s = pid, self.now_s()
        self.arrived.wake()
        return 0

    def _wanted(self, kind: int, flags: int) -> int | None:
        """Which message msgrcv's type means: any, the first of a type (or not of it), or that of the lowest type."""
        if not self.messages:
            return None
        if kind == 0:
            return 0
        if kind > 0:
            other = bool(flags & MSG_EXCEPT)
            return next((at for at, (given, _) in enumerate(self.messages) if (given == kind) != other), None)
        lowest = min(range(len(self.messages)), key=lambda at: self.messages[at][0])
        return lowest if self.messages[lowest][0] <= -kind else None

    def receive(self, sleeper: Sleeper, pid: int, size: int, kind: int, flags: int) -> Sleeping[Message]:
        """One message, cut at `size` if MSG_NOERROR allows that."""
        index = self._wanted(kind, flags)
        if index is None:
            if flags & IPC_NOWAIT:
                raise LinuxError(ENOMSG, f"message queue {self.id} has no message of type {kind}")
            yield from wait_until(
                sleeper,
                lambda: self.removed or self._wanted(kind, flags) is not None,
                lambda: (self.arrived,),
                "a message of a queue",
                restart=False,
            )
            self._check_there()
            index = self._wanted(kind, flags)
            assert index is not None, "it was woken by one"
        found, text = self.messages[index]
        if len(text) > size and not flags & MSG_NOERROR:
            raise LinuxError(E2BIG, f"a message of {len(text)} bytes")
        del self.messages[index]
        self._free(len(text))
        self.last_receiver, self.received_s = pid, self.now_s()
        self.freed.wake()
        return found, text[:size]

    def _free(self, size: int) -> None:
        self.bytes_waiting -= size
        self.budget.take(-size - MESSAGE_BYTES)

    def _check_there(self) -> None:
        if self.removed:
            raise LinuxError(EIDRM, f"message queue {self.id} has been removed")

    def give_up(self) -> None:
        """IPC_RMID: who waits is told."""
        self.removed = True
        for _, text in self.messages:
            self._free(len(text))
        self.messages.clear()
        self.arrived.wake()
        self.freed.wake()

    def status(self) -> bytes:
        """struct msqid64_ds"""
        return self.permissions.pack() + STATUS.pack(
            self.sent_s, self.received_s, self.changed_s, self.bytes_waiting, len(self.messages), self.most_bytes,
            self.last_sender, self.last_receiver,
        )  # fmt: skip


class MessageQueues(Objects[MessageQueue]):
    """The queues of one machine."""

    heading = (
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid"
        "      stime      rtime      ctime\n"
    )

    def __init__(self) -> None:
        super().__init__("message queue", MOST_QUEUES)

    def _columns(self, thing: MessageQueue) -> tuple[str, str]:
        own = f" {thing.bytes_waiting:10} {len(thing.messages):10} {thing.last_sender:5} {thing.last_receiver:5}"
        return own, f"{thing.sent_s:10} {thing.received_s:10} {thing.changed_s:10}"
