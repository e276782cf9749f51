"""TracePmu: a unit for tests that traces into an AUX area: whatever a test says, or the numbers of system calls.

Its driver does what those of trace units do: it begins to write when its event goes on, ends when that goes off, and
between two packets when the reader wants to be woken or nothing is left. A packet is 8 bytes.
"""

from __future__ import annotations

import struct

from emulator.linux.errors import EINVAL, ENOENT, LinuxError
from perfcore.abi.constants import AuxFlag
from perfcore.events.aux_output import AuxOutput
from perfcore.events.drivers.without_counters import WithoutCounters
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import AuxUnit

PACKET = struct.Struct("<Q")


class Unit:
    """Its AUX half."""

    def __init__(self, *, exclusive=False, itrace=True, most_pages=1 << 20) -> None:
        self.exclusive = exclusive
        self.itrace = itrace
        self.takes_snapshots = self.pausable = True
        self.most_pages = most_pages
        self.areas: list[str] = []  # what has become of them
        self.written = bytearray()

    def setup_aux(self, event: PerfEvent, memory: memoryview, overwrite: bool) -> object | None:
        if len(memory) >> 12 > self.most_pages:
            return None
        self.areas.append(f"{len(memory) >> 12} pages{', overwrite' if overwrite else ''}")
        return len(self.areas)

    def free_aux(self, private: object) -> None:
        self.areas.append(f"{private} freed")

    def pause(self, event: PerfEvent) -> None:
        self.areas.append("paused")

    def resume(self, event: PerfEvent) -> None:
        self.areas.append("resumed")

    def snapshot_aux(self, event: PerfEvent, size: int) -> bytes:
        return bytes(self.written[-size:])

    def aux_output_match(self, event: PerfEvent) -> bool:
        return event.attr.config == 1


class TracePmu(WithoutCounters):
    """`config` bit 0: mark what it skips; the rest must be 0."""

    type = -1  # in the context of software events, as all such units: so counters may follow it

    def __init__(self, kernel=None, name="test_trace", **unit) -> None:
        """With `kernel`, the system calls of whose guests are traced."""
        self.name = name
        self.unit = Unit(**unit)
        self.outputs: dict[PerfEvent, AuxOutput] = {}
        self.begun: dict[PerfEvent, int] = {}  # head at which the present stretch began
        if kernel is not None:
            kernel.tracepoints.sys_enter.subscribe(lambda task, number, arguments: self.trace(PACKET.pack(number)))

    @property
    def aux(self) -> AuxUnit[PerfEvent]:
        return self.unit

    def sysfs_attributes(self):
        return {"format/mark": "config:0", "events/calls": "mark=0", "caps/packet_bytes": "8", "cpumask": "0"}

    def event_init(self, event: PerfEvent) -> None:
        if event.attr.type != self.type:
            raise LinuxError(ENOENT, f"{self.name}: attr.type {event.attr.type} is not its own")
        if event.attr.config & ~1 or event.is_sampling:
            raise LinuxError(EINVAL, f"{self.name}: config {event.attr.config:#x}")

    def add(self, event, cpu) -> bool:
        self.start(event)
        return True

    def del_(self, event) -> None:
        self.stop(event)

    def start(self, event, reload=False) -> None:
        output = AuxOutput.begin(event)
        event.hw.stopped = output is None
        if output is not None:
            self.outputs[event] = output
            self.begun[event] = output.head
            (event.parent or event).aux.itrace_started = True

    def stop(self, event, update=True) -> None:
        event.hw.stopped = True
        output = self.outputs.pop(event, None)
        if output is not None:
            output.end(output.head - self.begun[event])

    def read(self, event) -> None:
        """It counts nothing."""

    # what the hardware does

    def trace(self, packet: bytes) -> None:
        """Every event that is on writes it."""
        self.unit.written += packet
        for event, output in list(self.outputs.items()):
            if event.aux.paused:
                continue
            if not output.area.overwrite and output.size < len(packet):
                output.flags |= AuxFlag.TRUNCATED
                self.stop(event)
                continue
            output.write(packet)
            if not output.area.overwrite and output.head >= output.wakeup:
                self.stop(event)
                self.start(event)
