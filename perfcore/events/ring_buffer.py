"""RingBuffer: the mmap'd buffer, a perf_event_mmap_page and 2**n data pages. As kernel/events/ring_buffer.c.

Heads and tails count bytes since the start and are wrapped only when memory is touched. The kernel side writes whole
records; who reads moves `data_tail`. The tool's side reads with `drain`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from emulator.linux.mm.mapping import PAGE_SIZE
from emulator.linux.sched.waiting import WaitQueue
from perfcore.abi import mmap_page
from perfcore.abi.mmap_page import Capability
from perfcore.abi.sample import HEADER
from perfcore.events.aux_area import AuxArea

_U64 = struct.Struct("<Q")
_read_u64, _write_u64 = _U64.unpack_from, _U64.pack_into
_HEAD = mmap_page.DATA_HEAD.offset
_TAIL = mmap_page.DATA_TAIL.offset
_ALL_BITS = (1 << 64) - 1


class Written(IntEnum):
    """What became of a record."""

    LOST = 0
    STORED = 1
    WAKEUP = 2  # stored, and the reader is to be woken


class RecordSource(Protocol):
    """The event that a record is of."""

    def lost_record(self, lost: int) -> bytes:
        """PERF_RECORD_LOST, complete, for `lost` records that found no room."""


class RingBuffer:
    """One buffer, shared by all events whose output goes here.

    With `backward` (attr.write_backward of them all) records are written from the end on: `data_head` is minus what has
    been written, and who reads begins there, with the newest.

    `memory` is (1 + 2**n) pages (or the first page alone: no records, as Linux allows). `watermark` is in bytes, 0 for
    half of the buffer. With `overwrite` (a read-only mapping) old records are overwritten whatever `data_tail` is.
    """

    def __init__(self, memory: memoryview, watermark: int = 0, overwrite: bool = False, backward: bool = False) -> None:
        pages, rest = divmod(len(memory), PAGE_SIZE)
        data_pages = pages - 1
        if rest or data_pages < 0 or data_pages & (data_pages - 1):
            raise ValueError(f"a ring buffer is 1 + 2**n pages of {PAGE_SIZE} bytes, not {len(memory)} bytes")
        self.page = memory[:PAGE_SIZE]
        self.data = memory[PAGE_SIZE:]
        self.data_pages = data_pages
        self.data_size = data_pages * PAGE_SIZE
        self.overwrite = overwrite
        self.backward = backward
        self.watermark = min(watermark, self.data_size) or self.data_size // 2
        self.paused = data_pages == 0
        self.lost = 0  # records that found no room since the last PERF_RECORD_LOST
        self.poll_ready = False  # POLLIN is due
        self.on_wakeup: Callable[[], None] | None = None  # called at once, between two guest instructions
        self.readers = WaitQueue()  # of the guest
        self.irq_work: Callable[[Callable[[], object]], object] = lambda work: work()  # how they are woken
        self.aux: AuxArea | None = None  # beside it
        self.aux_progress = (0, 0)  # of one that has gone: its head, and for what its reader has been woken
        self._head = 0  # bytes written
        self._newest_taken = 0  # ... when `newest` was asked last
        self._wakeup = 0  # bytes: the reader is woken when the head is `watermark` beyond
        self._samples = 0  # since the last wakeup by attr.wakeup_events
        mmap_page.CAPABILITIES.write(self.page, Capability.BIT0_IS_DEPRECATED)
        mmap_page.SIZE.write(self.page, mmap_page.MEANINGFUL_BYTES)
        mmap_page.DATA_OFFSET.write(self.page, PAGE_SIZE)
        mmap_page.DATA_SIZE.write(self.page, self.data_size)

    @classmethod
    def allocate(
        cls, data_pages: int, watermark: int = 0, overwrite: bool = False, backward: bool = False
    ) -> RingBuffer:
        """A buffer in host memory, for a reader that is not a guest."""
        return cls(memoryview(bytearray((1 + data_pages) * PAGE_SIZE)), watermark, overwrite, backward)

    def write(self, record: bytes, source: RecordSource, wakeup_events: int = 0) -> Written:
        """Append one record; first a PERF_RECORD_LOST where records were lost before.

        `wakeup_events` wakes the reader after so many records that were written with it (samples); 0: by the watermark.
        """
        size = self.data_size
        if self.paused:
            return self.lose()
        lost = self.lost
        if lost:
            record = source.lost_record(lost) + record
        length = len(record)
        head = self._head
        if self.overwrite:  # Linux lets a record overwrite itself
            room = size
        else:  # CIRC_SPACE: one byte stays free, so that a full buffer does not look empty
            tail: int = _read_u64(self.page, _TAIL)[0]
            room = ((-head - tail if self.backward else tail - head) - 1) % size
        if length > room:
            self.lost = lost + 1
            return Written.LOST
        self.lost = 0
        start = (-(head + length) if self.backward else head) % size
        end = start + length
        data = self.data
        if end <= size:
            data[start:end] = record
        else:
            room = size - start
            data[start:] = record[:room]
            data[: length - room] = record[room:]
        head += length
        self._head = head
        woken = False
        if head - self._wakeup > self.watermark:
            self._wakeup += self.watermark
            woken = True
        if wakeup_events:
            self._samples += 1
            if self._samples >= wakeup_events:
                self._samples -= wakeup_events
                self._wakeup += 1  # as Linux does: any change of this number is a wakeup
                woken = True
        _write_u64(self.page, _HEAD, -head & _ALL_BITS if self.backward else head)
        if woken:
            self.wake()
            return Written.WAKEUP
        return Written.STORED

    def write_all(self, records: Sequence[bytes], source: RecordSource, wakeup_events: int = 0) -> tuple[int, bool]:
        """As `write` of each, at once where nobody is woken in between. Returns how many were lost, and whether
        somebody is."""
        joined = b"".join(records)
        head, size = self._head, len(joined)
        plain = not (self.paused or self.lost or self.overwrite or self.backward or wakeup_events)
        wakes = head + size - self._wakeup > self.watermark
        if plain and not wakes and size <= (_read_u64(self.page, _TAIL)[0] - head - 1) % self.data_size:
            self.write(joined, source)
            return 0, False
        written = [self.write(record, source, wakeup_events) for record in records]
        return written.count(Written.LOST), Written.WAKEUP in written

    def lose(self) -> Written:
        """A record that could not be made counts as one that found no room."""
        self.lost += bool(self.data_size)
        return Written.LOST

    def wake(self) -> None:
        """There is something to read, or will never be."""
        self.poll_ready = True
        if self.on_wakeup is not None:
            self.on_wakeup()
        self.irq_work(self.readers.wake)

    def drain(self) -> bytes:
        """Take all records that are there, and move data_tail behind them. Of a buffer that is written forward."""
        size = self.data_size
        tail: int = _read_u64(self.page, _TAIL)[0]
        length = self._head - tail
        if not length:
            return b""
        if length > size:
            raise ValueError(f"data_tail is {length} bytes behind data_head, but the buffer has {size}")
        start = tail % size
        if start + length <= size:
            taken = bytes(self.data[start : start + length])
        else:
            taken = bytes(self.data[start:]) + bytes(self.data[: start + length - size])
        _write_u64(self.page, _TAIL, self._head)
        return taken

    def newest(self) -> list[bytes]:
        """The records of a buffer that is written backward and over what was there, which are whole, oldest first; and
        forget them."""
        size, head = self.data_size, -self._head % self.data_size
        unread = min(self._head - self._newest_taken, size)
        self._newest_taken = self._head
        data = bytes(self.data[head:]) + bytes(self.data[:head])
        records: list[bytes] = []
        at = 0
        while at + HEADER.size <= unread:
            length: int = HEADER.unpack_from(data, at)[2]
            if not length or at + length > unread:
                break  # its other end has been written over
            records.append(data[at : at + length])
            at += length
        return records[::-1]
