"""PerfEvent: one open event. As struct perf_event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from emulator.cpu import Cpu, Level
from emulator.linux.errors import EINVAL, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import AuxAction, ReadFormat
from perfcore.abi.read_format import ReadValues, encode_read
from perfcore.abi.sample import SampleTooLong
from perfcore.events.aux_use import AuxUse
from perfcore.events.checks import check_new_period
from perfcore.events.context_time import ContextTime
from perfcore.events.counted_cgroup import CountedCgroup
from perfcore.events.event_context import EventContext
from perfcore.events.event_state import POLL_HUP, POLL_IN, EventState
from perfcore.events.event_times import EventTimes
from perfcore.events.hardware_state import HardwareState
from perfcore.events.kernel import Linux
from perfcore.events.output import EventOutput, Fill
from perfcore.events.pmu_driver import PmuDriver
from perfcore.events.programs import Attached, drop_program
from perfcore.events.ring_buffer import RingBuffer
from perfcore.events.sample_rate import SampleRate
from perfcore.events.settings import Settings
from perfcore.events.siblings import Siblings
from perfcore.events.user_page import UserClock, UserPage


class PerfEvent:
    """One open event: counts, times, group, output."""

    def __init__(
        self,
        id: int,
        attr: PerfEventAttr,
        kernel: Linux,
        settings: Settings,
        *,
        cpu: int = -1,
        owner: Task | None = None,
        group_leader: PerfEvent | None = None,
        parent: PerfEvent | None = None,
        target: Task | None = None,
    ) -> None:
        self.id = id
        self.attr = attr
        self.kernel = kernel
        self.settings = settings
        self.cpu = cpu  # the only CPU where it counts, -1 for all
        self.target = target  # the task for which it was opened, whatever task its context counts now; None: a CPU's
        self.cgroup: CountedCgroup | None = None  # whose tasks alone count, of all that its CPU does
        self.owner = owner  # who opened it; None is the tool
        self.parent = parent  # of an inherited event: the one that was opened
        self.group_leader: PerfEvent = group_leader or self
        self.siblings: Siblings[PerfEvent] = Siblings()
        self.children: dict[PerfEvent, None] = {}  # inherited from this
        self.hw = HardwareState(1 if attr.freq and attr.sample_period else attr.sample_period)
        self.is_sampling = attr.sample_period != 0
        self.wakeup_events = 0 if attr.watermark else attr.wakeup_events  # samples; 0: bytes decide
        self.state = EventState.OFF if attr.disabled else EventState.INACTIVE
        self.on_cpu: Cpu | None = None  # while ACTIVE
        self.counted = 0  # without what the hardware holds, and without the children that are gone
        self.child_count = 0
        self.child_enabled = 0  # ns
        self.child_running = 0
        self.lost_samples = 0
        self.event_limit = 0  # overflows until it disables itself; 0: never
        self.ring_buffer: RingBuffer | None = None
        self.user_page: UserPage | None = None  # where a guest may look
        self.on_signal: Callable[[int], None] | None = None  # SIGIO with this si_code (fcntl O_ASYNC)
        self.on_sigtrap: Callable[[Cpu, int], None] | None = None  # ... SIGTRAP, with PERF_SAMPLE_ADDR; attr.sigtrap
        self.overflow_handler: Callable[[Cpu], None] | None = None  # of the kernel's own events, instead of output
        self.on_inherited: Callable[[PerfEvent, Task], None] | None = None  # hears of each copy, and whose it is
        self.attached: Attached | None = None if parent is None else parent.attached  # BPF program that is run for it
        self.when_destroyed: list[Callable[[PerfEvent], None]] = []  # what has to be done when it is gone
        self.rate = SampleRate(self)
        self.times = EventTimes()
        self.now_ns: Callable[[], int] = kernel.clock.monotonic_ns  # perf_event_clock: of its records
        self.driver: PmuDriver[PerfEvent]
        self.context: EventContext[PerfEvent]
        self.output: EventOutput
        self.aux: AuxUse[PerfEvent] = AuxUse()
        self.pending_disable = False  # to be disabled when the interrupt has been handled

    def set_fixed_period(self, period: int) -> None:
        """For a driver that turns a frequency into a period once and for all."""
        hw = self.hw
        hw.sample_period = hw.last_period = hw.period_left = period
        self.rate.fix()

    def __repr__(self) -> str:
        return f"PerfEvent(id={self.id}, {self.state.name}, {self.attr!r})"

    @property
    def of_task(self) -> bool:
        """Rather than of all that a CPU does."""
        return self.target is not None

    def counts_at(self, level: Level) -> bool:
        """Whether what happens at this privilege counts: exclude_user and exclude_kernel, for every driver."""
        return not (self.attr.exclude_kernel if level == Level.KERNEL else self.attr.exclude_user)

    # the group

    @property
    def is_leader(self) -> bool:
        return self.group_leader is self

    def group(self) -> Iterator[PerfEvent]:
        """This event, and if it leads, its siblings."""
        yield self
        yield from self.siblings

    @property
    def primary_id(self) -> int:
        """The id of the event that was opened: PERF_SAMPLE_ID."""
        return self.id if self.parent is None else self.parent.id

    # states and times; kernel/events/core.c, perf_event_set_state and around

    def joined(self, time: ContextTime) -> None:
        """The event's context is set: its times begin, and run by `time`."""
        self.times.begin(time)

    def _effective_state(self) -> EventState:
        """Siblings of a leader that is off do not age."""
        leader = self.group_leader.state
        return leader if leader <= EventState.OFF else self.state

    def update_times(self) -> None:
        self.times.update(self._effective_state())

    def set_state(self, state: EventState) -> None:
        old = self.state
        if old is state:
            return
        self.times.update(old if self.group_leader is self else self._effective_state())
        if self.siblings.members and (old < 0) != (state < 0):
            for sibling in self.siblings:
                sibling.update_times()
        self.state = state

    # counts

    def count(self) -> int:
        """The event's value now, with all inherited ones."""
        self.context.settle()
        if self.state == EventState.ACTIVE:
            self.driver.read(self)
        total = self.counted + self.child_count
        for child in self.children:
            total += child.count()
        return total

    def read_values(self) -> ReadValues:
        value = self.count()
        self.update_times()
        enabled = self.times.enabled_ns + self.child_enabled
        running = self.times.running_ns + self.child_running
        for child in self.children:
            child.update_times()
            enabled += child.times.enabled_ns
            running += child.times.running_ns
        return ReadValues(value, enabled, running, self.primary_id, self.lost_samples)

    def own_values(self) -> ReadValues:
        """Of this event alone, without those that were inherited from it. Also when its task has ended."""
        self.context.settle()
        if self.state == EventState.ACTIVE:
            self.driver.read(self)
        self.update_times()
        return ReadValues(
            self.counted, self.times.enabled_ns, self.times.running_ns, self.primary_id, self.lost_samples
        )

    def read_group(self) -> list[ReadValues]:
        """What read_format asks for: with GROUP the leader's values and its siblings', else the event's own."""
        if self.attr.read_format & ReadFormat.GROUP:
            return [event.read_values() for event in self.group_leader.group()]
        return [self.read_values()]

    def read_own_group(self) -> list[ReadValues]:
        """... of each event alone: what a sample of an inherited event says."""
        if self.attr.read_format & ReadFormat.GROUP:
            return [event.own_values() for event in self.group_leader.group()]
        return [self.own_values()]

    def read(self) -> bytes:
        """read(2). An event in error (pinned, and did not fit) reads as an end of file."""
        if self.state in (EventState.ERROR, EventState.REVOKED):
            return b""
        return encode_read(self.attr.read_format, self.read_group())

    # orders; each also goes to the inherited events

    def _each(self, order: Callable[[PerfEvent], None], whole_group: bool) -> None:
        events = list(self.group_leader.group()) if whole_group else [self]
        for event in events:
            order(event)
            for child in list(event.children):
                order(child)

    def enable(self, whole_group: bool = False) -> None:
        """PERF_EVENT_IOC_ENABLE."""
        self._each(PerfEvent._enable, whole_group)

    def disable(self, whole_group: bool = False) -> None:
        """PERF_EVENT_IOC_DISABLE."""
        self._each(PerfEvent._disable, whole_group)

    def reset(self, whole_group: bool = False) -> None:
        """PERF_EVENT_IOC_RESET: the count, not the times."""
        self._each(PerfEvent._reset, whole_group)

    def _enable(self) -> None:
        if self.state >= EventState.INACTIVE or self.state < EventState.ERROR:
            return
        self.set_state(EventState.INACTIVE)
        self.context.enabled(self)

    def _disable(self) -> None:
        if self.state < EventState.INACTIVE:
            return
        self.context.take_off(self)
        self.set_state(EventState.OFF)
        self.update_page()

    def _reset(self) -> None:
        self.context.settle()
        if self.state == EventState.ACTIVE:
            self.driver.read(self)
        self.counted = 0
        self.update_page()

    def refresh(self, overflows: int) -> None:
        """PERF_EVENT_IOC_REFRESH: enable for `overflows` more overflows (0: adds none to the limit)."""
        if self.attr.inherit or not self.is_sampling:
            raise LinuxError(EINVAL, "IOC_REFRESH is for sampling events that are not inherited")
        self.event_limit += overflows
        self._enable()

    def set_period(self, value: int) -> None:
        """PERF_EVENT_IOC_PERIOD: the period from now on, or the frequency of an event that has one."""
        check_new_period(self.attr, self.settings, value)

        def change(event: PerfEvent) -> None:
            event.context.settle()
            event.attr.sample_period = value
            if not event.attr.freq:
                event.hw.sample_period = value
            active = event.state == EventState.ACTIVE
            if active:
                event.rate.unthrottle(restart=False)
                event.driver.stop(event)
            event.hw.period_left = 0
            if active:
                event.driver.start(event, reload=True)

        self._each(change, False)

    def close(self) -> None:
        """The last descriptor has gone: the event, and all that were inherited from it, end."""
        if self.state == EventState.DEAD:
            return
        for child in list(self.children):
            child.close()
        self.context.remove(self)
        self.set_state(EventState.DEAD)
        if self.parent is not None:
            del self.parent.children[self]
        self.destroyed()

    def revoke(self) -> None:
        """Its PMU is about to go (__pmu_detach_event): it counts no more, writes nowhere, and needs no driver."""
        self.context.remove(self)
        self.set_state(EventState.REVOKED)
        self.attach_buffer(None)
        self.destroyed()

    def destroyed(self) -> None:
        """It is gone, and on no CPU any more."""
        drop_program(self)
        while self.when_destroyed:
            self.when_destroyed.pop(0)(self)

    # output

    def attach_buffer(self, buffer: RingBuffer | None) -> None:
        """Where records go from now on. Several may share one buffer. A unit that traces stops until next time."""
        if self.state == EventState.ACTIVE and self.driver.aux is not None:
            self.driver.stop(self)
        self.ring_buffer = buffer

    def map_page(self, page: memoryview) -> None:
        """A guest has mapped the event's buffer, and may look into its first page from now on."""
        kernel = self.kernel
        clock = UserClock(kernel.architecture.counter_hz(kernel.clock), kernel.architecture.counter_bits)
        self.user_page = UserPage(page, clock)
        self.driver.event_mapped(self)
        self.context.mapped(self)
        self.update_page()

    def unmap_page(self) -> None:
        """Nobody looks any more."""
        if self.user_page is not None:
            self.context.unmapped(self)
            self.driver.event_unmapped(self)
            self.user_page = None

    def update_page(self) -> None:
        """What user space reads by itself: perf_event_update_userpage."""
        if self.user_page is not None:
            self.update_times()
            active = self.state == EventState.ACTIVE
            index = self.hw.user_index if active else 0
            now = self.times.running_since_boot()
            self.user_page.update(
                index=index,
                offset=self.counted + self.child_count - (self.hw.signed_prev_count() if index else 0),
                enabled_ns=self.times.enabled_ns + self.child_enabled,
                running_ns=self.times.running_ns + self.child_running,
                now_ns=self.kernel.clock.monotonic_ns() if now is None else now,
                passes=now is not None and self._effective_state() >= EventState.INACTIVE and active == (index > 0),
            )

    def lost_record(self, lost: int) -> bytes:
        return self.output.lost_record(lost)

    @property
    def opened_buffer(self) -> RingBuffer | None:
        """Where its records go: of an inherited one, where its parent's do."""
        return (self.parent or self).ring_buffer

    def write_record(self, record: bytes) -> None:
        self.write_records((record,))

    def write_records(self, records: Sequence[bytes], wakeup_events: int = 0) -> None:
        """Append records to the buffer of the event (of its parent, if it is inherited); samples with its own
        `wakeup_events`."""
        opened = self.parent or self
        if opened.ring_buffer is not None:
            lost, wakes = opened.ring_buffer.write_all(records, opened, wakeup_events)
            opened.lost_samples += lost
            if wakes and opened.on_signal is not None:
                opened.on_signal(POLL_IN)

    # overflow; kernel/events/core.c, __perf_event_overflow

    def overflow(
        self, cpu: Cpu, period: int, throttle: bool = True, addr: int = 0, raw: bytes = b"", fill: Fill | None = None
    ) -> bool:
        """A period is over: account, adjust, write the sample, wake up. True: the driver shall stop the event.
        Of sampling events alone. `period`: the one that ended; `addr`, `raw`, `fill`: see EventOutput.sample."""
        stop = self.rate.matters and self.rate.account_interrupt(period, throttle)
        if self.attached is not None and not self.attached.wants_overflow(cpu, self, period, addr):
            return stop
        reason = POLL_IN
        if self.event_limit:
            self.event_limit -= 1
            if not self.event_limit:
                stop, reason = True, POLL_HUP
        action = self.attr.aux_action
        if action and action & AuxAction.PAUSE:
            self.aux.pause_source(True)
        opened = self.parent or self
        if self.attr.sigtrap and opened.on_sigtrap is not None:
            opened.on_sigtrap(cpu, addr)
        if self.overflow_handler is not None:
            self.overflow_handler(cpu)
            return stop
        buffer = opened.ring_buffer
        if buffer is not None:
            try:
                written = buffer.write(self.output.sample(cpu, period, addr, raw, fill), opened, self.wakeup_events)
            except SampleTooLong:
                written = buffer.lose()
            if not written:
                opened.lost_samples += 1
        if reason == POLL_HUP:
            if self.driver.is_hardware:
                self.pending_disable = True  # the driver is among its counters: afterwards
            else:
                self._disable()
        if opened.on_signal is not None:
            opened.on_signal(reason)
        if action and action & AuxAction.RESUME:
            self.aux.pause_source(False)
        return stop

    def run_pending(self) -> None:
        """What had to wait for the end of the interrupt (perf_pending_irq)."""
        if self.pending_disable:
            self.pending_disable = False
            self._disable()

    def disable_soon(self) -> None:
        """perf_event_disable_inatomic(): before the next instruction; its driver is in the middle of something."""
        assert self.on_cpu is not None, "its driver puts it on a CPU, or takes it off"
        self.pending_disable = True
        self.kernel.add_timer(self.on_cpu.core.cycles, self.run_pending, self.on_cpu)

    def start(self, reload: bool = False) -> None:
        self.driver.start(self, reload)

    def stop(self) -> None:
        self.driver.stop(self)

    def tell_throttled(self, throttled: bool) -> None:
        self.write_record(self.output.throttle_record(throttled=throttled))

    def tick(self) -> None:
        """The tick of the CPU that it has been on."""
        if self.state == EventState.ACTIVE:
            self.rate.tick()
