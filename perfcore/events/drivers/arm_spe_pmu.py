"""The driver of Arm's Statistical Profiling Extension. As drivers/perf/arm_spe_pmu.c of Linux 6.12.

It programs the unit by registers, and hands it an event's AUX area piece by piece: up to where the reader has given
nothing back, or wants to be woken. Its kernel has CONFIG_PID_IN_CONTEXTIDR, so that records say which task they are of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from emulator.cpu import Cpu
from emulator.linux.errors import EACCES, EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.process.task import Task
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import AuxFlag
from perfcore.events.aux_output import AuxOutput
from perfcore.events.drivers.unit import UnitDriver
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from perfcore.events.permission import may_watch_kernel
from perfcore.events.pmu_driver import AuxUnit
from pmu.arm.spe import SpeUnit
from pmu.arm.spe_pmu import FORMAT, INVERTED, NAME
from pmu.arm.spe_registers import (
    BUFFER_FILLED,
    BUFFER_MANAGEMENT,
    EVENTS,
    INTERVALS,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIDR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    PMSNEVFR_EL1,
)
from pmu.unit_memory import PAGE_SIZE, UnitMemory
from pmu.unit_pmu import UnitPmu

_FIELDS = {each.name: each for each in (*FORMAT, INVERTED)}
_LONGEST_INTERVAL = PMSIRR_EL1.INTERVAL.mask


@dataclass(slots=True)
class _Buffer:
    """struct arm_spe_pmu_buf."""

    base: int
    memory: memoryview
    snapshot: bool


class _Areas:
    """The AUX half."""

    exclusive = itrace = True
    pausable = takes_snapshots = False

    def __init__(self, memory: UnitMemory) -> None:
        self._memory = memory

    def setup_aux(self, event: PerfEvent, memory: memoryview, overwrite: bool) -> object | None:
        """Two pages at least; in snapshot mode two halves."""
        pages = len(memory) // PAGE_SIZE
        if pages < 2 or (overwrite and pages & 1):
            return None
        return _Buffer(self._memory.map(memory), memory, overwrite)

    def free_aux(self, private: object) -> None:
        assert isinstance(private, _Buffer)
        self._memory.unmap(private.base)

    def pause(self, event: PerfEvent) -> None:
        raise AssertionError("it cannot be paused")

    def resume(self, event: PerfEvent) -> None:
        raise AssertionError("it cannot be paused")

    def snapshot_aux(self, event: PerfEvent, size: int) -> bytes:
        raise AssertionError("it takes no snapshots")

    def aux_output_match(self, event: PerfEvent) -> bool:
        return False


class ArmSpePmu(UnitDriver):
    """Of all CPUs, each of which has a unit."""

    is_software = True  # perf_sw_context: tasks can have it, and counters may follow it

    def __init__(
        self, kernel: Linux, units: Mapping[int, SpeUnit], memory: UnitMemory, source: UnitPmu, type: int
    ) -> None:
        """`units` by their CPUs' numbers; they reach that memory."""
        super().__init__(source, type)
        self._units = units
        self.aux: AuxUnit[PerfEvent] = _Areas(memory)
        self._outputs: dict[int, AuxOutput] = {}  # of the event that is on each CPU, while its unit has room
        self._cpus: Sequence[Cpu] = kernel.cpus
        self._probe(next(iter(units.values())))
        for cpu in kernel.cpus:
            self._reset(units[cpu.number])
            cpu.connect_interrupt(units[cpu.number], partial(self._interrupt, cpu))
        kernel.tracepoints.sched_in.subscribe(self._task_runs)

    def _probe(self, unit: SpeUnit) -> None:
        identity = PMSIDR_EL1(unit.read(PMSIDR_EL1))
        self.version = unit.version
        self._inverts = bool(identity.FnE)
        self._align = 1 << PMBIDR_EL1(unit.read(PMBIDR_EL1)).Align
        self._record = 1 << identity.MaxSize
        self._least_interval = next(least for least, code in INTERVALS.items() if code == identity.Interval)
        assert self.source.caps == {
            "arch_inst": f"{identity.ArchInst}",
            "ernd": f"{identity.ERnd}",
            "count_size": "16" if identity.CountSize == 3 else "12",
            "min_interval": f"{self._least_interval}",
        }, "the unit is what its PMU says"

    def _reset(self, unit: SpeUnit) -> None:
        self._disable_and_drain(unit)
        unit.write(PMBPTR_EL1, 0)
        unit.write(PMBSR_EL1, 0)

    def _disable_and_drain(self, unit: SpeUnit) -> None:
        unit.write(PMSCR_EL1, 0)
        unit.write(PMBLIMITR_EL1, 0)

    def _task_runs(self, task: Task, cpu: Cpu) -> None:
        """contextidr_thread_switch()."""
        self._units[cpu.number].set_context(task.tid)

    def sysfs_attributes(self) -> dict[str, str]:
        last = max(self._units)
        inverted = {f"format/{INVERTED.name}": INVERTED.text} if self._inverts else {}
        return super().sysfs_attributes() | {"cpumask": "0" if not last else f"0-{last}"} | inverted

    # an event's attr as registers

    def _asked(self, attr: PerfEventAttr, field: str) -> int:
        where = _FIELDS[field]
        return where.extract(getattr(attr, where.config))

    def _control(self, event: PerfEvent) -> int:
        attr = event.attr
        return PMSCR_EL1.make(
            TS=self._asked(attr, "ts_enable"),
            PA=self._asked(attr, "pa_enable"),
            PCT=self._asked(attr, "pct_enable"),
            E0SPE=int(not attr.exclude_user),
            E1SPE=int(not attr.exclude_kernel),
            CX=int(may_watch_kernel(event.owner, event.settings)),
        )

    def _filters(self, attr: PerfEventAttr) -> int:
        types = {
            "LD": self._asked(attr, "load_filter"),
            "ST": self._asked(attr, "store_filter"),
            "B": self._asked(attr, "branch_filter"),
        }
        return PMSFCR_EL1.make(
            **types,
            FT=int(any(types.values())),
            FE=int(self._asked(attr, "event_filter") != 0),
            FnE=int(self._asked(attr, "inv_event_filter") != 0),
            FL=int(self._asked(attr, "min_latency") != 0),
        )

    def _reload(self, event: PerfEvent) -> int:
        """The period as the unit can have it, which the event has from now on."""
        period = event.hw.sample_period
        if period < self._least_interval:
            period = self._least_interval
        elif period > _LONGEST_INTERVAL:
            period = _LONGEST_INTERVAL
        event.hw.sample_period = period & _LONGEST_INTERVAL
        return self._asked(event.attr, "jitter") | event.hw.sample_period

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"{NAME}: attr.type {attr.type} is not its own")
        if event.cpu >= 0 and event.cpu not in self._units:
            raise LinuxError(ENOENT, f"{NAME}: CPU {event.cpu} has none")
        for field in ("event_filter", "inv_event_filter"):
            if stray := self._asked(attr, field) & ~EVENTS[self.version]:
                raise LinuxError(EOPNOTSUPP, f"{NAME}: {field}: this unit cannot filter by events {stray:#x}")
        if attr.exclude_idle:
            raise LinuxError(EOPNOTSUPP, f"{NAME}: exclude_idle: it knows nothing of idle tasks")
        if attr.freq:
            raise LinuxError(EINVAL, f"{NAME}: it samples by a period, not by a frequency")
        if self._asked(attr, "inv_event_filter") and not self._inverts:
            raise LinuxError(EOPNOTSUPP, f"{NAME}: inv_event_filter: this unit has no PMSNEVFR_EL1")
        control = PMSCR_EL1(self._control(event))
        if (control.PA or control.PCT) and not may_watch_kernel(event.owner, event.settings):
            raise LinuxError(EACCES, f"{NAME}: pa_enable and pct_enable need CAP_PERFMON")

    # the AUX area, piece by piece

    def _pad(self, output: AuxOutput, size: int) -> None:
        memory = output.area.memory
        head = output.head % output.area.size
        memory[head : head + size] = bytes(size)
        if not output.area.overwrite:
            output.skip(size)

    def _next_snapshot_limit(self, output: AuxOutput) -> int:
        """Half of the area at most, since a trace cannot be read backward."""
        size = output.area.size
        head = output.head % size
        limit = size // 2 if head < size // 2 else size
        if limit - head < self._record:
            self._pad(output, limit - head)
            output.head = limit % size
            limit = size // 2 + output.head
        return limit

    def _next_limit_anywhere(self, output: AuxOutput) -> int:
        """0: there is no room, which has been told."""
        size = output.area.size
        head = output.head % size
        if head % self._align:
            self._pad(output, min(-head % self._align, output.size))
            head = output.head % size
        if output.size:
            tail = (output.head + output.size) % size
            wakeup = output.wakeup % size
            limit = size
            if head < tail:
                limit = tail // PAGE_SIZE * PAGE_SIZE
            if output.wakeup < output.head + output.size and head <= wakeup:
                limit = min(limit, -(-wakeup // PAGE_SIZE) * PAGE_SIZE)
            if limit > head:
                return limit
            self._pad(output, output.size)
        output.flags |= AuxFlag.TRUNCATED
        output.end(0)
        return 0

    def _next_limit(self, output: AuxOutput) -> int:
        limit = self._next_limit_anywhere(output)
        head = output.head % output.area.size
        if limit and limit - head < self._record:
            self._pad(output, limit - head)
            limit = self._next_limit_anywhere(output)
        return limit

    def _begin(self, event: PerfEvent, cpu: Cpu) -> None:
        """arm_spe_perf_aux_output_begin(): the unit gets a buffer, or none, and `event` is stopped."""
        unit = self._units[cpu.number]
        output = AuxOutput.begin(event)
        if output is None:
            event.hw.stopped = True
            unit.write(PMBLIMITR_EL1, 0)
            return
        buffer = output.area.private
        assert isinstance(buffer, _Buffer)
        limit = self._next_snapshot_limit(output) if buffer.snapshot else self._next_limit(output)
        if limit:
            self._outputs[cpu.number] = output
        unit.write(PMBPTR_EL1, buffer.base + output.head % output.area.size)
        unit.write(PMBLIMITR_EL1, buffer.base + limit | (PMBLIMITR_EL1.E.mask if limit else 0))

    def _end(self, cpu: Cpu) -> None:
        """arm_spe_perf_aux_output_end()"""
        output = self._outputs.pop(cpu.number)
        buffer = output.area.private
        assert isinstance(buffer, _Buffer)
        offset = self._units[cpu.number].read(PMBPTR_EL1) - buffer.base
        size = offset - output.head % output.area.size
        if buffer.snapshot:
            output.head = offset
        output.end(size)

    def _take_status(self, cpu: Cpu) -> bool | None:
        """arm_spe_pmu_buf_get_fault_act(): None: nothing wants service. Whether it may go on, else; the output ends."""
        status = PMBSR_EL1(self._units[cpu.number].read(PMBSR_EL1))
        if not status.S:
            return None
        output = self._outputs[cpu.number]
        if status.DL:
            output.flags |= AuxFlag.TRUNCATED | AuxFlag.PARTIAL
        if status.COLL:
            output.flags |= AuxFlag.COLLISION
        truncated = bool(status.DL)
        self._end(cpu)
        filled = status.EC == BUFFER_MANAGEMENT and status.MSS == BUFFER_FILLED
        return filled and not truncated

    def _interrupt(self, cpu: Cpu) -> None:
        unit = self._units[cpu.number]
        output = self._outputs.get(cpu.number)
        if output is None:
            return
        event = output.event
        goes_on = self._take_status(cpu)
        if goes_on is None:
            return
        if goes_on:
            self._begin(event, cpu)
        else:
            self._disable_and_drain(unit)
        unit.write(PMBSR_EL1, 0)

    # the verbs

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        event.hw.stopped = True
        self._start(event, cpu, reload=True)
        return not event.hw.stopped

    def del_(self, event: PerfEvent) -> None:
        self.stop(event)

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        assert event.on_cpu is not None, "it is on a CPU"
        self._start(event, event.on_cpu, reload)

    def _start(self, event: PerfEvent, cpu: Cpu, reload: bool) -> None:
        event.hw.stopped = False
        self._begin(event, cpu)
        if event.hw.stopped:
            return
        attr, unit = event.attr, self._units[cpu.number]
        unit.write(PMSFCR_EL1, self._filters(attr))
        unit.write(PMSEVFR_EL1, self._asked(attr, "event_filter"))
        if self._inverts:
            unit.write(PMSNEVFR_EL1, self._asked(attr, "inv_event_filter"))
        unit.write(PMSLATFR_EL1, self._asked(attr, "min_latency"))
        if reload:
            unit.write(PMSIRR_EL1, self._reload(event))
            unit.write(PMSICR_EL1, event.hw.period_left)
        unit.write(PMSCR_EL1, self._control(event))

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        hw, cpu = event.hw, event.on_cpu
        if hw.stopped:
            return
        assert cpu is not None, "it is on a CPU"
        unit = self._units[cpu.number]
        self._disable_and_drain(unit)
        if update:
            if cpu.number in self._outputs:
                if self._take_status(cpu) is None:
                    self._end(cpu)
                else:
                    unit.write(PMBSR_EL1, 0)
            hw.period_left = unit.read(PMSICR_EL1)
        hw.stopped = True

    def read(self, event: PerfEvent) -> None:
        """It counts nothing."""
