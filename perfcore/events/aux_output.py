"""AuxOutput: a stretch of an AUX area that a unit writes. As perf_aux_output_begin, _skip and _end.

kernel/events/ring_buffer.c. Drivers begin one when an event goes on, and end it when it goes off, when it is full, and
when the reader wants to be woken.
"""

from __future__ import annotations

from perfcore.abi.constants import AuxFlag
from perfcore.abi.records import Aux
from perfcore.events.aux_area import AuxArea
from perfcore.events.event import PerfEvent


class AuxOutput:
    """struct perf_output_handle of an AUX area: from `begin` to `end` the unit may write `size` bytes at `head`.

    Both are the driver's to change: in overwrite mode `head` says at the end where the unit is.
    """

    def __init__(self, event: PerfEvent, area: AuxArea) -> None:
        self.event = event
        self.area = area
        self.head = area.head
        self.size = 0 if area.overwrite else area.room()
        self.wakeup = area.woken + area.watermark  # at which head it shall end, for the reader's sake
        self.flags = AuxFlag(0)

    @classmethod
    def begin(cls, event: PerfEvent) -> AuxOutput | None:
        """perf_aux_output_begin(). None: there is no area; or no room: `event` is disabled, its reader woken."""
        buffer = event.opened_buffer
        area = None if buffer is None else buffer.aux
        if buffer is None or area is None or not area.mappings or area.busy:
            return None
        output = cls(event, area)
        if not area.overwrite and not output.size:
            event.disable_soon()
            buffer.wake()
            return None
        area.take()
        area.busy = True
        return output

    def write(self, data: bytes) -> None:
        """Copy `data`, for which there is room, behind what has been written: what hardware does by itself."""
        area = self.area
        start = self.head % area.size
        first = data[: area.size - start]
        area.memory[start : start + len(first)] = first
        area.memory[: len(data) - len(first)] = data[len(first) :]
        self.head += len(data)
        self.size -= 0 if area.overwrite else len(data)

    def skip(self, size: int) -> bool:
        """perf_aux_output_skip(): leave out `size` bytes, for the sake of alignment. Whether there are as many."""
        if size > self.size:
            return False
        area = self.area
        area.advance(size)
        if area.wakes():
            self._wake()
            self.wakeup = area.woken + area.watermark
        self.head = area.head
        self.size -= size
        return True

    def end(self, size: int) -> None:
        """perf_aux_output_end(): `size` bytes have been written since `begin`."""
        area, event = self.area, self.event
        flags = self.flags & ~AuxFlag.OVERWRITE
        if area.overwrite:
            start = area.head = self.head
        else:
            start = area.head
            area.head += size
        if size or flags:
            told = flags | (AuxFlag.OVERWRITE if area.overwrite else 0)
            event.write_record(event.output.record(Aux(start, size, told), cpu=event.on_cpu))
        area.show_head()
        truncated = bool(flags & AuxFlag.TRUNCATED)
        if area.wakes() or truncated:
            if truncated:
                event.disable_soon()
            self._wake()
        area.busy = False
        area.put()

    def _wake(self) -> None:
        buffer = self.event.opened_buffer
        if buffer is not None:
            buffer.wake()
