"""What sockets send to each other: bytes, and with them open files and who sent them; and where it waits to be read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from emulator.linux.fs.file import File
from emulator.linux.fs.nodes import MemoryBudget
from emulator.linux.net.socket_addresses import Address

CAPACITY_BYTES = 212_992  # net.core.rmem_default: what may wait for one socket's reader
MESSAGE_BYTES = 256  # that a message takes besides its data
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
    length: int = 0  # of the whole message, when `data` is what there was room for

    def release_files(self) -> None:
        for file in self.files:
            file.release()
        self.files = ()


class Inbox:
    """What has come to a socket. Of a `stream` the borders of messages are lost where no files mark them."""

    def __init__(self, budget: MemoryBudget, stream: bool) -> None:
        self._budget = budget
        self._stream = stream
        self._messages: deque[tuple[bytearray, Message]] = deque()  # what is left of its data, and the message
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
            self._messages[-1][0].extend(message.data)
            return
        for file in message.files:
            file.retain()
        kept = Message(b"", message.credentials, message.files, message.sender)
        self._messages.append((bytearray(message.data), kept))

    def take(self, size: int, *, peek: bool = False) -> Message:
        """At most `size` bytes of the first message, with its files, whose holder the caller becomes.

        What is left of it is dropped, but for a stream.
        """
        data, first = self._messages[0]
        taken = Message(bytes(data[:size]), first.credentials, first.files, first.sender, len(data))
        if peek:
            for file in first.files:
                file.retain()
            return taken
        self._budget.take(-FILE_BYTES * len(first.files))
        first.files = ()
        if self._stream and size < len(data):
            del data[:size]
            self._free(size)
        else:
            self._messages.popleft()
            self._free(len(data) + MESSAGE_BYTES)
        return taken

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
