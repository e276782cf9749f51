"""GuestBuffer: the frames of a ring buffer that guests map, and of the AUX area beside it. As perf_mmap()."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from emulator._native import PhysicalMemory
from emulator.linux.errors import EINVAL, ENOMEM, EOPNOTSUPP, LinuxError
from emulator.linux.fs.file import Caller
from emulator.linux.mm.mapping import PAGE_SIZE, PROT_WRITE
from perfcore.abi import mmap_page
from perfcore.events.aux_area import AuxArea
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.events.locked_memory import LockedMemory
from perfcore.events.ring_buffer import RingBuffer

MOST_AUX_PAGES = 1 << 19  # of as many a table can be allocated (MAX_PAGE_ORDER)


class Mapper(Protocol):
    """An event's file."""

    event: PerfEvent

    def mapped(self) -> None: ...
    def unmapped(self) -> None: ...

    def buffer_unmapped(self) -> None:
        """Nobody has the buffer mapped that the event writes."""


class GuestBuffer:
    """A ring buffer in frames that guests map. All files whose events write it have it; the last one frees it."""

    def __init__(
        self,
        memory: PhysicalMemory,
        locked: LockedMemory,
        task: Caller,
        pages: int,
        event: PerfEvent,
        *,
        overwrite: bool,
    ) -> None:
        """1 + 2**n pages, or the first alone, for `event`, which `task` maps. EPERM, ENOMEM."""
        self.first, self._discharge = _allocate(memory, locked, task, pages)  # frame
        self.pages = pages
        self.mappings = 0  # processes that have it mapped, or its AUX area
        self.files: dict[Mapper, None] = {}
        self._memory = memory
        self._locked = locked
        attr = event.attr
        watermark = attr.wakeup_events if attr.watermark else 0
        backward = bool(attr.write_backward)
        self.ring = RingBuffer(memory.view(self.first, pages), watermark, overwrite=overwrite, backward=backward)
        kernel = event.kernel
        self.ring.irq_work = lambda work: kernel.tracepoints.recursion.pending_irq(kernel.executing_cpu, work)
        self.aux_first = 0  # frame, while the ring has an AUX area

    def discharge(self) -> None:
        """It is no longer somebody's locked memory."""
        self._discharge()
        self._discharge = _nothing

    def join(self, file: Mapper) -> None:
        self.files[file] = None

    def leave(self, file: Mapper) -> None:
        self.files.pop(file, None)
        if not self.files:
            self.discharge()
            self._memory.release(self.first, self.pages)

    def aux_area(self, task: Caller, event: PerfEvent, length: int, offset: int, protection: int) -> AuxArea:
        """The area that user space has asked for in the ring's first page; made if nobody has mapped it.

        Errors come in the order of perf_mmap() and rb_alloc_aux().
        """
        ring = self.ring
        pages = -(-length // PAGE_SIZE)
        size = pages * PAGE_SIZE
        wanted_offset, wanted_size = (field.read(ring.page) for field in (mmap_page.AUX_OFFSET, mmap_page.AUX_SIZE))
        if wanted_offset < PAGE_SIZE + ring.data_size or (wanted_offset, wanted_size) != (offset, size):
            raise LinuxError(
                EINVAL,
                f"an AUX area of {size:#x} bytes at {offset:#x}: the page asks for {wanted_size:#x} at "
                f"{wanted_offset:#x}, and it is behind the data, which end at {PAGE_SIZE + ring.data_size:#x}",
            )
        if ring.aux is not None and (ring.aux.offset, ring.aux.size) != (offset, size):
            raise LinuxError(EINVAL, f"it is mapped at {ring.aux.offset:#x}, with {ring.aux.size:#x} bytes")
        if pages & (pages - 1):
            raise LinuxError(EINVAL, f"an AUX area of {pages} pages: it has 2**n")
        if ring.aux is None:
            ring.aux = self._new_area(task, event, pages, offset, overwrite=not protection & PROT_WRITE)
        return ring.aux

    def _new_area(self, task: Caller, event: PerfEvent, pages: int, offset: int, *, overwrite: bool) -> AuxArea:
        """rb_alloc_aux()"""
        memory = self._memory
        self._locked.release(self._locked.charge(task, pages))  # EPERM comes first
        unit = event.driver.aux
        if unit is None:
            raise LinuxError(EOPNOTSUPP, f"{event.driver.name} events have no AUX area")
        if pages > MOST_AUX_PAGES:
            raise LinuxError(ENOMEM, f"an AUX area of {pages} pages; there are at most {MOST_AUX_PAGES}")
        first, discharge = _allocate(memory, self._locked, task, pages)

        def free() -> None:
            discharge()
            memory.release(first, pages)

        try:
            area = AuxArea(
                self.ring.page,
                memory.view(first, pages),
                offset=offset,
                overwrite=overwrite,
                watermark=event.attr.aux_watermark,
                setup=lambda area, overwrite: unit.setup_aux(event, area, overwrite),
                free=unit.free_aux,
            )
        except LinuxError:
            free()
            raise
        area.head, area.woken = self.ring.aux_progress
        area.on_free = free
        self.aux_first = first
        return area

    def drop_aux(self, area: AuxArea) -> None:
        """Nobody has it mapped any more: who writes it stops, and it goes (perf_pmu_output_stop, rb_free_aux)."""
        for event in self._writers():
            if event.driver.aux is not None and event.state == EventState.ACTIVE:
                event.driver.stop(event)
        self.ring.aux, self.ring.aux_progress = None, (area.head, area.woken)
        area.put()

    def _writers(self) -> Iterator[PerfEvent]:
        for file in self.files:
            yield file.event
            yield from file.event.children


class AuxMapping:
    """A file's mappings of an AUX area: they keep the file, the ring buffer and the area."""

    def __init__(self, file: Mapper, buffer: GuestBuffer, area: AuxArea) -> None:
        self.area = area
        self._file = file
        self._buffer = buffer

    @property
    def may_be_split(self) -> bool:
        """perf_mmap_may_split()."""
        return False

    def mapped(self) -> None:
        self._file.mapped()
        self.area.mappings += 1

    def unmapped(self) -> None:
        self.area.mappings -= 1
        if not self.area.mappings:
            self._buffer.drop_aux(self.area)
        self._file.unmapped()


def _allocate(memory: PhysicalMemory, locked: LockedMemory, task: Caller, pages: int) -> tuple[int, Callable[[], None]]:
    """The first of so many frames, which are `task`'s locked memory; and how they go. EPERM, ENOMEM."""
    charge = locked.charge(task, pages)
    try:
        first = memory.allocate(pages)
    except (MemoryError, TypeError):  # more frames than there are, or than a frame's number has bits
        locked.release(charge)
        raise LinuxError(ENOMEM, f"a perf buffer of {pages} pages: {memory.used_bytes} bytes are in use") from None
    return first, partial(locked.release, charge)


def _nothing() -> None:
    """It has been done."""
