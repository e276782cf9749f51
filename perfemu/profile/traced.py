"""Traced: samples that a unit has written into an AUX area: Arm SPE's, which are one of so many instructions each."""

from __future__ import annotations

from collections.abc import Iterator

from perfcore.abi.constants import Misc
from perfcore.abi.sample import Sample
from perfcore.perfdata.arm_spe import spe_samples
from perfcore.perfdata.auxtrace import AuxTraceType
from perfcore.perfdata.errors import PerfDataError
from perfcore.perfdata.reader import PerfDataFile
from perfemu.profile.tasks import Tasks


class Traced:
    """Of a file: in the order of their times, which are those of its records, to be asked for in turn with these.

    Without times they come behind all records.
    """

    def __init__(self, file: PerfDataFile) -> None:
        """Raises PerfDataError."""
        traces = [] if file.is_pipe else file.auxtraces(AuxTraceType.ARM_SPE)
        try:
            samples = [sample for trace in traces for sample in spe_samples(trace)]
        except ValueError as problem:
            raise PerfDataError(f"{file.name}: a trace of Arm SPE: {problem}") from None
        self._samples = sorted(samples, key=lambda sample: sample.time)
        self._next = 0
        self._period = file.events[0].attr.sample_period if self._samples else 0

    def __bool__(self) -> bool:
        return self._next < len(self._samples)

    def until(self, time: int | None, tasks: Tasks) -> Iterator[tuple[int, Sample]]:
        """Those that come before `time`, all that are left if it is None, with the number of their event."""
        while self._next < len(self._samples):
            found = self._samples[self._next]
            if time is not None and (found.time >= time or not found.time):
                return
            self._next += 1
            pid = tasks.process_of(found.context)
            yield (
                0,
                Sample(
                    misc=Misc.KERNEL if found.level else Misc.USER,
                    ip=found.pc,
                    pid=pid,
                    tid=found.context,
                    time=found.time,
                    cpu=-1,
                    period=self._period,
                ),
            )
