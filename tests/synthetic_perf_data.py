"""A Recording made by hand: records through perfcore.abi, a file through PerfDataWriter. No machine runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import Misc, SampleType
from perfcore.abi.read_format import ReadValues
from perfcore.abi.records import Comm, Exit, Fork, Mmap2, Record
from perfcore.abi.sample import BranchEntry, Sample, sample_encoder, sample_id_encoder
from perfcore.perfdata.features import CpuCount, EventDescription, Features
from perfcore.perfdata.writer import PerfDataWriter

PERF_CONTEXT_USER = (1 << 64) - 512
SAMPLE_TYPE = SampleType.IDENTIFIER | SampleType.IP | SampleType.TID | SampleType.TIME | SampleType.PERIOD
PID = 1000
START_NS = 100_000_000_000


def event(
    name: str = "instructions:u", number: int = 1, sample_type: int = SAMPLE_TYPE, **attr: Any
) -> EventDescription:
    """A hardware event; its one id is 10 * `number`."""
    attr = {"type": 0, "size": 128, "config": 1, "sample_period": 1000, "read_format": 4} | attr
    flags = {"exclude_kernel": 1, "exclude_hv": 1, "exclude_guest": 1, "mmap": 1, "mmap2": 1, "comm": 1, "comm_exec": 1}
    flags |= {"task": 1, "sample_id_all": 1, "disabled": 1, "enable_on_exec": 1}
    return EventDescription(PerfEventAttr(sample_type=sample_type, **flags, **attr), (10 * number,), name)


def features(architecture: str = "x86_64") -> Features:
    return Features(
        hostname="perfemu",
        os_release="6.1.0",
        version="6.1",
        architecture=architecture,
        cpus=CpuCount(1, 1),
        cpu_description="ideal",
        total_memory_kb=4 << 20,
        command_line=("perfemu", "record", "./prog"),
    )


@dataclass
class Recording:
    """Records in the order in which they are added; each call advances time by 1000 ns."""

    events: Sequence[EventDescription]
    records: list[bytes] = field(default_factory=list)
    time_ns: int = START_NS

    def add(self, record: Record, misc: int = 0, number: int = 0) -> None:
        """A record of event `number`, with its sample_id."""
        described = self.events[number]
        identifier = described.ids[0]
        stamp = Sample(pid=PID, tid=PID, time=self._now(), id=identifier, stream_id=identifier, identifier=identifier)
        self.records.append(record.encode(misc, sample_id_encoder(described.attr.sample_type)(stamp)))

    def start(self, path: str | Path, size: int, comm: str = "prog", address: int = 0x400000, pgoff: int = 0) -> None:
        """The process executes and maps the file's code."""
        self.add(Comm(PID, PID, comm), Misc.COMM_EXEC)
        self.map(path, size, address, pgoff)

    def map(self, path: str | Path, size: int, address: int, pgoff: int = 0, pid: int = PID) -> None:
        self.add(Mmap2(pid, pid, address, size, pgoff, 0, 0, 0, 0, 5, 2, str(path)), Misc.USER)

    def fork(self, child: int) -> None:
        self.add(Fork(child, PID, child, PID, self.time_ns))

    def exit(self) -> None:
        self.add(Exit(PID, PID, PID, PID, self.time_ns))

    def sample(
        self,
        ip: int,
        callers: Sequence[int] = (),
        period: int = 1000,
        number: int = 0,
        pid: int = PID,
        tid: int = 0,
        read: Sequence[ReadValues] = (),
        cpu: int = 0,
        branches: Sequence[BranchEntry] = (),
    ) -> None:
        """A sample at `ip`, called from `callers` (return addresses, innermost first)."""
        described = self.events[number]
        identifier = described.ids[0]
        sample = Sample(
            ip=ip,
            pid=pid,
            tid=tid or pid,
            time=self._now(),
            period=period,
            cpu=cpu,
            branches=list(branches),
            id=identifier,
            identifier=identifier,
            read=list(read),
            callchain=[PERF_CONTEXT_USER, ip, *callers],
        )
        self.records.append(sample_encoder(described.attr)(sample))

    def write(self, path: str | Path, architecture: str = "x86_64", pipe: bool = False) -> Path:
        with open(path, "wb") as file, PerfDataWriter(file, self.events, features(architecture), pipe=pipe) as writer:
            for record in self.records:
                writer.write(record)
        return Path(path)

    def _now(self) -> int:
        self.time_ns += 1000
        return self.time_ns
