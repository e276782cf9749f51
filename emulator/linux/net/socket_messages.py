"""What sockets send to each other: bytes, and with them open files and who sent them; and where it waits to be read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from emulator.linux.errors import EFAULT, LinuxError
from emulator.linux.fs.byte_queue import ByteQueue
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import File
from emulator.linux.fs.nodes import MemoryBudget
from emulator.linux.net.socket_addresses import Address

CAPACITY_BYTES = 212_992  # net.core.rmem_default: what may wait for one socket's reader
MESSAGE_BYTES = 256  # that a message takes besides its data
BUFFER_BYTES = 36_544  # of a stream, kept together: SKB_MAX_HEAD(0) + UNIX_SKB_FRAGS_SZ, net/unix/af_unix.c
TCP_BUFFER_BYTES = 32_768  # SKB_FRAG_PAGE_ORDER, net/core/sock.c; there, what is left of the last call's comes first
FILE_BYTES = 4096  # and, of the machine's memory alone, an open file in it


@dataclass(frozen=True, slots=True)
class Credentials:
    """struct ucred"""

    pid: int = 0
    uid: int = 0xFFFF_FFFF
    gid: int = 0xFFFF_FFFF


@dataclass(slots=True)
class Message:
    """What one call sends."""

    data: bytes = b""
    credentials: Credentials = field(default_factory=Credentials)
    files: tuple[File, ...] = ()  # SCM_RIGHTS; an inbox holds them open
    sender: Address | None = None
    unreadable: int = 0  # bytes behind `data` that the sender has named and may not read

    @property
    def size(self) -> int:
        return len(self.data) + self.unreadable

    def keep(self, count: int) -> None:
        """Where not all can be read: the first `count` bytes are sent; EFAULT if none are."""
        if not count:
            raise LinuxError(EFAULT, f"{self.unreadable} of {self.size} bytes cannot be read")
        self.data = self.data[:count]
        self.unreadable = 0


@dataclass(slots=True)
class Received:
    """What one call receives, besides the bytes."""

    count: int = 0  # of bytes that have arrived
    length: int = 0  # of the whole message, of which there may have been room for less
    credentials: Credentials = field(default_factory=Credentials)
    files: tuple[File, ...] = ()  # whoever receives them holds them open
    sender: Address | None = None

    def release_files(self) -> None:
        for file in self.files:
            file.release()
        self.files = ()


class Inbox:
    """What has come to a socket. Of a `stream` the borders of messages are lost where no files mark them."""

    def __init__(self, budget: MemoryBudget, stream: bool) -> None:
        self._budget = budget
        self._stream = stream
        self._messages: deque[tuple[ByteQueue, Message]] = deque()  # what is left of its data, and the message
        self.capacity = CAPACITY_BYTES
        self.size = 0  # bytes, with MESSAGE_BYTES for each message

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def room(self) -> int:
        return self.capacity - self.size

    def waiting_bytes(self) -> int:
        """FIONREAD: all of a stream, or the first message."""
        if self._stream:
            return sum(len(data) for data, _ in self._messages)
        return len(self._messages[0][0]) if self._messages else 0

    def put(self, message: Message) -> None:
        merges = False
        if self._stream and self._messages and not message.files:
            last = self._messages[-1][1]
            merges = not last.files and last.credentials == message.credentials
        count = len(message.data) + (0 if merges else MESSAGE_BYTES)
        self._budget.take(count + FILE_BYTES * len(message.files))
        self.size += count
        if merges:
            self._messages[-1][0].add(message.data, BUFFER_BYTES)
            return
        for file in message.files:
            file.retain()
        kept = Message(b"", message.credentials, message.files, message.sender)
        data = ByteQueue()
        data.add(message.data, BUFFER_BYTES)
        self._messages.append((data, kept))

    def take(self, destination: Destination, *, peek: bool = False) -> Received:
        """As much of the first message as there is room for, with its files, whose holder the caller becomes.

        What is left of it is dropped, but for a stream. EFAULT leaves a stream as it was; another message is lost.
        """
        data, first = self._messages[0]
        taken = Received(0, len(data), first.credentials, first.files, first.sender)
        if self._stream:
            taken.count = data.move(destination, peek=True)
        if peek:
            for file in first.files:
                file.retain()
        else:
            self._budget.take(-FILE_BYTES * len(first.files))
            first.files = ()
            self._remove(data, taken.count)
        if not self._stream:
            try:
                taken.count = destination.give_whole(bytes(data[: destination.left]))
            except LinuxError:
                taken.release_files()
                raise
        return taken

    def _remove(self, data: ByteQueue, count: int) -> None:
        """From a stream `count` bytes, else the whole of the first message."""
        if self._stream and count < len(data):
            data.drop(count)
            self._free(count)
        else:
            self._messages.popleft()
            self._free(len(data) + MESSAGE_BYTES)

    def clear(self) -> list[File]:
        """Nothing of it is read any more. The files in it, which whoever asks has to release."""
        files: list[File] = []
        for _, message in self._messages:
            files.extend(message.files)
            message.files = ()
        self._budget.take(-FILE_BYTES * len(files))
        self._messages.clear()
        self._free(self.size)
        return files

    def _free(self, count: int) -> None:
        self.size -= count
        self._budget.take(-count)
