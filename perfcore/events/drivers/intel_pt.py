"""The driver of Intel PT. As arch/x86/events/intel/pt.c: it traces user mode into AUX areas, by ToPA tables.

What is traced of a CPU goes where the event that is on it says; what has been written is told when that event goes off,
and at the interrupt of a region that is marked so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from emulator.linux.mm.mapping import PROT_EXEC, Mapping
from emulator.linux.process.task import Task
from perfcore.abi.constants import AuxFlag
from perfcore.events.address_filters import Action, AddressFilter, parse_address_filters, range_of
from perfcore.events.aux_output import AuxOutput
from perfcore.events.drivers.intel_units import IntelUnit, IntelUnits
from perfcore.events.drivers.unit import UnitDriver
from perfcore.events.event import PerfEvent
from perfcore.events.kernel import Linux
from perfcore.events.pmu_driver import AuxUnit
from perfcore.events.probes.probed_file import find_probed_file
from pmu.intel.pt import BUS_HZ, Capabilities, IntelPt
from pmu.intel.pt_registers import (
    IA32_PERF_GLOBAL_STATUS_RESET_TRACE,
    IA32_PERF_GLOBAL_STATUS_TRACE,
    IA32_RTIT_ADDR_A,
    IA32_RTIT_ADDR_B,
    IA32_RTIT_CTL,
    IA32_RTIT_OUTPUT_BASE,
    IA32_RTIT_OUTPUT_MASK_PTRS,
    IA32_RTIT_STATUS,
    TOPA_ENTRY,
)
from pmu.unit_memory import PAGE_SIZE, UnitMemory
from pmu.unit_pmu import UnitPmu

_MOST_REGIONS = 64  # of one area: they are as large as the kernel's allocations would be
_ENTRY_BYTES = 8
_PT, _CYC = 1 << 0, IA32_RTIT_CTL.CYC_EN.mask
_ALWAYS = _PT | IA32_RTIT_CTL.TSC_EN.mask | IA32_RTIT_CTL.DIS_RETC.mask | IA32_RTIT_CTL.BRANCH_EN.mask
_PSB_CYC = _CYC | IA32_RTIT_CTL.CYC_THRESH.mask | IA32_RTIT_CTL.PSB_FREQ.mask
_MTC = IA32_RTIT_CTL.MTC_EN.mask | IA32_RTIT_CTL.MTC_FREQ.mask
_PTWRITE, _POWER = IA32_RTIT_CTL.PTW_EN.mask | IA32_RTIT_CTL.FUP_ON_PTW.mask, IA32_RTIT_CTL.PWR_EVT_EN.mask
_CONFIG = _ALWAYS | _PSB_CYC | _MTC | _PTWRITE | _POWER
_TRACED, _STOPS = 1, 2  # of a range: ADDRn_CFG
_RESET = IA32_PERF_GLOBAL_STATUS_RESET_TRACE.TRACE_TOPA_PMI.mask


@dataclass(slots=True)
class _Buffer:
    """struct pt_buffer: an AUX area and its table of regions, each of `region_size` bytes."""

    memory: memoryview
    base: int  # physical
    table: int  # physical
    entries: memoryview
    region_size: int
    regions: int
    overwrite: bool

    def mark(self, marks: dict[int, int]) -> None:
        """Write the table, with these bits in the entries of some regions."""
        size = (self.region_size // PAGE_SIZE).bit_length() - 1
        words = [
            self.base + number * self.region_size | size << TOPA_ENTRY.SIZE.lo | marks.get(number, 0)
            for number in range(self.regions)
        ]
        words.append(self.table | TOPA_ENTRY.END.mask)
        for number, word in enumerate(words):
            self.entries[_ENTRY_BYTES * number : _ENTRY_BYTES * (number + 1)] = word.to_bytes(_ENTRY_BYTES, "little")


@dataclass(slots=True)
class _Trace:
    """struct pt: what a CPU's unit writes."""

    event: PerfEvent
    output: AuxOutput
    buffer: _Buffer
    begun: int  # head of the area when it began


