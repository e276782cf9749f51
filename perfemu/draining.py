"""Drain: the way of records from ring buffers to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from perfcore.events.ring_buffer import RingBuffer
from perfcore.perfdata.auxtrace import AuxTrace
from perfcore.perfdata.writer import PerfDataWriter
from perfemu.aux_reader import AuxReader
from perfemu.interruption import Interruption


class Drain:
    """Moves whole records from all ring buffers to a file. Runs between two guest instructions, when half of one is
    full.

    Buffers that are written backward are none of these: they are read when all is to be written.
    """

    def __init__(
        self,
        buffers: Sequence[RingBuffer],
        newest: Sequence[RingBuffer],
        writer: Callable[[], PerfDataWriter],
        interruption: Interruption,
        traces: Sequence[AuxReader] = (),
    ) -> None:
        """`newest`: those that are written backward. `writer`: of the file that is written now. `traces`: what else
        is beside the buffers."""
        self.samples = 0
        self.wakeups = 0
        self.after_round: Callable[[], None] | None = None
        self._buffers = buffers
        self._newest = newest
        self._traces = traces
        self._writer = writer
        self._interruption = interruption

    def __call__(self) -> None:
        with self.held():
            self.now()
            if self.after_round is not None:
                self.after_round()

    @contextmanager
    def held(self) -> Iterator[None]:
        """A signal of the user's waits until what is under way has been written."""
        self._interruption.hold()
        try:
            yield
        finally:
            self._interruption.release()

    def now(self, *, newest: bool = False, traces: Sequence[AuxTrace] = ()) -> None:
        """CPU after CPU: readers sort the records of a round by time. `newest`: of those written backward, too.
        `traces`: what is to be written besides."""
        records = [buffer.drain() for buffer in self._buffers]
        records += [record for buffer in (self._newest if newest else ()) for record in buffer.newest()]
        read = [trace for reader in self._traces if (trace := reader.read()) is not None]
        self._write(b"".join(records), [*read, *traces])

    def _write(self, records: bytes, traces: Sequence[AuxTrace]) -> None:
        if records or traces:
            self.wakeups += 1
            writer = self._writer()
            self.samples += writer.write(records)
            for trace in traces:
                writer.write_auxtrace(trace)
            if not self._newest:  # what is in those is older than what was written before
                writer.finish_round()  # readers sort by time; they need not wait for the file's end to do so
