"""EventOutput: makes the records of one event. What a sample needs is decided once, when the event is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from emulator.cpu import Cpu, Level
from perfcore.abi.constants import Misc, SampleType
from perfcore.abi.memory import DataSource
from perfcore.abi.records import Lost, LostSamples, Read, Record, Throttle, Unthrottle
from perfcore.abi.sample import Sample, sample_encoder, sample_id_encoder
from perfcore.events.kernel import Linux
from perfcore.events.preparations import (
    OF_PLACES,
    PREPARATIONS,
    SAMPLE_ID_PREPARATIONS,
    SampledEvent,
    has_callchain,
    prepare_exact_ip,
    prepare_idle,
    prepare_ip,
    prepare_kernel,
    prepare_level,
)

_LARGEST_RECORD = (1 << 16) - 1  # bytes: header.size

Fill = Callable[[Sample], None]  # for what a unit knows of one sample
Part = TypeVar("Part")  # ... and what it knows that from


def _with_aux(event: SampledEvent, encode: Callable[[Sample], bytes]) -> Callable[[Sample], bytes]:
    """With as much of an AUX area as it asks for, if the record's size, of 16 bits, has room for it."""

    def encode_with_aux(sample: Sample) -> bytes:
        sample.aux = b""
        room = _LARGEST_RECORD - len(encode(sample))
        sample.aux = event.aux.snapshot(event.on_cpu, min(room, event.attr.aux_sample_size) // 8 * 8)
        return encode(sample)

    return encode_with_aux


class EventOutput:
    """The records of one event. One Sample is filled again and again."""

    def __init__(self, event: SampledEvent, kernel: Linux, hardware: bool) -> None:
        """`hardware`: overflows are interrupts of a PMU, so that precise_ip can name the instruction itself."""
        self._event = event
        self._kernel = kernel
        attr = event.attr
        wanted = attr.sample_type
        exact = hardware and attr.precise_ip >= 2
        sample = Sample(
            misc=int(Misc.USER | (Misc.EXACT_IP if exact else 0)),
            identifier=event.primary_id,
            id=event.primary_id,
            stream_id=event.id,
            data_src=DataSource.NOT_AVAILABLE,
        )
        prepares = [row.prepare(event, kernel) for row in PREPARATIONS if row.bit & wanted]
        if wanted & (SampleType.IP | SampleType.CODE_PAGE_SIZE):
            if exact:
                prepares.append(prepare_exact_ip(event, kernel))
            elif not (wanted & SampleType.CALLCHAIN and has_callchain(event, kernel)):  # which knows it
                prepares.append(prepare_ip(event, kernel))
        if kernel.executes:
            prepares.append(prepare_level(event, kernel, Misc.EXACT_IP if exact else 0))
        elif hardware and event.counts_at(Level.KERNEL):
            prepares.append(prepare_kernel(event, kernel, sample.misc))
        elif not hardware and event.cpu != -1:
            prepares.append(prepare_idle(event, kernel))
        self._sample = sample
        self._prepares = tuple(prepares)
        self._place_prepares = tuple(row.prepare(event, kernel) for row in OF_PLACES if row.bit & wanted)
        encode = sample_encoder(attr)
        self._encode = _with_aux(event, encode) if wanted & SampleType.AUX else encode
        self._id_prepares = tuple(row.prepare(event, kernel) for row in SAMPLE_ID_PREPARATIONS if row.bit & wanted)
        self._encode_id = sample_id_encoder(wanted) if attr.sample_id_all else None

    def sample(self, cpu: Cpu, period: int, addr: int = 0, raw: bytes = b"", fill: Fill | None = None) -> bytes:
        """PERF_RECORD_SAMPLE of the present state of `cpu`, with PERF_SAMPLE_ADDR and _RAW, and with what `fill` knows
        better, which sets the same fields of each sample of an event."""
        sample = self._sample
        sample.period = period
        sample.addr = addr
        sample.raw = raw
        for prepare in self._prepares:
            prepare(sample, cpu)
        if fill is not None:
            fill(sample)
        for prepare in self._place_prepares:
            prepare(sample, cpu)
        return self._encode(sample)

    def samples(
        self, cpu: Cpu, period: int, parts: Iterable[Part], fill: Callable[[Part, Sample], None]
    ) -> list[bytes]:
        """As `sample` of each of `parts`, which `fill` puts into it: all of one moment."""
        sample, encode = self._sample, self._encode
        sample.period, sample.addr, sample.raw = period, 0, b""
        for prepare in self._prepares:
            prepare(sample, cpu)
        encoded = []
        for part in parts:
            fill(part, sample)
            for prepare in self._place_prepares:
                prepare(sample, cpu)
            encoded.append(encode(sample))
        return encoded

    def record(self, record: Record, misc: int = 0, cpu: Cpu | None = None) -> bytes:
        """`record` with the event's sample_id, if it has one."""
        if self._encode_id is None:
            return record.encode(misc)
        sample = self._sample
        cpu = cpu or self._kernel.cpus[0]
        for prepare in self._id_prepares:
            prepare(sample, cpu)
        return record.encode(misc, self._encode_id(sample))

    def lost_record(self, lost: int) -> bytes:
        return self.record(Lost(self._event.id, lost))

    def lost_samples_record(self, lost: int, cpu: Cpu) -> bytes:
        """PERF_RECORD_LOST_SAMPLES: periods that ended without a sample, as a PMU tells that drops some."""
        return self.record(LostSamples(lost), cpu=cpu)

    def throttle_record(self, throttled: bool) -> bytes:
        event = self._event
        kind = Throttle if throttled else Unthrottle
        return self.record(kind(event.now_ns(), event.primary_id, event.id))

    def read_record(self, pid: int, tid: int, values: bytes) -> bytes:
        return self.record(Read(pid, tid, values))
