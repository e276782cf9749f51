"""Message queues of POSIX: messages by priority, in open files that have a name (mq_overview(7)). ipc/mqueue.c"""

from __future__ import annotations

import stat as file_mode
from dataclasses import dataclass

from emulator.linux.errors import EAGAIN, EBADF, EMSGSIZE, ENOMEM, LinuxError
from emulator.linux.fs.attributes import Attributes
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_NONBLOCK, POLLIN, POLLOUT, Caller, File
from emulator.linux.fs.nodes import MEMORY_STATISTICS, Node, Superblock
from emulator.linux.fs.open_files import NodeFile
from emulator.linux.fs.paths import Dentry
from emulator.linux.sched.waiting import WaitQueue
from emulator.linux.signals.signal import SIGEV_SIGNAL

MOST_MESSAGES, MOST_MESSAGE_BYTES, MOST_QUEUES = 10, 8192, 256  # fs.mqueue.msg_default, msgsize_default, queues_max
HARD_MESSAGES, HARD_MESSAGE_BYTES = 65_536, 16 << 20  # that root may ask for
MOST_QUEUE_BYTES = 64 << 20  # of messages of one queue
MOST_PRIORITY = 32_768  # MQ_PRIO_MAX
MESSAGE_BYTES = 128  # that one takes of the machine's memory besides its text
MQUEUE_DEVICE = (0, 19)
STATUS_BYTES = 80  # FILENT_SIZE


@dataclass(frozen=True, slots=True)
class Notification:
    """Whom mq_notify(3) has asked to be told, once: of a message that finds an empty queue and nobody who waits."""

    pid: int
    method: int  # SIGEV_*
    signal: int = 0
    value: int = 0


class PosixQueue(Node):
    """One queue: an inode, which lives as long as it has a name or is open."""

    __slots__ = (
        "_number", "arrived", "bytes_waiting", "freed", "made_ns", "message_bytes", "messages", "mode", "most_messages",
        "notification", "receivers", "superblock",
    )  # fmt: skip
    statistics = MEMORY_STATISTICS

    def __init__(self, superblock: Superblock, permissions: int, most_messages: int, message_bytes: int) -> None:
        self.superblock = superblock
        self.mode = file_mode.S_IFREG | permissions
        self.most_messages = most_messages
        self.message_bytes = message_bytes
        self.messages: list[tuple[int, bytes]] = []  # priority and text, the highest first
        self.bytes_waiting = 0
        self.receivers = 0  # who waits
        self.arrived = WaitQueue()
        self.freed = WaitQueue()
        self.notification: Notification | None = None
        self.made_ns = superblock.now()
        self._number = superblock.inodes.new()

    def __del__(self) -> None:
        self.superblock.budget.take(-self.bytes_waiting - MESSAGE_BYTES * len(self.messages))

    @property
    def file_type(self) -> int:
        return file_mode.S_IFREG

    def attributes(self) -> Attributes:
        owner = self.superblock.owner
        return Attributes(
            self._number, self.mode, STATUS_BYTES, 1, owner, owner, MQUEUE_DEVICE, (0, 0), self.made_ns, self.made_ns
        )

    @property
    def is_full(self) -> bool:
        return len(self.messages) >= self.most_messages

    def put(self, priority: int, text: bytes) -> bool:
        """Whether somebody is to be told of it."""
        if self.is_full:
            raise LinuxError(EAGAIN, f"{len(self.messages)} messages wait")
        try:
            self.superblock.budget.take(len(text) + MESSAGE_BYTES)
        except LinuxError as error:
            raise LinuxError(ENOMEM, error.why) from None
        index = next((at for at, (other, _) in enumerate(self.messages) if other < priority), len(self.messages))
        self.messages.insert(index, (priority, text))
        self.bytes_waiting += len(text)
        told = len(self.messages) == 1 and not self.receivers and self.notification is not None
        self.arrived.wake()
        return told

    def take(self) -> tuple[int, bytes]:
        if not self.messages:
            raise LinuxError(EAGAIN, "no message waits")
        priority, text = self.messages.pop(0)
        self.bytes_waiting -= len(text)
        self.superblock.budget.take(-len(text) - MESSAGE_BYTES)
        self.freed.wake()
        return priority, text

    def text(self) -> str:
        """What read(2) gives."""
        asked = self.notification
        if asked is None:
            row = (self.bytes_waiting, 0, 0, 0)
        else:
            signal = asked.signal if asked.method == SIGEV_SIGNAL else 0
            row = (self.bytes_waiting, asked.method, signal, asked.pid)
        return f"QSIZE:{row[0]:<10} NOTIFY:{row[1]:<5} SIGNO:{row[2]:<5} NOTIFY_PID:{row[3]:<6}\n"


class QueueFile(NodeFile):
    """An open queue."""

    reads_each_piece = True

    def __init__(self, queue: PosixQueue, flags: int, name: str) -> None:
        super().__init__(flags, f"/{name}")
        self.queue = queue
        self.position = 0
        self.dentry = Dentry(queue, "", None)

    def read(self, task: Caller, destination: Destination) -> int:
        count = self.read_at(task, self.position, destination)
        self.position += count
        return count

    def read_at(self, task: Caller, offset: int, destination: Destination) -> int:
        return destination.give(self.queue.text().encode()[offset : offset + destination.left])

    def poll(self) -> int:
        return (POLLIN if self.queue.messages else 0) | (0 if self.queue.is_full else POLLOUT)

    def wait_queues(self) -> tuple[WaitQueue, ...]:
        return self.queue.arrived, self.queue.freed

    @property
    def waits(self) -> bool:
        return not self.flags & O_NONBLOCK


def queue_of(file: File, *, readable: bool = False, writable: bool = False) -> QueueFile:
    """EBADF for what is no queue, or not open for that."""
    if not isinstance(file, QueueFile) or (readable and not file.readable) or (writable and not file.writable):
        raise LinuxError(EBADF, f"{file.path} is no message queue that is open for that")
    return file


def check_size(queue: PosixQueue, size: int, *, sends: bool) -> None:
    """A message must fit, and there must be room for any."""
    if size > queue.message_bytes if sends else size < queue.message_bytes:
        raise LinuxError(EMSGSIZE, f"{size} bytes; the queue's messages have at most {queue.message_bytes}")
