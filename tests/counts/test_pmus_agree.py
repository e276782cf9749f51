"""PMUs of all architectures on one run: they count equally where their events mean the same, and their samples, at
exact periods, lie on the same instructions.

Each has registers, a device and a driver of its own, and of these nothing else is shared: so each is a witness of the
others. All of them are attached to the same CPUs; an AArch64 core has an Intel's PMU here as well as its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import perfemu
from emulator.core_file.probes import fires, kernel_takes_time
from guests import Guest, guest
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, RecordType, SampleType
from perfcore.abi.records import LostSamples, decode_record
from perfcore.abi.sample import HEADER, decode_sample
from perfcore.events.event import PerfEvent
from perfcore.events.ring_buffer import RingBuffer
from perfcore.events.settings import Settings
from perfcore.events.subsystem import PerfEvents
from perfemu.pmu_kinds import PMU_KINDS
from perfemu.session import Session
from pmu.generic_events import HardwareId
from pmu.model import PmuModel, model

ARM_VERSIONS = ("pmuv3p1", "pmuv3p5", "pmuv3p9")
PMUS = (*ARM_VERSIONS, "skylake", "redwood_cove", "zen4", "zen5", "loongarch")
PROGRAMS = ("branch_patterns", "sort", "interpreter", "memory_access", "string_instructions")
RUNS = [
    (program, isa, core)
    for isa, cores in (("aarch64", ("ideal", "neoverse-n1", "cortex-a55")), ("x86_64", ("ideal", "zen5", "skylake")))
    for program in PROGRAMS
    for core in cores
    if (program, isa) != ("string_instructions", "aarch64")
]
COUNTED = (  # that mean the same with all of them
    HardwareId.CPU_CYCLES,
    HardwareId.INSTRUCTIONS,
    HardwareId.BRANCH_INSTRUCTIONS,
    HardwareId.BRANCH_MISSES,
)
PERIODS = {"string_instructions": 7, "branch_patterns": 101, "sort": 997}
BUFFER_PAGES = 1024  # room for all samples of a run

SessionOf = Callable[[Guest, str], Session]


class Witness:
    """One PMU on the CPUs of a session, with a perf_event subsystem of its own."""

    def __init__(self, session: Session, name: str) -> None:
        machine, tables = session.machine, session.core.fired_by
        found = model(name).limited_to(partial(fires, tables), kernel_takes_time=kernel_takes_time(tables))
        self.model: PmuModel = found.without_limits()
        attached = PMU_KINDS[found.driver].attach(machine.cpus, self.model, found.counters, machine.clock)
        self._events = PerfEvents(machine.kernel, [attached.driver], Settings.measuring())
        self._task = session.program_task

    def open(self, generic: HardwareId, *, kernel: bool = False, **more: int) -> PerfEvent | None:
        """In user mode, or in the kernel."""
        levels = {"exclude_user": int(kernel), "exclude_kernel": int(not kernel), "exclude_hv": 1}
        attr = PerfEventAttr(type=PerfType.HARDWARE, config=generic, **levels, **more)
        if self.model.generic_event(generic) is None:
            return None
        return self._events.open(attr, self._task)


@pytest.fixture
def session_of(tmp_path: Path) -> Iterator[SessionOf]:
    with (tmp_path / "out").open("wb") as output:
        yield lambda program, core: Session(perfemu.Guest([program.path], core=core, stdout=output.fileno()))


@pytest.mark.parametrize(("program", "isa", "core"), RUNS)
def test_all_pmus_count_one_run_equally(session_of: SessionOf, program: str, isa: str, core: str) -> None:
    found = guest(program, isa)
    session = session_of(found, core)
    witnesses = {name: Witness(session, name) for name in PMUS}
    opened = {name: {generic: witness.open(generic) for generic in COUNTED} for name, witness in witnesses.items()}
    session.run()
    counts = {
        name: {generic: event.count() for generic, event in events.items() if event is not None}
        for name, events in opened.items()
    }
    truth = counts["loongarch"]
    assert truth[HardwareId.INSTRUCTIONS] == found.counts["INST_RETIRED"]
    assert truth[HardwareId.BRANCH_INSTRUCTIONS] == found.counts["BR_RETIRED"]
    assert (HardwareId.BRANCH_MISSES in truth) == (core != "ideal")  # which predicts nothing
    assert counts == dict.fromkeys(PMUS, truth)


@pytest.mark.parametrize("event", ["INSTRUCTIONS", "BRANCH_INSTRUCTIONS", "CPU_CYCLES"])
@pytest.mark.parametrize(
    ("program", "isa", "core", "period"), [(*run, PERIODS[run[0]]) for run in RUNS if run[0] in PERIODS]
)
def test_all_pmus_sample_the_same_instructions(
    session_of: SessionOf, program: str, isa: str, core: str, event: str, period: int
) -> None:
    session = session_of(guest(program, isa), core)
    buffers: dict[str, tuple[PerfEvent, RingBuffer]] = {}
    for name in PMUS:
        opened = Witness(session, name).open(HardwareId[event], sample_period=period, sample_type=SampleType.IP)
        assert opened is not None
        opened.attach_buffer(buffer := RingBuffer.allocate(BUFFER_PAGES))
        buffers[name] = opened, buffer
    session.run()
    found = {name: samples(opened, buffer) for name, (opened, buffer) in buffers.items()}
    truth = found["loongarch"]
    total = buffers["loongarch"][0].count()
    assert len(truth.addresses) + truth.missed == total // period > 0
    assert found == dict.fromkeys(PMUS, truth)


@dataclass(frozen=True)
class Samples:
    addresses: list[int]
    missed: int  # periods that ended with another, at one instruction of many cycles


@pytest.mark.parametrize(("isa", "core"), [("aarch64", "neoverse-n1"), ("x86_64", "zen5")])
@pytest.mark.parametrize("sampled", [False, True])
def test_all_pmus_count_the_kernels_cycles_equally(session_of: SessionOf, isa: str, core: str, sampled: bool) -> None:
    """Filters of privilege levels, of which each has its own. A sample in the kernel has the PC behind the call."""
    session = session_of(guest("sort", isa), core)
    more = {"sample_period": 1000, "sample_type": SampleType.IP} if sampled else {}
    opened: dict[str, PerfEvent] = {}
    buffers: dict[str, RingBuffer] = {}
    for name in PMUS:
        event = Witness(session, name).open(HardwareId.CPU_CYCLES, kernel=True, **more)
        assert event is not None
        event.attach_buffer(buffer := RingBuffer.allocate(BUFFER_PAGES))
        opened[name], buffers[name] = event, buffer
    session.run()
    counts = {name: event.count() for name, event in opened.items()}
    found = {name: samples(event, buffers[name]) for name, event in opened.items()}
    truth = counts["loongarch"]
    assert 0 < truth == session.machine.cpus[0].system_cycles
    assert counts == dict.fromkeys(PMUS, truth)
    assert found == dict.fromkeys(PMUS, found["loongarch"])
    assert bool(found["loongarch"].addresses) == sampled


def samples(event: PerfEvent, buffer: RingBuffer) -> Samples:
    addresses, missed = [], 0
    data = buffer.drain()
    while data:
        kind, _, size = HEADER.unpack_from(data)
        if kind == RecordType.SAMPLE:
            addresses.append(decode_sample(event.attr, data[:size]).ip)
        else:
            record = decode_record(data[:size])
            assert isinstance(record, LostSamples)
            missed += record.lost
        data = data[size:]
    return Samples(addresses, missed)
