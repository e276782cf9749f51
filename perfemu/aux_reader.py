"""AuxReader: the tool's side of an AUX area: mapped beside its event's buffer, and emptied into perf.data."""

from __future__ import annotations

from emulator.linux.mm.mapping import PAGE_SIZE
from perfcore.abi import mmap_page
from perfcore.events.aux_area import AuxArea
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import AuxUnit
from perfcore.events.ring_buffer import RingBuffer
from perfcore.perfdata.auxtrace import AuxTrace
from perfemu.errors import UsageError
from pmu.unit_pmu import UnitPmu


class AuxReader:
    """Of `buffer`, number `index`, into whose AUX area the unit of `event` writes."""

    def __init__(
        self,
        event: PerfEvent,
        buffer: RingBuffer,
        index: int,
        pages: int,
        pmu: UnitPmu,
        tid: int | None,
        *,
        overwrite: bool = False,
    ) -> None:
        """`pages`: 2**n; `pmu`: that unit's; `tid`: of the first task of which it is. `overwrite`: only the latest is
        wanted, so that the unit goes round.

        Raises UsageError where the unit can do nothing with as many.
        """
        unit = event.driver.aux
        assert unit is not None, "its PMU has an AUX area"
        offset, size = PAGE_SIZE + buffer.data_size, pages * PAGE_SIZE
        mmap_page.AUX_OFFSET.write(buffer.page, offset)
        mmap_page.AUX_SIZE.write(buffer.page, size)
        self._index = index
        self._cpu = None if event.cpu < 0 else event.cpu
        self._tid = tid
        self._now_ns = event.now_ns
        self._pmu = pmu
        self._area = buffer.aux = _area(event, unit, buffer, offset, size, overwrite)
        self._area.mappings = 1
        self._last_head = 0  # of the last snapshot
        self._last_data = b""  # ... of a unit behind whose stretches there is a trailer
        self._wrapped = False

    def read(self) -> AuxTrace | None:
        """What has been written since the last time, which the unit may then write over; None: nothing."""
        area = self._area
        tail: int = mmap_page.AUX_TAIL.read(area.page)
        length = area.head - tail
        if not length:
            return None
        first = tail % area.size
        data = bytes(area.memory[first : first + length])
        rest = bytes(area.memory[: length - len(data)])
        if rest:  # the unit has skipped what is too short for a record at the area's end
            data = data[: len(data) // self._pmu.record_bytes * self._pmu.record_bytes]
        data += rest + self._pmu.trailer
        mmap_page.AUX_TAIL.write(area.page, area.head)
        return AuxTrace(data, tail, self._now_ns(), self._index, self._cpu, self._tid)

    def latest(self, most: int | None) -> AuxTrace | None:
        """Of an area that is overwritten, the last `most` bytes, or all that is there. None: there is nothing new.

        As auxtrace_mmap__read_snapshot(): once something is in its last page the unit is taken to have gone round, and
        readers find by themselves what two of these have in common.
        """
        area, head, record = self._area, self._area.head, self._pmu.record_bytes
        self._wrapped = self._wrapped or any(area.memory[-PAGE_SIZE:])
        size = area.size - area.size % record  # units leave out what is too short for a record
        length = size if self._wrapped else head - self._last_head
        self._last_head = head
        if not length:
            return None
        length = min(length, most or size) // record * record
        start = head - length
        data = bytes(area.memory[max(start, 0) : head])
        if start < 0:
            data = bytes(area.memory[start + size : size]) + data
        offset = start + (size if self._wrapped else 0)
        if self._pmu.trailer:  # by which perf does not find what two of these have in common
            self._last_data, data = data, data[_overlap(self._last_data, data, record) :]
            offset += len(self._last_data) - len(data)
        return AuxTrace(data + self._pmu.trailer, offset, self._now_ns(), self._index, self._cpu, self._tid)


def _overlap(before: bytes, now: bytes, record: int) -> int:
    """How many bytes at the beginning of `now` are the end of `before`: as many as can be, as in perf's
    intel_bts_find_overlap()."""
    views, first = (memoryview(before), memoryview(now)), now[:record]
    at = before.find(first, max(len(before) - len(now), 0))
    while at >= 0:
        length = len(before) - at
        if at % record == 0 and views[0][at:] == views[1][:length]:
            return length
        at = before.find(first, at + 1)
    return 0


def _area(
    event: PerfEvent, unit: AuxUnit[PerfEvent], buffer: RingBuffer, offset: int, size: int, overwrite: bool
) -> AuxArea:
    def setup(memory: memoryview, overwrite: bool) -> object:
        private = unit.setup_aux(event, memory, overwrite)
        if private is None:
            raise UsageError(f"record -m: {event.driver.name} can do nothing with an AUX area of {size // 1024} KiB")
        return private

    return AuxArea(
        buffer.page,
        memoryview(bytearray(size)),
        offset=offset,
        overwrite=overwrite,
        watermark=event.attr.aux_watermark,
        setup=setup,
        free=unit.free_aux,
    )
