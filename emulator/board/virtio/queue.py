"""Queue: a split virtqueue, and Chain: what a driver has put there. VIRTIO 1.2, "Split Virtqueues".

All of it is the guest's to write, and believed nowhere: addresses must lie in RAM, a chain has no more descriptors than
its table, and neither it nor what is asked for in it is larger than a driver could need.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from emulator.board.virtio.guest_memory import GuestMemory, OutsideRam

DESCRIPTOR = struct.Struct("<QIHH")  # address, bytes, flags, next
NEXT, WRITE, INDIRECT = 1, 2, 4  # flags of a descriptor
NO_INTERRUPT = 1  # flag of the available ring
RING_HEAD_BYTES, USED_BYTES = 4, 8  # flags and index; identifier and bytes written
MOST_CHAIN_BYTES = 16 << 20  # to be read, and to be written
INDEX = 0xFFFF  # indices wrap around there


class BrokenQueue(Exception):
    """The driver has broken the rules: says how. A device that sees this needs a reset."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Buffers that belong together: what the device reads, then what it writes."""

    memory: GuestMemory
    head: int
    readable: list[tuple[int, int]] = field(default_factory=list)  # (address, bytes)
    writable: list[tuple[int, int]] = field(default_factory=list)

    @property
    def room(self) -> int:
        """How many bytes the device may write."""
        return sum(size for _, size in self.writable)

    def read(self) -> bytes:
        return b"".join(self.memory.read(address, size) for address, size in self.readable)

    def write(self, data: bytes) -> int:
        """As much of it as there is room for; how much that is."""
        done = 0
        for address, size in self.writable:
            piece = data[done : done + size]
            if not piece:
                break
            self.memory.write(address, piece)
            done += len(piece)
        return done


class Queue:
    """Addresses are of its descriptors, of what the driver writes, and of what the device writes."""

    kept = "size", "ready", "has_tables", "descriptors", "available", "used", "page", "_taken"

    def __init__(self, memory: GuestMemory, most: int) -> None:
        self._memory = memory
        self.most = most  # descriptors
        self.reset()

    def reset(self) -> None:
        self.size = self.most
        self.ready = False
        self.has_tables = False  # of descriptors elsewhere: the driver has accepted VIRTIO_F_INDIRECT_DESC
        self.descriptors = self.available = self.used = 0
        self.page = 0  # of a legacy driver
        self._taken = 0  # chains, as 16 bits

    def set_size(self, size: int) -> None:
        """All limits follow from it. Raises BrokenQueue."""
        if self.ready:
            raise BrokenQueue("its QueueNum changes while it is ready")
        self.size = size

    def start(self) -> None:
        """Raises BrokenQueue."""
        if self.size & (self.size - 1) or not 0 < self.size <= self.most:
            raise BrokenQueue(f"a queue of {self.size} descriptors: a power of 2 up to {self.most} would be right")
        self.ready = True
        self._taken = 0

    def chains(self, wanted: Callable[[], bool] = lambda: True) -> Iterator[Chain]:
        """All that are available now, while they are wanted, and no more than there can be: what the device writes may
        make others available. Raises BrokenQueue."""
        for _ in range(self.size):
            chain = self.take() if wanted() else None
            if chain is None:
                return
            yield chain

    def take(self) -> Chain | None:
        """The next one; None if there is none. Raises BrokenQueue."""
        if not self.ready:
            return None
        try:
            waiting = self._word(self.available + 2) - self._taken & INDEX
            if waiting > self.size:
                raise BrokenQueue(f"{waiting} chains are available in a queue of {self.size}")
            if not waiting:
                return None
            head = self._word(self.available + RING_HEAD_BYTES + 2 * (self._taken % self.size))
            self._taken = self._taken + 1 & INDEX
            return self._chain(head)
        except OutsideRam as problem:
            raise BrokenQueue(str(problem)) from None

    def give_back(self, chain: Chain, written: int) -> bool:
        """The device has done with it. Whether the driver wants to be interrupted. Raises BrokenQueue."""
        try:
            index = self._word(self.used + 2)
            at = self.used + RING_HEAD_BYTES + USED_BYTES * (index % self.size)
            self._memory.write(at, struct.pack("<II", chain.head, written))
            self._memory.write(self.used + 2, struct.pack("<H", index + 1 & INDEX))
            return not self._word(self.available) & NO_INTERRUPT
        except OutsideRam as problem:
            raise BrokenQueue(str(problem)) from None

    def _word(self, address: int) -> int:
        return int.from_bytes(self._memory.read(address, 2), "little")

    def _chain(self, head: int) -> Chain:
        chain = Chain(self._memory, head)
        table, count, index = self.descriptors, self.size, head
        is_indirect = False
        left = self.size  # descriptors, so that chains that are circles end
        while True:
            if index >= count:
                raise BrokenQueue(f"descriptor {index} of {count}")
            address, size, flags, following = DESCRIPTOR.unpack(
                self._memory.read(table + DESCRIPTOR.size * index, DESCRIPTOR.size)
            )
            if flags & INDIRECT:
                if not self.has_tables:
                    raise BrokenQueue(f"descriptor {index} refers to a table, which was not negotiated")
                if is_indirect or flags & NEXT or size % DESCRIPTOR.size or not size:
                    raise BrokenQueue(f"descriptor {index} refers to a table of {size} bytes as it must not")
                table, count, index, is_indirect = address, size // DESCRIPTOR.size, 0, True
                continue
            self._add(chain, address, size, bool(flags & WRITE))
            left -= 1
            if not flags & NEXT:
                return chain
            if not left:
                raise BrokenQueue(f"a chain of more than {self.size} descriptors")
            index = following

    def _add(self, chain: Chain, address: int, size: int, is_writable: bool) -> None:
        self._memory.check(address, size)
        if chain.writable and not is_writable:
            raise BrokenQueue("a buffer to be read behind one to be written")
        buffers = chain.writable if is_writable else chain.readable
        buffers.append((address, size))
        if sum(size for _, size in buffers) > MOST_CHAIN_BYTES:
            raise BrokenQueue(f"a chain of more than {MOST_CHAIN_BYTES >> 20} MiB")