class IntelPtDriver(UnitDriver):
    """Its own AuxUnit, too. Events are in the context of software events, as Linux has it."""

    is_software = True
    exclusive = True
    itrace = True
    pausable = False  # Linux 6.13 can
    takes_snapshots = True
    branch_units: IntelUnits | None = None  # where it shares the core's with others

    def __init__(
        self, kernel: Linux, units: Sequence[IntelPt], memory: UnitMemory, pmu: UnitPmu, type: int, hz: int
    ) -> None:
        """`memory`: what the units' addresses lead to. `hz`: of the time stamp counter."""
        super().__init__(pmu, type)
        cpus = kernel.cpus
        self._kernel = kernel
        self.aux: AuxUnit[PerfEvent] = self
        self._hz = hz
        self._memory = memory
        self._units = {cpu.number: unit for cpu, unit in zip(cpus, units, strict=True)}
        self._capabilities: Capabilities = units[0].capabilities
        self._traces: dict[int, _Trace] = {}  # by CPU
        self._added: dict[int, PerfEvent] = {}
        self._filters: dict[PerfEvent, Sequence[AddressFilter]] = {}  # of those that were opened
        for cpu, unit in zip(cpus, units, strict=True):
            cpu.connect_interrupt(unit, lambda cpu=cpu: self._interrupt(cpu))  # type: ignore[misc]
        kernel.tracepoints.mmap.subscribe(self._mapped)

    def sysfs_attributes(self) -> dict[str, str]:
        """Without the events, of which there are none."""
        capabilities = self._capabilities
        ratio = capabilities.tsc_per_crystal(self._hz)
        caps = {
            "max_subleaf": 1,
            "cr3_filtering": 0,
            "psb_cyc": 1,
            "ip_filtering": int(capabilities.address_ranges > 0),
            "mtc": 1,
            "ptwrite": int(capabilities.ptwrite),
            "power_event_trace": int(capabilities.power_events),
            "event_trace": 0,
            "tnt_disable": 0,
            "topa_output": 1,
            "topa_multiple_entries": 1,
            "single_range_output": 1,
            "output_subsys": 0,
            "payloads_lip": 0,
            "num_address_ranges": capabilities.address_ranges,
            "mtc_periods": capabilities.mtc_periods,
            "cycle_thresholds": capabilities.cycle_thresholds,
            "psb_periods": capabilities.psb_periods,
        }
        files = {f"caps/{name}": f"{value:x}" for name, value in caps.items()}
        files["max_nonturbo_ratio"] = str(self._hz // BUS_HZ)
        files["tsc_art_ratio"] = f"{ratio.numerator}:{ratio.denominator}"
        files["nr_addr_filters"] = str(capabilities.address_ranges)
        return files

    # events

    def event_init(self, event: PerfEvent) -> None:
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"{self.name}: attr.type {attr.type} is not its own")
        self._check(attr.config)
        if not attr.exclude_kernel:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: the kernel is modelled, and has no path: {self.name}//u")
        if attr.exclude_user:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: nothing but user mode has a path here")
        if self.branch_units is not None:
            self.branch_units.take(IntelUnit.PT, event)
        event.when_destroyed.append(self._forget_filters)

    def _check(self, config: int) -> None:
        """pt_event_valid()"""
        if stray := config & ~(_CONFIG & self._capabilities.control):
            raise LinuxError(EINVAL, f"{self.name}: bits {stray:#x} of config are not what its unit can")
        control, capabilities = IA32_RTIT_CTL(config), self._capabilities
        for name, number, there in (
            ("psb_period", control.PSB_FREQ, capabilities.psb_periods),
            ("cyc_thresh", control.CYC_THRESH, capabilities.cycle_thresholds),
            ("mtc_period", control.MTC_FREQ, capabilities.mtc_periods),
        ):
            if not there >> number & 1:
                numbers = [str(bit) for bit in range(16) if there >> bit & 1]
                raise LinuxError(EINVAL, f"{self.name}: {name}={number}: it is one of {', '.join(numbers)}")
        if not config & _PT and config & IA32_RTIT_CTL.BRANCH_EN.mask:
            raise LinuxError(EINVAL, f"{self.name}: branch=1 needs pt=1, without which branches are traced anyway")

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        if cpu.number in self._added:
            return False
        self._added[cpu.number] = event
        self.start(event)
        return True

    def del_(self, event: PerfEvent) -> None:
        self.stop(event)
        number = self._cpu_of(event)
        if number is not None:
            del self._added[number]

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        number = self._cpu_of(event)
        if number is None or number in self._traces:
            return
        event.hw.stopped = not self._begin(event, number)
        if not event.hw.stopped:
            self._enable(event, number)

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        event.hw.stopped = True
        number = self._cpu_of(event)
        if number is None or number not in self._traces:
            return
        self._disable(number)
        self._units[number].write(IA32_PERF_GLOBAL_STATUS_RESET_TRACE, _RESET)
        self._finish(number)

    def _cpu_of(self, event: PerfEvent) -> int | None:
        """Whose unit it has."""
        return next((number for number, other in self._added.items() if other is event), None)

    def read(self, event: PerfEvent) -> None:
        """It counts nothing."""

    def set_filter(self, event: PerfEvent, text: str) -> None:
        """perf_event_set_addr_filter(): these instead of those before; of what is inherited from it, too."""
        who = event.owner or event.target

        def find_file(path: str) -> int:
            assert who is not None, "an event of a task"
            return find_probed_file(who, path).inode

        filters = parse_address_filters(text, of_task=event.of_task, find_file=find_file)
        self._validate(filters)
        self._filters[event] = filters
        for number, trace in list(self._traces.items()):
            if (trace.event.parent or trace.event) is event:
                self._restart(number)

    def _forget_filters(self, event: PerfEvent) -> None:
        self._filters.pop(event, None)

    def _validate(self, filters: Sequence[AddressFilter]) -> None:
        """pt_event_addr_filters_validate()"""
        for filter in filters:
            if filter.action is Action.START or not filter.size:
                raise LinuxError(EOPNOTSUPP, f"{self.name}: it filters by ranges alone, in which it traces or stops")
        if len(filters) > self._capabilities.address_ranges:
            most = self._capabilities.address_ranges
            raise LinuxError(EOPNOTSUPP, f"{self.name}: {len(filters)} filters: it has {most} ranges")

    def _mapped(self, task: Task, mapping: Mapping) -> None:
        """perf_addr_filters_adjust(), of who has mapped something that is executed."""
        trace = None if task.cpu is None else self._traces.get(task.cpu.number)
        if task.cpu is None or trace is None or mapping.file is None or not mapping.protection & PROT_EXEC:
            return
        if self._filters.get(trace.event.parent or trace.event):
            self._restart(task.cpu.number)

    def _restart(self, number: int) -> None:
        """perf_event_stop(), after which it starts again."""
        event = self._traces[number].event
        self.stop(event)
        self.start(event)

    def _filter_by(self, event: PerfEvent, number: int) -> int:
        """pt_config_filters(): the ranges of the task that is on the CPU. Returns what the control register says."""
        filters = self._filters.get(event.parent or event, ())
        task = self._kernel.current(self._kernel.cpus[number])
        unit, control = self._units[number], 0
        for index, filter in enumerate(filters):
            start, end = (0, 0) if task is None else range_of(filter, task.mm.mappings)
            unit.write(IA32_RTIT_ADDR_A, start, index)
            unit.write(IA32_RTIT_ADDR_B, max(end - 1, 0), index)
            kind = _TRACED if filter.action is Action.FILTER else _STOPS
            control |= kind << IA32_RTIT_CTL.ADDR0_CFG.lo + IA32_RTIT_CTL.ADDR0_CFG.width * index
        return control

    # AUX areas

    def setup_aux(self, event: PerfEvent, memory: memoryview, overwrite: bool) -> object | None:
        size = len(memory)
        region_size = max(PAGE_SIZE, size // _MOST_REGIONS)
        regions = size // region_size
        table, entries = self._memory.allocate((regions + 1) * _ENTRY_BYTES)
        return _Buffer(memory, self._memory.map(memory), table, entries, region_size, regions, overwrite)

    def free_aux(self, private: object) -> None:
        assert isinstance(private, _Buffer), "setup_aux has made it"
        self._memory.unmap(private.base)
        self._memory.unmap(private.table)

    def snapshot_aux(self, event: PerfEvent, size: int) -> bytes:
        number = self._cpu_of(event)
        if number is None or number not in self._traces:
            return b""
        self._disable(number)
        self._update(number)
        trace = self._traces[number]
        memory = trace.buffer.memory
        end = trace.output.head % len(memory)
        start = end - size
        data = bytes(memory[start:end]) if start >= 0 else bytes(memory[start:]) + bytes(memory[:end])
        self._enable(event, number)
        return data

    def pause(self, event: PerfEvent) -> None:
        raise AssertionError("it cannot be paused")

    def resume(self, event: PerfEvent) -> None:
        raise AssertionError("it has not been paused")

    def aux_output_match(self, event: PerfEvent) -> bool:
        return False  # PEBS via PT is not modelled

    # the unit

    def _begin(self, event: PerfEvent, number: int) -> bool:
        """A stretch of the area, and where in the table the unit begins. False: there is none."""
        output = AuxOutput.begin(event)
        if output is None:
            return False
        buffer = output.area.private
        assert isinstance(buffer, _Buffer), "setup_aux has made it"
        size = len(buffer.memory)
        head = output.head % size
        region, offset = divmod(head, buffer.region_size)
        marks: dict[int, int] = {}
        if not buffer.overwrite:
            if offset + output.size + 1 < buffer.region_size:  # it could not stop in the middle of a region
                output.flags |= AuxFlag.TRUNCATED
                output.end(0)
                return False
            stop = (head + output.size + 1) // buffer.region_size - 1  # the last region that is all free
            wakes = max(region, min(stop, (output.wakeup - output.head + head) // buffer.region_size - 1))
            marks[wakes % buffer.regions] = TOPA_ENTRY.INT.mask
            marks[stop % buffer.regions] = TOPA_ENTRY.STOP.mask | TOPA_ENTRY.INT.mask
        buffer.mark(marks)
        unit = self._units[number]
        unit.write(IA32_RTIT_OUTPUT_BASE, buffer.table)
        unit.write(IA32_RTIT_OUTPUT_MASK_PTRS, offset << 32 | region << 7)
        self._traces[number] = _Trace(event, output, buffer, output.head)
        opened = event.parent or event
        if not opened.aux.itrace_started:
            opened.aux.itrace_started = True
        if not event.hw.config:  # the first time round: the trace begins with a PSB
            unit.write(IA32_RTIT_STATUS, 0)
        return True

    def _enable(self, event: PerfEvent, number: int) -> None:
        """pt_config()"""
        config = event.attr.config | self._filter_by(event, number)
        control = config | IA32_RTIT_CTL.TRACE_EN.mask | IA32_RTIT_CTL.TOPA.mask | IA32_RTIT_CTL.USER.mask
        if not config & _PT:  # which lifts the rule that branches are always traced
            control |= IA32_RTIT_CTL.BRANCH_EN.mask
        event.hw.config = control
        self._units[number].write(IA32_RTIT_CTL, control)

    def _disable(self, number: int) -> None:
        unit = self._units[number]
        unit.write(IA32_RTIT_CTL, unit.read(IA32_RTIT_CTL) & ~IA32_RTIT_CTL.TRACE_EN.mask)

    def _update(self, number: int) -> None:
        """pt_update_head(): up to where the area has been written; where nobody takes it away, where the unit is."""
        trace, unit = self._traces[number], self._units[number]
        pointers = IA32_RTIT_OUTPUT_MASK_PTRS(unit.read(IA32_RTIT_OUTPUT_MASK_PTRS))
        position = pointers.MASK_OR_TABLE_OFFSET * trace.buffer.region_size + pointers.OUTPUT_OFFSET
        if trace.buffer.overwrite:
            trace.output.head = position % len(trace.buffer.memory)
        else:
            trace.output.head += (position - trace.output.head) % len(trace.buffer.memory)

    def _finish(self, number: int) -> None:
        """What has been written is the reader's. The unit is off."""
        self._update(number)
        trace, unit = self._traces.pop(number), self._units[number]
        status = IA32_RTIT_STATUS(unit.read(IA32_RTIT_STATUS))
        offset = IA32_RTIT_OUTPUT_MASK_PTRS(unit.read(IA32_RTIT_OUTPUT_MASK_PTRS)).OUTPUT_OFFSET
        if status.ERROR or (status.STOPPED and offset == trace.buffer.region_size):
            trace.output.flags |= AuxFlag.TRUNCATED  # nobody knows how much has been lost
            unit.write(IA32_RTIT_STATUS, 0)  # so that what comes next begins with a PSB
        elif status.STOPPED:  # by an address
            unit.write(IA32_RTIT_STATUS, status.value & ~IA32_RTIT_STATUS.STOPPED.mask)
        whole = len(trace.buffer.memory)
        trace.output.end(whole if trace.buffer.overwrite else trace.output.head - trace.begun)

    def _interrupt(self, cpu: Cpu) -> None:
        """intel_pt_interrupt()"""
        number = cpu.number
        unit, trace = self._units[number], self._traces.get(number)
        if not unit.read(IA32_PERF_GLOBAL_STATUS_TRACE):
            return
        unit.write(IA32_PERF_GLOBAL_STATUS_RESET_TRACE, _RESET)
        if trace is None:
            return
        self._disable(number)
        self._finish(number)
        event = trace.event
        if self._begin(event, number):
            self._enable(event, number)
        else:
            event.hw.stopped = True
