"""attributing: what record --exact does: how often each instruction made each event, as samples of such periods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import Misc
from perfcore.abi.sample_arrays import empty_samples, sample_dtype
from perfcore.events.attribution import Attributed, Attribution
from perfcore.events.event import PerfEvent
from perfemu.errors import UsageError
from perfemu.events.spec import EventSpec
from perfemu.session import Session

MOST_RECORD_BYTES = 1 << 16  # written at once: much less than a ring buffer has


class ExactSamples:
    """Makes samples of what is attributed, and keeps their sums."""

    def __init__(self, specs: Sequence[EventSpec], attrs: Sequence[PerfEventAttr], opened: Sequence[list[PerfEvent]]):
        """`opened`: the events of each CPU, in the order of `specs` and `attrs`. UsageError: which cannot be so."""
        for spec, attr in zip(specs, attrs, strict=True):
            if sample_dtype(attr) is None:
                raise UsageError(f"record --exact: {spec.name}: counts have no callchains, registers or group readings")
        self.sums = [0] * len(specs)
        self._attrs = attrs
        self._opened = opened
        self._by_cpu = {events[0].cpu: events for events in opened if events}

    def attribution(self, session: Session, inherit: bool) -> Attribution:
        """The attribution of these events, from now on."""
        columns = [session.user_probes(event) for event in self._opened[0]]  # 0: of no instruction
        task = None if inherit else session.program_task
        return Attribution(
            session.machine.kernel, columns, self._write, cpus=self._by_cpu, task=task, within=session.within
        )

    def _write(self, what: Attributed) -> None:
        values = {
            "pid": what.task.pid,
            "tid": what.task.tid,
            "time": what.time_ns,
            "cpu": what.cpu.number,
        }
        for number, (attr, event) in enumerate(zip(self._attrs, self._by_cpu[what.cpu.number], strict=True)):
            present = what.counts[:, number] != 0
            periods = what.counts[present, number]
            self.sums[number] += int(periods.sum())
            samples = empty_samples(attr, len(periods), Misc.USER | Misc.EXACT_IP)
            own = {
                "identifier": event.primary_id,
                "id": event.primary_id,
                "stream_id": event.id,
                "ip": what.addresses[present],
                "period": periods,
            }
            for name, value in (values | own).items():
                if name in (samples.dtype.names or ()):
                    samples[name] = value
            most = MOST_RECORD_BYTES // samples.dtype.itemsize
            for first in range(0, len(samples), most):
                event.write_record(samples[first : first + most].tobytes())

    def unattributed(self) -> list[int]:
        """Of each event, how many were of no instruction. After `Attribution.finish`."""
        totals = [sum(event.read_values().value for event in row) for row in zip(*self._opened, strict=True)]
        return [int(np.int64(total - attributed)) for total, attributed in zip(totals, self.sums, strict=True)]
