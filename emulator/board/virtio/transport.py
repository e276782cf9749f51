"""Transport: a virtio device's registers in memory. VIRTIO 1.2, "Virtio Over MMIO", and its "Legacy interface"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from emulator.board.bus import Unmodelled
from emulator.board.virtio.device import MOST_DESCRIPTORS, VirtioDevice
from emulator.board.virtio.guest_memory import GuestMemory
from emulator.board.virtio.queue import BrokenQueue, Queue

MAGIC, VENDOR = 0x7472_6976, 0x4D46_5045  # "virt", "EPFM"
LEGACY, CURRENT = 1, 2  # versions
INDIRECT_DESCRIPTORS, VERSION_1 = 1 << 28, 1 << 32  # features
FEATURES_OK, NEEDS_RESET = 8, 64  # of Status
USED_BUFFER, CONFIGURATION_CHANGE = 1, 2  # of InterruptStatus
CONFIGURATION = 0x100
OF_QUEUE = (0x040, 0x044)  # what is read of the queue that is selected
REGISTER_BYTES = 4
WORD = 0xFFFF_FFFF


class Transport:
    """One slot. Without a device it says so, and does nothing else."""

    kept = (
        "_device", "_queues", "_selected", "_status", "_interrupts", "_accepted", "_offered_half", "_accepted_half",
        "_page_bytes", "_alignment",
    )  # fmt: skip

    def __init__(
        self,
        device: VirtioDevice | None,
        memory: GuestMemory,
        set_line: Callable[[bool], None],
        message: Callable[[str], None],
        busy: Callable[[int], None] = lambda size: None,
        *,
        legacy: bool = False,
    ) -> None:
        self._device = device
        self._set_line = set_line
        self._message = message
        self._memory, self._busy = memory, busy
        self._legacy = legacy
        self._queues = [Queue(memory, MOST_DESCRIPTORS) for _ in range(0 if device is None else device.queues)]
        self._offered = 0 if device is None else device.features | INDIRECT_DESCRIPTORS | (0 if legacy else VERSION_1)
        self._selected = 0  # queue
        self._clear()
        identification: Mapping[int, Callable[[], int]] = {
            0x000: lambda: MAGIC,
            0x004: lambda: LEGACY if legacy else CURRENT,
            0x008: lambda: 0 if device is None else device.number,
            0x00C: lambda: VENDOR,
        }
        common_reads: Mapping[int, Callable[[], int]] = {
            **identification,
            0x010: lambda: self._offered >> 32 * self._offered_half & WORD if self._offered_half < 2 else 0,
            0x034: lambda: self._queue.most if self._has_queue else 0,
            0x060: lambda: self._interrupts,
            0x070: lambda: self._status,
        }
        common_writes: Mapping[int, Callable[[int], None]] = {
            0x014: partial(setattr, self, "_offered_half"),
            0x020: self._accept,
            0x024: partial(setattr, self, "_accepted_half"),
            0x030: partial(setattr, self, "_selected"),
            0x038: lambda value: self._queue.set_size(value),
            0x050: self._notify,
            0x064: self._acknowledge,
            0x070: self._set_status,
        }
        self._reads: Mapping[int, Callable[[], int]] = identification
        self._writes: Mapping[int, Callable[[int], None]] = {}
        if device is None:
            return
        if legacy:
            self._reads = {**common_reads, 0x040: lambda: self._queue.page}
            self._writes = {
                **common_writes,
                0x028: partial(setattr, self, "_page_bytes"),
                0x03C: partial(setattr, self, "_alignment"),
                0x040: self._place_queue,
            }
        else:
            self._reads = {
                **common_reads,
                0x044: lambda: int(self._queue.ready),
                **{offset: lambda: WORD for offset in range(0x0B0, 0x0C0, 4)},  # there is no shared memory
                0x0FC: lambda: 0,  # the configuration never changes
            }
            self._writes = {
                **common_writes,
                0x044: self._set_ready,
                0x0AC: lambda value: None,
                **{
                    offset + 4 * half: partial(self._set_address, part, half)
                    for offset, part in ((0x080, "descriptors"), (0x090, "available"), (0x0A0, "used"))
                    for half in (0, 1)
                },
            }

    # ---- the bus's side

    def read(self, offset: int, size: int) -> int:
        if offset >= CONFIGURATION and self._device is not None:
            at = offset - CONFIGURATION
            return int.from_bytes(self._device.configuration[at : at + size], "little")
        read = self._reads.get(offset)
        if read is None or size != REGISTER_BYTES:
            raise Unmodelled(f"a load of {size} bytes at {self._named(offset)}")
        return read() if self._has_queue or offset not in OF_QUEUE else 0

    def write(self, offset: int, size: int, value: int) -> None:
        if offset >= CONFIGURATION and self._device is not None:
            self._device.configure(offset - CONFIGURATION, value.to_bytes(size, "little"))
            return
        write = self._writes.get(offset)
        if write is None or size != REGISTER_BYTES:
            raise Unmodelled(f"a store of {size} bytes at {self._named(offset)}")
        try:
            write(value)
        except BrokenQueue as problem:
            self._break(str(problem))

    def _named(self, offset: int) -> str:
        return f"register {offset:#x} of {'an empty virtio slot' if self._device is None else self._device.name}"

    # ---- the device's side

    def attend(self, number: int) -> None:
        """The device has something for that queue, or room: as if the driver had notified it."""
        try:
            self._notify(number)
        except BrokenQueue as problem:
            self._break(str(problem))

    def _interrupt(self, why: int) -> None:
        self._interrupts |= why
        self._set_line(True)

    def _break(self, problem: str) -> None:
        assert self._device is not None, "only devices have queues"
        self._message(f"{self._device.name}: {problem}; its driver must reset it")
        for queue in self._queues:
            queue.ready = False
        self._status |= NEEDS_RESET
        self._interrupt(CONFIGURATION_CHANGE)

    # ---- registers

    def _clear(self) -> None:
        self._status = self._interrupts = self._accepted = 0
        self._offered_half = self._accepted_half = 0
        self._page_bytes, self._alignment = 4096, 4096  # of legacy drivers
        for queue in self._queues:
            queue.reset()

    @property
    def _has_queue(self) -> bool:
        return self._selected < len(self._queues)

    @property
    def _queue(self) -> Queue:
        """Raises BrokenQueue."""
        if not self._has_queue:
            raise BrokenQueue(f"queue {self._selected} of {len(self._queues)}")
        return self._queues[self._selected]

    def _accept(self, value: int) -> None:
        if self._accepted_half < 2:
            shift = 32 * self._accepted_half
            self._accepted = self._accepted & ~(WORD << shift) | value << shift
        for queue in self._queues:
            queue.has_tables = bool(self._accepted & INDIRECT_DESCRIPTORS)

    def _set_status(self, value: int) -> None:
        if not value:
            self._clear()
            self._set_line(False)
            assert self._device is not None, "an empty slot has no such register"
            self._device.reset()
            return
        if not self._legacy and (self._accepted & ~self._offered or not self._accepted & VERSION_1):
            value &= ~FEATURES_OK  # what it does not have, or a driver that should have seen a legacy device
        self._status = value & 0xFF | self._status & NEEDS_RESET

    def _acknowledge(self, value: int) -> None:
        self._interrupts &= ~value
        self._set_line(bool(self._interrupts))

    def _notify(self, number: int) -> None:
        if self._status & NEEDS_RESET:
            return
        if number >= len(self._queues):
            raise BrokenQueue(f"queue {number} of {len(self._queues)}")
        assert self._device is not None, "only devices have queues"
        before = self._memory.moved_bytes
        try:
            if self._device.notified(number, self._queues):
                self._interrupt(USED_BUFFER)
        finally:
            self._busy(self._memory.moved_bytes - before)

    def _set_ready(self, value: int) -> None:
        if value & 1:
            self._queue.start()
        else:
            self._queue.ready = False

    def _set_address(self, part: str, half: int, value: int) -> None:
        queue, shift = self._queue, 32 * half
        setattr(queue, part, getattr(queue, part) & ~(WORD << shift) | value << shift)

    def _place_queue(self, page: int) -> None:
        """All three parts of a legacy queue, one behind the other."""
        queue = self._queue
        queue.page = page
        queue.ready = False
        if not page:
            return
        if not 0 < self._alignment <= 1 << 16:
            raise BrokenQueue(f"an alignment of {self._alignment} bytes")
        queue.descriptors = page * self._page_bytes
        queue.available = queue.descriptors + 16 * queue.size
        end = queue.available + 4 + 2 * queue.size + 2
        queue.used = -(-end // self._alignment) * self._alignment
        queue.start()
