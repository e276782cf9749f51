"""The driver of tracepoint events: what the kernel does, as it is told. As perf_tracepoint in core.c.

Nobody listens to what happens often while nobody counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

from emulator.cpu import Cpu
from emulator.linux.errors import EEXIST, EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.bpf import ProgType
from perfcore.abi.constants import PerfType, SampleType
from perfcore.abi.kernel_tracepoints import CPU_FREQUENCY, SYS_ENTER, SYS_EXIT
from perfcore.abi.syscall_tracepoints import tracepoints_by_id
from perfcore.abi.tracepoints import FIRST_SYSCALL_ID, TracepointEvent, Value
from perfcore.events.drivers.hrtimer_sources import hrtimer_sources
from perfcore.events.drivers.software import count_occurrence, start_software_period
from perfcore.events.drivers.tracepoint_sources import (
    IDLE,
    SOURCES,
    Source,
    source_of_probe,
    source_of_syscall,
)
from perfcore.events.drivers.without_counters import CountedAsTold
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from perfcore.events.late_probes import DefinedEvent, LateProbes
from perfcore.events.permission import check_tracepoint
from perfcore.events.probes.kernel_functions import KernelFunctions
from perfcore.events.programs import ProgramArray
from perfcore.events.tracepoint_filter import Filter, parse_filter


class TracepointDriver(CountedAsTold):
    """PERF_TYPE_TRACEPOINT. Make it before the subsystem: a task's end is an occurrence of its own."""

    name = "tracepoint"
    type = int(PerfType.TRACEPOINT)

    def __init__(self, kernel: Linux, probes: LateProbes | None = None) -> None:
        """`probes`: events that are defined while the machine runs."""
        self.probes = probes
        self._kernel = kernel
        self._isa = kernel.architecture.isa
        self._active: dict[int, list[PerfEvent]] = {}  # by config
        self._tracepoints = kernel.tracepoints
        functions = KernelFunctions(self._isa)
        self._sources = SOURCES | hrtimer_sources(lambda name: functions.addresses[name])
        self._listeners: dict[int, Callable[..., None]] = {}
        self._heard: set[int] = set()  # of what happens often
        self._programs: dict[int, ProgramArray] = {}
        self._filters: WeakKeyDictionary[PerfEvent, Filter] = WeakKeyDictionary()
        for number, source in SOURCES.items():
            if not source.often:
                source.tracepoint(kernel.tracepoints).subscribe(self._listener(number))

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        probe = None if self.probes is None else self.probes.find(attr.config)
        if attr.type != PerfType.TRACEPOINT:
            raise LinuxError(ENOENT, f"type {attr.type} is no tracepoint's")
        if attr.config == CPU_FREQUENCY.id and self._kernel.clock.frequencies_hz is not None:
            raise LinuxError(EOPNOTSUPP, f"{CPU_FREQUENCY.full_name} is not told of what --dvfs changes")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, "tracepoints have no branch records")
        if probe is None and attr.config not in tracepoints_by_id(self._isa):
            raise LinuxError(EINVAL, f"config {attr.config} is no tracepoint")
        if event.parent is None:
            anybodys = probe is None and (attr.config >= FIRST_SYSCALL_ID or attr.config in (SYS_ENTER.id, SYS_EXIT.id))
            check_tracepoint(attr, event.owner, event.of_task, anybodys, event.settings)
        if probe is not None:
            self._open_probe(probe, event)

    def _open_probe(self, probe: DefinedEvent, event: PerfEvent) -> None:
        probe.open(event)
        event.when_destroyed.append(partial(self._close_probe, probe))

    def _close_probe(self, probe: DefinedEvent, event: PerfEvent) -> None:
        probe.close(event)
        if not probe.is_busy:  # its id may be another's later
            number = probe.described.id
            for kept in (self._sources, self._listeners, self._active, self._programs):
                kept.pop(number, None)
            self._heard.discard(number)

    def _described(self, number: int) -> TracepointEvent:
        probe = None if self.probes is None else self.probes.find(number)
        return tracepoints_by_id(self._isa)[number] if probe is None else probe.described

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        start_software_period(event)
        number = event.attr.config
        self._active.setdefault(number, []).append(event)
        self._hear(number)
        return True

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        number = event.attr.config
        self._active[number].remove(event)
        self._hear(number)

    def _hear(self, number: int) -> None:
        """What happens often is heard while somebody counts it, or a program is run."""
        listener = self._listener(number)
        if not self._sources[number].often:
            return
        wanted = bool(self._active.get(number) or self._programs.get(number))
        tracepoint = self._sources[number].tracepoint(self._tracepoints)
        if wanted and number not in self._heard:
            self._heard.add(number)
            tracepoint.subscribe(listener)
        elif not wanted and number in self._heard:
            self._heard.remove(number)
            tracepoint.unsubscribe(listener)

    def _listener(self, number: int) -> Callable[..., None]:
        listener = self._listeners.get(number)
        if listener is None:
            source = self._sources.get(number) or self._sources.setdefault(number, self._found_source(number))
            listener = self._listeners[number] = self._make_listener(number, source)
        return listener

    def _found_source(self, number: int) -> Source:
        probe = None if self.probes is None else self.probes.find(number)
        return source_of_syscall(number) if probe is None else source_of_probe(probe)

    def _make_listener(self, number: int, source: Source) -> Callable[..., None]:
        recursion = self._tracepoints.recursion

        def listen(*told: object) -> None:
            events, programs = self._active.get(number), self._programs.get(number)
            cpu = source.which_cpu(self._kernel, *told) if events or programs else None
            if cpu is None:
                return
            if programs and source.is_probe:  # before perf_trace_buf_alloc(), which takes the recursion context
                if not self._programs_want(programs, number, source, cpu, told):
                    return
                programs = None
            context = recursion.get(cpu)
            if context is None:
                return
            try:
                tell(cpu, events or [], programs, told)
            finally:
                recursion.put(context)

        def tell(cpu: Cpu, events: list[PerfEvent], programs: ProgramArray | None, told: tuple[Any, ...]) -> None:
            occurrence = None
            if programs and not self._programs_want(programs, number, source, cpu, told):
                return
            if not events or not source.fits(*told):
                return
            for event in tuple(events):
                excluded = source.in_kernel and event.attr.exclude_kernel
                if event.on_cpu is not cpu or excluded or event.hw.stopped:
                    continue
                wanted = self._filters.get(event.parent or event) if self._filters else None
                raw = b""
                if wanted is not None or event.attr.sample_type & SampleType.RAW:
                    occurrence = occurrence or self._occurrence(number, cpu, source.told(*told))
                    if wanted is not None and not wanted(occurrence.filtered):
                        continue
                    raw = occurrence.raw if event.attr.sample_type & SampleType.RAW else b""
                count_occurrence(event, cpu, raw=raw)

        return listen

    def _occurrence(self, number: int, cpu: Cpu, told: tuple[Value, ...]) -> _Occurrence:
        described = self._described(number)
        return _Occurrence(described, cpu, self._kernel.current(cpu), told[: len(described.fields)])

    def programs(self, event: PerfEvent) -> ProgramArray:
        number = event.attr.config
        found = self._programs.get(number)
        if found is None:
            self._listener(number)
            wanted = ProgType.KPROBE if self._sources[number].is_probe else ProgType.TRACEPOINT
            found = self._programs[number] = ProgramArray(wanted, self._described(number).size)
            found.on_change = lambda: self._hear(number)
        return found

    def _programs_want(
        self, programs: ProgramArray, number: int, source: Source, cpu: Cpu, told: tuple[Any, ...]
    ) -> bool:
        """Whatever the events are of, programs are run: perf_trace_run_bpf_submit(), __uprobe_perf_func()."""
        if source.is_probe:
            _, _, _, places, moment = told
            return programs.on_probe(cpu, places, moment.register)
        return programs.on_tracepoint(cpu, self._occurrence(number, cpu, source.told(*told)).raw)

    def set_filter(self, event: PerfEvent, text: str) -> None:
        """ftrace_profile_set_filter: once, and for those that are inherited from it, too."""
        if event in self._filters:
            raise LinuxError(EEXIST, "the event has a filter")
        self._filters[event] = parse_filter(text, self._described(event.attr.config))


class _Occurrence:
    """One whose fields somebody wants, each form of them made once."""

    def __init__(self, described: TracepointEvent, cpu: Cpu, task: Task | None, values: tuple[Value, ...]) -> None:
        self._described, self._cpu, self._values = described, cpu, values
        self._tid, self._comm = (0, IDLE[0]) if task is None else (task.tid, task.comm)

    @cached_property
    def raw(self) -> bytes:
        return self._described.pack(self._tid, self._values)

    @cached_property
    def filtered(self) -> dict[str, Value]:
        return self._described.filtered(self._tid, self._comm, self._cpu.number, self._values)
