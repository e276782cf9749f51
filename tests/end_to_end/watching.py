"""Watching: run a program with events open or without, and note all that the guest did and saw."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace

from emulator.cpu import Level
from emulator.linux.process.task import Task
from emulator.probes import Probe
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, ReadFormat
from perfcore.events.event import PerfEvent
from perfcore.events.ring_buffer import RingBuffer
from perfemu.counters import open_counters
from perfemu.events.attributes import Sampling, record_attrs, user_mode_only
from perfemu.guest import Guest
from perfemu.recorder import open_sampling
from perfemu.session import Session

MANY = (
    "cycles,instructions,branches,ref-cycles,L1-dcache-loads,cpu-clock,task-clock,page-faults,minor-faults,"
    "major-faults,context-switches,cpu-migrations,alignment-faults,emulation-faults,dummy,bus-cycles,"
    "{instructions,branches},{cycles,instructions}"
)
PAGES = 16  # of a sampling buffer


@dataclass(frozen=True, slots=True)
class Watch:
    """A way to watch: events to count, or to sample with callchains; on so many counters."""

    name: str
    count: str = ""
    sample: str = ""
    period: int | None = None
    frequency_hz: int | None = None
    counters: int | None = None

    def open(self, session: Session) -> Callable[[], int]:
        """Open the events; the result says how many samples' bytes have come."""
        if self.count:
            opened = open_counters(session, session.parse([self.count]))
            return lambda: sum(isinstance(event, PerfEvent) and event.count() > 0 for event in opened)
        if not self.sample:
            return lambda: 0
        specs = [user_mode_only(spec) for spec in session.parse([self.sample])]
        attrs = record_attrs(specs, Sampling(self.frequency_hz, self.period, True, True))
        buffer = RingBuffer.allocate(PAGES)
        taken: list[int] = []
        buffer.on_wakeup = lambda: taken.append(len(buffer.drain()))
        for event in open_sampling(session, specs, attrs, 0):
            event.attach_buffer(buffer)
        return lambda: sum(taken) + len(buffer.drain())


NOTHING = Watch("nothing")
WATCHES = (
    Watch("20 counts", count=MANY),
    Watch("every 997", sample="instructions", period=997),
    Watch("4000 Hz", sample="cycles", frequency_hz=4000),
    Watch("software", sample="cpu-clock,task-clock,page-faults", period=1009),
    Watch("software counts", count="cpu-clock,task-clock,page-faults,context-switches,cpu-migrations"),
    Watch("two counters", count="cycles,instructions,branches,L1-dcache-loads", counters=2),
    Watch("two counters sampled", sample="cycles,instructions,branches", period=1511, counters=2),
)
MODELLED = (  # of a core with caches and predictors
    Watch("every 97", sample="instructions", period=97),
    Watch("cycles", sample="cycles", period=61),
    Watch("misses", sample="L1-dcache-load-misses,branch-misses", period=2),
)


@dataclass(slots=True)
class Observation:
    """What must be the same however the guest is watched."""

    wait_status: int
    stdout: bytes
    stderr: bytes
    calls: list[tuple[int, ...]]  # (cycle, number, arguments) at the entry, (cycle, number, result) at the exit
    totals: dict[str, int]  # in user mode
    registers: list[int]
    elapsed_ns: int
    watched: int = 0  # something of the watching itself, for a test that it took place

    def same_as(self, other: Observation) -> bool:
        return replace(self, watched=0) == replace(other, watched=0)

    def difference(self, other: Observation) -> str:
        """The first thing that is not the same, for a message."""
        for name in ("wait_status", "stdout", "stderr", "elapsed_ns", "registers"):
            mine, others = getattr(self, name), getattr(other, name)
            if mine != others:
                return f"{name}: {mine!r} and {others!r}"
        for number, (mine, others) in enumerate(zip(self.calls, other.calls, strict=False)):
            if mine != others:
                return f"call {number}: {mine} and {others}"
        if len(self.calls) != len(other.calls):
            return f"{len(self.calls)} and {len(other.calls)} calls"
        different = {
            name: (value, other.totals[name]) for name, value in self.totals.items() if value != other.totals[name]
        }
        return f"totals: {different}" if different else ""


def observe(
    argv: tuple[str, ...],
    watch: Watch = NOTHING,
    *,
    core: str = "ideal",
    cwd: str = "/",
    sysroot: str | None = None,
    stdin: bytes = b"",
    environment: tuple[tuple[str, str], ...] | None = None,
    before: Callable[[Session], None] = lambda session: None,
) -> Observation:
    """Run a program to its end. `before` is called when the machine has been built and the events are open."""
    calls: list[tuple[int, ...]] = []
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(stdin)
        source.seek(0)
        settings = Guest(
            argv, core=core, sysroot=sysroot, cwd=cwd, counters=watch.counters,
            stdin=source.fileno(), stdout=out.fileno(), stderr=err.fileno(),
        )  # fmt: skip
        if environment is not None:
            settings = replace(settings, environment=dict(environment))
        session = Session(settings)
        cpu = session.machine.cpus[0].core
        read = watch.open(session)

        def entered(task: Task, number: int, arguments: tuple[int, ...]) -> None:
            calls.append((cpu.cycles, number, *arguments))

        def left(task: Task, number: int, result: int) -> None:
            calls.append((cpu.cycles, number, result))

        session.machine.kernel.tracepoints.sys_enter.subscribe(entered)
        session.machine.kernel.tracepoints.sys_exit.subscribe(left)
        cpu.follow_branches()
        before(session)
        ending = session.run()
        return Observation(
            ending.wait_status,
            _contents(out.fileno()),
            _contents(err.fileno()),
            calls,
            {probe.name: cpu.total(probe, Level.USER) for probe in Probe},
            cpu.registers(),
            session.times.elapsed_ns,
            read(),
        )


def counts_by_task(session: Session, exit_status: int) -> dict[int, int]:
    """Run it to that end; the instructions of each task, by its own event, inherited from the first one's."""
    event = session.open(
        PerfEventAttr(
            type=PerfType.HARDWARE, config=1, inherit=1, inherit_stat=1, read_format=ReadFormat.TOTAL_TIME_RUNNING
        )
    )
    copies: dict[int, PerfEvent] = {}
    first = session.machine.kernel.lifecycle.first.tid
    session.machine.kernel.tracepoints.task_fork.subscribe(
        lambda parent, child: copies.update({child.tid: list(event.children)[-1]})  # all of them are the first event's
    )
    assert session.run().exit_status == exit_status
    assert event.count() == session.instructions()
    counts = {tid: copy.count() for tid, copy in copies.items()}
    return {first: event.count() - sum(counts.values()), **counts}


def _contents(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
