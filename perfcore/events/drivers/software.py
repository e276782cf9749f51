"""The driver of software events: what the kernel itself counts, heard as tracepoints. As perf_swevent in core.c."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec

from emulator.cpu import Cpu, Level
from emulator.linux.cgroup.cgroups import Cgroup
from emulator.linux.errors import ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task
from emulator.linux.tracepoint import Tracepoint
from perfcore.abi.constants import PerfType, SampleType, SoftwareId
from perfcore.events.drivers.without_counters import CountedAsTold
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux

NOTES = {  # on every event that this driver counts, and why it may stay 0
    SoftwareId.PAGE_FAULTS: "",
    SoftwareId.PAGE_FAULTS_MIN: "",
    SoftwareId.PAGE_FAULTS_MAJ: "",
    SoftwareId.CONTEXT_SWITCHES: "",
    SoftwareId.CPU_MIGRATIONS: "",
    SoftwareId.ALIGNMENT_FAULTS: "neither kernel repairs unaligned accesses of 64-bit programs",
    SoftwareId.EMULATION_FAULTS: "the kernel emulates no instruction",
    SoftwareId.DUMMY: "counts nothing by definition",
    SoftwareId.BPF_OUTPUT: "written by BPF programs of the guest",
    SoftwareId.CGROUP_SWITCHES: "",
}

_MENDED = (SoftwareId.PAGE_FAULTS_MIN, SoftwareId.PAGE_FAULTS_MAJ)

P = ParamSpec("P")


class SoftwareDriver(CountedAsTold):
    """All of PERF_TYPE_SOFTWARE but the clocks. Make it before the subsystem: a task's last switch counts for it."""

    name = "software"
    type = int(PerfType.SOFTWARE)
    is_called_by_no_nmi = True

    def __init__(self, kernel: Linux) -> None:
        self._tracepoints = kernel.tracepoints
        self._active: dict[int, dict[PerfEvent, None]] = {}  # by config
        self._heard: set[SoftwareId] = set()
        kernel.tracepoints.sched_migrate_task.subscribe(self._migrated)

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != PerfType.SOFTWARE or attr.config not in NOTES:
            raise LinuxError(ENOENT, f"type {attr.type} config {attr.config} is no counted software event")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, "software events have no branch records")

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        start_software_period(event)
        self._active.setdefault(event.attr.config, {})[event] = None
        self._listen()
        return True

    def del_(self, event: PerfEvent) -> None:
        event.hw.stopped = True
        del self._active[event.attr.config][event]
        self._listen()

    # occurrences

    def _listen(self) -> None:
        """Hear what happens often only while someone counts it."""
        self._hear(self._tracepoints.page_fault_entry, self._page_fault, (SoftwareId.PAGE_FAULTS,))
        self._hear(self._tracepoints.page_fault, self._page_came, _MENDED)
        self._hear(self._tracepoints.sched_switch, self._switched, (SoftwareId.CONTEXT_SWITCHES,))
        self._hear(self._tracepoints.sched_switch, self._cgroup_switched, (SoftwareId.CGROUP_SWITCHES,))

    def _hear(self, tracepoint: Tracepoint[P], listener: Callable[P, object], of: Sequence[SoftwareId]) -> None:
        wanted = any(self._active.get(number) for number in of)
        if wanted and of[0] not in self._heard:
            self._heard.add(of[0])
            tracepoint.subscribe(listener)
        elif not wanted and of[0] in self._heard:
            self._heard.remove(of[0])
            tracepoint.unsubscribe(listener)

    def _page_fault(self, task: Task, address: int, access: int, is_there: bool, user: bool) -> None:
        """Before anything is done about it: do_user_addr_fault(), do_page_fault()."""
        self._told(SoftwareId.PAGE_FAULTS, task.cpu, _level(user), address)

    def _page_came(self, task: Task, address: int, major: bool | None, user: bool) -> None:
        """mm_account_fault(): one that ends in a signal or EFAULT is neither minor nor major."""
        if major is not None:
            kind = SoftwareId.PAGE_FAULTS_MAJ if major else SoftwareId.PAGE_FAULTS_MIN
            self._told(kind, task.cpu, _level(user), address)

    def _switched(self, cpu: Cpu, previous: Task | None, following: Task | None, preempted: bool) -> None:
        self._occurred(SoftwareId.CONTEXT_SWITCHES, cpu, Level.KERNEL)

    def _cgroup_switched(self, cpu: Cpu, previous: Task | None, following: Task | None, preempted: bool) -> None:
        """The idle task is of the root."""
        before, behind = (_cgroup(task, other) for task, other in ((previous, following), (following, previous)))
        if before is not behind:
            self._occurred(SoftwareId.CGROUP_SWITCHES, cpu, Level.KERNEL)

    def _migrated(self, task: Task, old: Cpu, new: Cpu) -> None:
        self._occurred(SoftwareId.CPU_MIGRATIONS, new, Level.KERNEL)

    def _told(self, config: SoftwareId, cpu: Cpu, level: Level, addr: int) -> None:
        """__perf_sw_event(). What the scheduler does (perf_sw_event_sched) cannot be within another occurrence."""
        recursion = self._tracepoints.recursion
        context = recursion.get(cpu)
        if context is not None:
            try:
                self._occurred(config, cpu, level, addr)
            finally:
                recursion.put(context)

    def _occurred(self, config: SoftwareId, cpu: Cpu, level: Level, addr: int = 0) -> None:
        for event in tuple(self._active.get(config, ())):
            if event.on_cpu is cpu and event.counts_at(level) and not event.hw.stopped:
                count_occurrence(event, cpu, addr)


