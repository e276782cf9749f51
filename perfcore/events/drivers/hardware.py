"""HardwareDriver: what the drivers of CPU PMUs have in common. As drivers/perf/arm_pmu.c and arch/x86/events/core.c.

A counter counts up from minus the period that is left, so that it overflows when the period is over; periods longer
than a counter can take are counted in parts. A driver numbers counters its own way; `index` is always that number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from emulator.cpu import Cpu, Level
from emulator.linux.errors import EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.structures import TICK_NS
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, SampleType
from perfcore.events.drivers.branch_stacks import BranchStacks
from perfcore.events.drivers.counter_assignment import GroupTooLarge
from perfcore.events.drivers.counter_registers import CounterRegisters
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.generic_codes import generic_code
from perfcore.events.drivers.late_interrupts import PRECISE, LateInterrupts, Overflow
from perfcore.events.drivers.saved_counters import SavedCounters, count_until
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.events.output import Fill
from perfcore.events.pmu_driver import AuxUnit, Saved
from perfcore.events.programs import ProgramArray
from pmu.device import Pmu


class HardwareDriver(CounterRegisters):
    """A driver for one kind of CPU PMU, on all CPUs that have it. Verbs as PmuDriver has them."""

    is_software = False
    counts_tasks = True
    aux: AuxUnit[PerfEvent] | None = None
    writes_aux = False
    is_hardware = True
    branches: BranchStacks | None = None  # of cores that record branches
    is_called_by_no_nmi = False
    has_format_files = True  # whether sysfs says how a config is composed

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu], type: int) -> None:
        """`pmus[n]` is the PMU of `cpus[n]`; all of one model. The driver takes their interrupts."""
        self.model = pmus[0].model
        self.name = self.model.sysfs_name
        self.type = type
        self.mux_interval_ns = TICK_NS  # PERF_CPU_HRTIMER: a tick
        self.user_events: set[PerfEvent] = set()  # that user space may read by itself
        self._cpus = {cpu.number: CpuCounters(cpu, pmu) for cpu, pmu in zip(cpus, pmus, strict=True)}
        self._fixed: dict[int, list[tuple[int, bool]]] = {}  # by code: index, and whether others count it, too
        for number, fixed in enumerate(self.model.fixed_counters):
            self._fixed.setdefault(fixed.config, []).append((self.fixed_index(number), fixed.programmable))
        self._late: dict[int, LateInterrupts] = {}  # by CPU, where interrupts take their time
        if self.model.interrupt_cycles:
            for counters in self._cpus.values():
                report = partial(self._report_late, counters)
                late = LateInterrupts(counters.cpu, self.model.interrupt_cycles, report)
                self._late[counters.cpu.number] = late
        for counters in self._cpus.values():
            counters.read_status = self.status_reader(counters)
            self.reset(counters.pmu)
            counters.cpu.connect_interrupt(counters.pmu, self.interrupt_handler(counters))

    def cpu_numbers(self) -> list[int]:
        return list(self._cpus)

    def events_on(self, cpu: int) -> Mapping[int, PerfEvent]:
        """Those that are on that CPU's PMU now, by counter."""
        return self._cpus[cpu].events

    def sysfs_attributes(self) -> dict[str, str]:
        """Files of the device in sysfs besides type, format and events: name -> text."""
        return {}

    # opening

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type not in (PerfType.HARDWARE, PerfType.HW_CACHE, PerfType.RAW, self.type):
            raise LinuxError(ENOENT, f"{self.name}: attr.type {attr.type} is not its own")
        if attr.sample_type & SampleType.BRANCH_STACK and self.branches is None:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: this core has no branch records")
        code = self._code(attr)
        self._refuse_unknown(event, code)
        hw = event.hw
        hw.config = self.configuration(event, code)
        hw.code = self.selected_code(hw.config)
        hw.counter_mask = (1 << self.width_bits(event)) - 1
        hw.longest_period = self.longest_period(event)
        if self.branches is not None and attr.sample_type & SampleType.BRANCH_STACK:
            hw.branches = self.branches.configured(event)
        if not event.is_sampling:
            hw.sample_period = hw.last_period = hw.period_left = hw.longest_period
        if not event.is_leader and not self.group_fits(event):
            raise GroupTooLarge(EINVAL, f"{self.name}: the group needs more counters than there are")

    def _code(self, attr: PerfEventAttr) -> int:
        """The code that the PMU selects by."""
        generic = attr.type in (PerfType.HARDWARE, PerfType.HW_CACHE)
        code = generic_code(self.model, self.name, attr) if generic else self.raw_code(attr.config)
        return code | self.further_code(attr)

    def further_code(self, attr: PerfEventAttr) -> int:
        """What else of the attr selects."""
        return 0

    def user_probes(self, event: PerfEvent) -> int:
        """The probes that `event` counts in user mode, as a counter is connected to them; 0: none."""
        attr = event.attr
        counted = self.model.counted_by(self._code(attr)) if event.counts_at(Level.USER) else None
        return 0 if counted is None else counted.probe_mask

    def _refuse_unknown(self, event: PerfEvent, code: int) -> None:
        """Where Linux would count what the hardware has, and we should count 0 because nothing here knows better.

        Codes that are in no list count 0 on hardware, too.
        """
        name = self.model.cannot_know(code)
        if name is not None:
            raise LinuxError(ENOENT, f"{self.name}: this core cannot know {name}")
        if self._levels(event) == {Level.KERNEL} and not self._known_in_kernel(code):
            counted = self.model.counted_by(code)
            named = f"config {event.attr.config:#x}" if counted is None else counted.name
            raise LinuxError(EOPNOTSUPP, f"{self.name}: nobody here knows {named} of the kernel alone")

    def _known_in_kernel(self, code: int) -> bool:
        counted = self.model.counted_by(code)
        return counted is not None and self.model.known_in_kernel(counted)

    def _levels(self, event: PerfEvent) -> set[Level]:
        return set() if event.attr.exclude_host else set(filter(event.counts_at, Level))

    def selected_levels(self, event: PerfEvent, code: int) -> set[Level]:
        """At which the PMU is to count for `event`; not in the kernel what nobody knows there."""
        levels = self._levels(event)
        return levels if self._known_in_kernel(code) else levels - {Level.KERNEL}

    # counters

    def group_members(self, event: PerfEvent) -> Iterator[PerfEvent]:
        """Who of the group must fit together with `event`: siblings that are off need not (collect_events of x86)."""
        leader = event.group_leader
        yield leader
        yield from (sibling for sibling in leader.siblings.needing_counters if sibling.state > EventState.OFF)
        yield event

    def group_fits(self, event: PerfEvent) -> bool:
        """Whether the group and `event` fit on an empty PMU."""
        pmu = next(iter(self._cpus.values())).pmu
        used: set[int] = set()
        for member in self.group_members(event):
            if member.driver is self:
                index = self.free_index(pmu, used, member)
                if index is None:
                    return False
                used.add(index)
        return True

    def selected_code(self, config: int) -> int:
        """The part of a configuration that fixed counters are chosen by."""
        return config

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        """A counter for `event`: the fixed one for what it counts, else the lowest event counter that is free."""
        for index, programmable in self._fixed.get(event.hw.code, ()):
            if index not in used:
                return index
            if not programmable:
                return None
        for index in range(pmu.counters):
            if index not in used:
                return index
        return None

    def place(self, counters: CpuCounters, event: PerfEvent) -> int | None:
        """The counter that `event` is to have; where others can make room for it, they have done so."""
        hw = event.hw
        if hw.index_among != counters.taken:  # else the answer is that of the last time
            hw.index_among = counters.taken
            hw.index_then = self.free_index(counters.pmu, counters.events, event)
        return hw.index_then

    def pmu_disable(self, cpu: Cpu) -> None:
        """Until `pmu_enable` only events' counts and periods change hands: registers that control several counters
        are written once then, for all of them."""
        self._cpus[cpu.number].stands = True

    def pmu_enable(self, cpu: Cpu) -> None:
        counters = self._cpus[cpu.number]
        stopping, starting = counters.go_on()
        if stopping:
            self.disable_counters(counters, stopping)
        if starting:
            self.enable_counters(counters, starting)

    def move(self, counters: CpuCounters, event: PerfEvent, index: int) -> None:
        """To a counter that is free, as x86_pmu_enable does."""
        hw = event.hw
        runs = not hw.stopped
        self.stop(event)
        counters.leave(hw.idx)
        counters.take(event, index, self.counter_access)
        if event in self.user_events:
            hw.user_index = self.user_index(event)
        if runs:
            self.start(event)

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        counters = self._cpus[cpu.number]
        index = self.place(counters, event)
        if index is None or not (event.hw.branches is None or event.hw.branches.add(cpu)):
            return False
        counters.take(event, index, self.counter_access)
        self.start(event, reload=True)
        if self.user_events:
            self.show(counters, event)
        return True

    def show(self, counters: CpuCounters, event: PerfEvent) -> None:
        if event in self.user_events:
            event.hw.user_index = self.user_index(event)

    def del_(self, event: PerfEvent) -> None:
        assert event.on_cpu is not None, f"{event} is not on a CPU"
        hw = event.hw
        self.stop(event)
        self._cpus[event.on_cpu.number].leave(hw.idx)
        if hw.branches is not None:
            hw.branches.remove(event.on_cpu)
        hw.idx = -1
        hw.user_index = 0

    def save(
        self, cpu: Cpu, events: Callable[[], Sequence[PerfEvent] | None], last: Saved | None
    ) -> SavedCounters | None:
        counters = self._cpus[cpu.number]
        assert counters.stands, "counters are saved while they stand"
        records = self.branches is not None and self.branches.in_use(cpu)  # ... the task's own branches
        if self._late and self._late[cpu.number]:
            return None
        if records or self.user_events or counters.read_status() & self.all_counters:
            return None
        if isinstance(last, SavedCounters) and last.changes == counters.changes:
            saved = last
        else:
            found = events()
            if not found or any(event.hw.stopped or event.rate.wants_tick for event in found):
                return None
            registers = [self.whole_register(event.hw.idx) for event in found]
            saved = SavedCounters.of(found, cpu, counters.pmu, registers)
        counters.save(saved)
        return saved

    def restore(self, cpu: Cpu, saved: Saved) -> bool:
        assert isinstance(saved, SavedCounters), f"{saved} comes from elsewhere"
        counters = self._cpus[cpu.number]
        assert counters.stands, "counters are restored while they stand"
        if saved.cpu is not cpu or counters.taken != saved.others or self.user_events:
            return False
        counters.restore(saved)
        return True

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        """The period is programmed anew in any case: what the counter held may be gone."""
        assert event.on_cpu is not None, f"{event} is not on a CPU"
        self.set_period(event)
        hw = event.hw
        hw.stopped = False
        counters = self._cpus[event.on_cpu.number]
        counters.changes += 1
        if counters.stands:
            counters.starting[hw.idx] = event
        else:
            self.enable_counters(counters, {hw.idx: event})

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        hw = event.hw
        if hw.stopped:
            return
        assert event.on_cpu is not None, f"{event} is not on a CPU"
        if self._late:
            self._late[event.on_cpu.number].come_to_end(event)
        counters = self._cpus[event.on_cpu.number]
        counters.changes += 1
        if not counters.stands:
            self.disable_counters(counters, {hw.idx: event})
        elif counters.starting.pop(hw.idx, None) is None:
            counters.stopping[hw.idx] = event
        self.read(event)
        hw.stopped = True

    def read(self, event: PerfEvent) -> None:
        """armpmu_event_update, x86_perf_event_update."""
        hw = event.hw
        if not hw.stopped:
            count_until(event, hw.read_counter())

    def set_period(self, event: PerfEvent) -> bool:
        """Program the counter for what is left of the period, or for the next. True: a period is over.

        armpmu_event_set_period, x86_perf_event_set_period; but where several are over at once, those begin the next
        one late, while here periods end at the multiples of `sample_period`, and `hw.missed` is how many more did.
        """
        hw = event.hw
        left = hw.period_left
        period = hw.sample_period
        over = left <= 0
        if over:
            hw.missed, beyond = divmod(-left, period)
            left = hw.period_left = period - beyond
            hw.last_period = period
        if left > hw.early:
            left -= hw.early
        if left > hw.longest_period:
            left = hw.longest_period
        hw.prev_count = first = hw.counter_mask + 1 - left
        hw.write_counter(first)
        if event.user_page is not None:
            event.update_page()
        return over

    def overflowed(self, event: PerfEvent, counters: CpuCounters, addr: int = 0, fill: Fill | None = None) -> None:
        """The event's counter has wrapped: count, program the next period, report (see `PerfEvent.overflow`)."""
        hw = event.hw
        if not hw.stopped:
            count_until(event, hw.read_counter())
        ended = hw.last_period
        if not self.set_period(event) or not event.is_sampling:
            return
        if self._late and event.attr.precise_ip < PRECISE and fill is None:
            self._late[counters.cpu.number].add(event, ended, hw.missed)
        else:
            self._report(counters, event, ended, hw.missed, addr, fill)

    def _report_late(self, counters: CpuCounters, overflow: Overflow) -> None:
        self._report(counters, overflow.event, overflow.period, overflow.missed)
        if not counters.stands and counters.pending:
            counters.run_pending()

    def _report(
        self,
        counters: CpuCounters,
        event: PerfEvent,
        ended: int,
        missed: int,
        addr: int = 0,
        fill: Fill | None = None,
    ) -> None:
        """The interrupt of an overflow is taken. `missed`: what this does may begin another period."""
        stops = event.overflow(counters.cpu, ended, addr=addr, fill=fill)
        if missed and not event.attr.freq:  # a frequency's periods are only guesses, the first of them at 1
            event.write_record(event.output.lost_samples_record(missed, counters.cpu))
        if stops:
            self.stop(event, update=False)
            if event.pending_disable:
                counters.pending.append(event)

    def handle_overflows(self, counters: CpuCounters, status: int) -> None:
        """`status`: a bit for each counter that has wrapped. What is pending is done when no counter is looked at."""
        while status:
            others = status & status - 1
            event = counters.events.get((status ^ others).bit_length() - 1)
            status = others
            if event is not None:
                self.overflowed(event, counters)
        if counters.pending:
            counters.run_pending()

    def set_filter(self, event: PerfEvent, text: str) -> None:
        raise LinuxError(EINVAL, f"{self.name}: its events have no filters")

    def programs(self, event: PerfEvent) -> ProgramArray | None:
        return None

    # reading by user space

    def event_mapped(self, event: PerfEvent) -> None:
        self.user_events.add(event)
        self.update_user_access()
        if event.hw.idx >= 0:
            event.hw.user_index = self.user_index(event)
        if event.user_page is not None:
            event.user_page.set_counter_access(self.width_bits(event))

    def event_unmapped(self, event: PerfEvent) -> None:
        self.user_events.discard(event)
        self.update_user_access()
        event.hw.user_index = 0

    @abstractmethod
    def update_user_access(self) -> None:
        """The set of events that user space may read has changed."""

    @abstractmethod
    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """A task with these mapped events runs on `cpu`, or no longer."""
