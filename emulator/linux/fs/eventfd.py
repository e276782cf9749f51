"""Event counters: what eventfd2 makes."""

from __future__ import annotations

from emulator.linux.errors import EAGAIN, EINVAL, LinuxError
from emulator.linux.fs.destination import Destination
from emulator.linux.fs.file import O_RDWR, POLLIN, POLLOUT, Caller, File

EVENTFD_LIMIT = (1 << 64) - 2


class EventCounter(File):
    """eventfd(2)"""

    writes_each_piece = True

    writes_all = False  # of what is longer than a number the rest is ignored

    def __init__(self, value: int, flags: int, semaphore: bool) -> None:
        super().__init__(O_RDWR | flags, "anon_inode:[eventfd]")
        self._value = value
        self._semaphore = semaphore

    def read(self, task: Caller, destination: Destination) -> int:
        """What does not arrive is counted no more."""
        if destination.left < 8:
            raise LinuxError(EINVAL, f"an eventfd is read into 8 bytes, not {destination.left}")
        if not self._value:
            raise LinuxError(EAGAIN, "the eventfd's counter is 0")
        taken = 1 if self._semaphore else self._value
        self._value -= taken
        self.changed.wake()
        return destination.give_whole(taken.to_bytes(8, "little"))

    def part_of_write(self, size: int, readable: int) -> int:
        """What is too short is refused before it is looked at."""
        return size if size < 8 else 0

    def write(self, task: Caller, data: bytes) -> int:
        added = int.from_bytes(data[:8], "little")
        if len(data) < 8 or added > EVENTFD_LIMIT:
            raise LinuxError(EINVAL, f"an eventfd takes 8 bytes with a number up to {EVENTFD_LIMIT:#x}")
        if self._value + added > EVENTFD_LIMIT:
            raise LinuxError(EAGAIN, "the eventfd's counter is full")
        self._value += added
        self.changed.wake()
        return 8

    def poll(self) -> int:
        return (POLLIN if self._value else 0) | (POLLOUT if self._value < EVENTFD_LIMIT else 0)