def _level(user: bool) -> Level:
    return Level.USER if user else Level.KERNEL


def _cgroup(task: Task | None, other: Task | None) -> Cgroup | None:
    """That of `task`, or of the idle task, beside which `other` is."""
    if task is not None:
        return task.cgroup
    return None if other is None else other.cgroup.root


def start_software_period(event: PerfEvent) -> None:
    """`event` is put on: its period goes on."""
    event.hw.stopped = False
    if event.is_sampling:
        event.hw.last_period = event.hw.sample_period
        _next_period(event)


def _next_period(event: PerfEvent) -> int:
    """How many periods are over; the next one begins. perf_swevent_set_period."""
    hw = event.hw
    period = hw.last_period
    hw.last_period = hw.sample_period
    if hw.period_left < 0:
        return 0
    over = (period + hw.period_left) // period
    hw.period_left -= over * period
    return over


def count_occurrence(event: PerfEvent, cpu: Cpu, addr: int = 0, raw: bytes = b"") -> None:
    """One more, and a sample if a period is over. perf_swevent_event.

    As in Linux, an event with a fixed period whose samples have PERF_SAMPLE_PERIOD gives one for each occurrence.
    """
    event.counted += 1
    if not event.is_sampling or not (raw or cpu.core.pc):  # the first exec: there is no instruction yet to point at
        return
    hw = event.hw
    attr = event.attr
    if not attr.freq and (attr.sample_type & SampleType.PERIOD or hw.sample_period == 1):
        hw.last_period = hw.sample_period
        _report(event, cpu, 1, 1, addr, raw)
        return
    hw.period_left += 1
    if hw.period_left >= 0:
        period = hw.last_period
        _report(event, cpu, _next_period(event), period, addr, raw)


def _report(event: PerfEvent, cpu: Cpu, overflows: int, period: int, addr: int, raw: bytes) -> None:
    """perf_swevent_overflow: the first of several is not held against the event."""
    if event.rate.throttled:
        return
    for number in range(overflows):
        if event.overflow(cpu, period, throttle=number > 0, addr=addr, raw=raw):
            break
