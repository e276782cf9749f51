"""RINGBUF: records from programs to a process that has mapped them. kernel/bpf/ringbuf.c.

Pages: the consumer's position, the producer's, and the data twice, so that a record never wraps for who reads. Linux
maps the same frames twice; here what is written is copied.
"""

from __future__ import annotations

import struct
from typing import ClassVar

from emulator.linux.errors import EAGAIN, EINVAL, EPERM, LinuxError
from emulator.linux.fs.file import POLLIN, POLLRDNORM, Caller
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_WRITE
from perfcore.bpf.instructions import MASK64
from perfcore.bpf.maps.map import Host, Map, MapRequest

BUSY, DISCARD = 1 << 31, 1 << 30
HEADER_BYTES = 8
NO_WAKEUP, FORCE_WAKEUP = 1, 2
_U64 = struct.Struct("<Q")
_HEADER = struct.Struct("<II")  # length and flags; pages between the record and the buffer's beginning
_PRODUCER, _DATA = PAGE_SIZE, 2 * PAGE_SIZE
_BEFORE_DATA_PAGES = 3  # of struct bpf_ringbuf, whose first one nobody maps
_LENGTH_LIMIT = (1 << 32 - 2) - 1


class RingbufMap(Map):
    """The kernel's side of it."""

    has_lookup = False
    can_poll = True
    helpers: ClassVar[frozenset[str]] = frozenset({"ringbuf_output", "ringbuf_reserve", "ringbuf_query"})

    @classmethod
    def check(cls, request: MapRequest) -> None:
        cls.check_flags(request)
        size = request.max_entries
        if request.key_size or request.value_size or not size or size & size - 1 or size % PAGE_SIZE:
            raise LinuxError(EINVAL, "a ring buffer has neither keys nor values, and 2**n pages")

    def __init__(self, request: MapRequest, host: Host) -> None:
        super().__init__(request, host)
        self.size = request.max_entries
        self.memory = self.allocate(_DATA + 2 * self.size)
        self._produced = 0  # bytes; who reads sees them in the producer's page
        # length and position of records that are not whole yet, by where they begin in `memory`
        self._pending: dict[int, tuple[int, int]] = {}

    @property
    def _consumed(self) -> int:
        position: int = _U64.unpack_from(self.memory.data, 0)[0]
        return position

    def reserve(self, size: int) -> int:
        """The address of a record of `size` bytes, of which nobody knows yet; 0: there is no room."""
        if size > _LENGTH_LIMIT:
            return 0
        length = -(-(size + HEADER_BYTES) // 8) * 8
        produced = self._produced
        if length > self.size or (produced + length - self._consumed) & MASK64 > self.size - 1:
            return 0
        oldest = next((position for _, position in self._pending.values()), produced)
        if produced + length - oldest > self.size - 1:  # the consumer says that it has read what is not there yet
            return 0
        start = _DATA + produced % self.size
        self._pending[start] = size, produced
        self._write_header(start, size | BUSY)
        self._produced = produced + length
        _U64.pack_into(self.memory.data, _PRODUCER, self._produced)
        return self.memory.address_of(start + HEADER_BYTES)

    def _write_header(self, start: int, length: int) -> None:
        header = _HEADER.pack(length, (start - _DATA) // PAGE_SIZE + _BEFORE_DATA_PAGES)
        for copy in (start, start + self.size):
            self.memory.data[copy : copy + HEADER_BYTES] = header

    def commit(self, address: int, flags: int, *, discard: bool = False) -> None:
        """The record is whole, or shall not be read."""
        start = address - self.memory.address - HEADER_BYTES
        length, _ = self._pending.pop(start)
        self._copy(start + HEADER_BYTES, length)
        self._write_header(start, length | (DISCARD if discard else 0))
        at_its_end = self._consumed % self.size == start - _DATA
        if flags & FORCE_WAKEUP or (at_its_end and not flags & NO_WAKEUP):
            self.host.irq_work(self.readers.wake)

    def _copy(self, start: int, length: int) -> None:
        """What has been written, to where it is seen as well: behind the buffer, or at its beginning."""
        data, border = self.memory.data, _DATA + self.size
        whole = max(0, min(length, border - start))
        data[start + self.size : start + self.size + whole] = data[start : start + whole]
        if whole < length:
            wrapped = start + whole - self.size
            data[wrapped : wrapped + length - whole] = data[start + whole : start + length]

    def output(self, record: bytes, flags: int) -> None:
        if flags & ~(NO_WAKEUP | FORCE_WAKEUP):
            raise LinuxError(EINVAL, f"flags {flags:#x}")
        address = self.reserve(len(record))
        if not address:
            raise LinuxError(EAGAIN, "there is no room for the record")
        start = address - self.memory.address
        self.memory.data[start : start + len(record)] = record
        self.commit(address, flags)

    def query(self, what: int) -> int:
        """BPF_RB_AVAIL_DATA, _RING_SIZE, _CONS_POS, _PROD_POS."""
        answers = (self._produced - self._consumed, self.size, self._consumed, self._produced)
        return answers[what] if what < len(answers) else 0

    def poll(self) -> int:
        return POLLIN | POLLRDNORM if self._produced != self._consumed else 0

    def map_frames(self, task: Caller, length: int, offset: int, protection: int) -> int:
        if protection & PROT_WRITE and (offset or length != PAGE_SIZE):
            raise LinuxError(EPERM, "only the consumer's page may be written")
        if offset + length > _DATA + 2 * self.size:
            raise LinuxError(EINVAL, f"{length:#x} bytes at {offset:#x} are more than the buffer has")
        return self.memory.first + offset // PAGE_SIZE
