"""The driver of Intel's architectural perfmon. As arch/x86/events/core.c and arch/x86/events/intel/core.c."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from emulator.cpu import Cpu, Level
from emulator.linux.errors import EINVAL, LinuxError
from perfcore.events.drivers.counter_assignment import placement
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.intel_units import IntelUnit, IntelUnits
from perfcore.events.drivers.pebs import IntelPebs
from perfcore.events.drivers.saved_counters import SavedCounters
from perfcore.events.drivers.x86 import RdpmcPmu, X86Driver
from perfcore.events.event import PerfEvent
from perfcore.events.pmu_driver import Saved
from pmu.device import Pmu
from pmu.intel.registers import (
    FIXED_SHIFT,
    IA32_FIXED_CTR_CTRL,
    IA32_PERF_GLOBAL_CTRL,
    IA32_PERF_GLOBAL_STATUS,
    IA32_PERF_GLOBAL_STATUS_RESET,
    IA32_X2APIC_LVT_PMI,
    RDPMC_FIXED,
    IA32_A_PMCx,
    IA32_FIXED_CTRx,
    IA32_PERFEVTSELx,
    IA32_PMCx,
)
from pmu.register import Register

_SELECT = IA32_PERFEVTSELx
_CODE = _SELECT.EVENT.mask | _SELECT.UMASK.mask
_RAW = _CODE | _SELECT.E.mask | _SELECT.INV.mask | _SELECT.CMASK.mask  # X86_RAW_EVENT_MASK
_USER = _SELECT.USR.mask
_KERNEL = _SELECT.OS.mask
_INTERRUPT = _SELECT.INT.mask
_ENABLE = _SELECT.EN.mask
_FIXED_KERNEL = IA32_FIXED_CTR_CTRL.EN0_OS.mask  # of a counter's four bits
_FIXED_USER = IA32_FIXED_CTR_CTRL.EN0_USR.mask
_FIXED_PMI = IA32_FIXED_CTR_CTRL.PMI0.mask
_FIXED_BITS = 0b1111
_FIXED_ADAPTIVE = IA32_FIXED_CTR_CTRL.ADAPTIVE0.mask
_BUFFER = IA32_PERF_GLOBAL_STATUS.OVF_BUFFER.mask
_LVT_NMI = IA32_X2APIC_LVT_PMI.make(DELIVERY_MODE=4)


class IntelCore(X86Driver):
    """Counters 0..N-1 are the general-purpose ones, 32.. the fixed ones: the numbers of their bits in the registers."""

    max_precise_ip = 3
    pebs: IntelPebs | None = None  # of cores that have it
    branch_units: IntelUnits | None = None  # where its branch records share the core's with others

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[RdpmcPmu]) -> None:
        fixed = len(pmus[0].model.fixed_counters)
        self.all_counters = (1 << pmus[0].counters) - 1 | ((1 << fixed) - 1) << FIXED_SHIFT
        model = pmus[0].model
        self._constrained = model.has_limits and bool(model.constraints)
        names = model.metrics if model.has_limits else ()
        self._metrics = {model.events.find(name).code for name in names if name}
        super().__init__(cpus, pmus)

    def reset(self, pmu: Pmu) -> None:
        pmu.write(IA32_PERF_GLOBAL_CTRL, 0)
        for index in range(pmu.counters):
            pmu.write(IA32_PERFEVTSELx, 0, index)
        pmu.write(IA32_FIXED_CTR_CTRL, 0)
        pmu.write(IA32_PERF_GLOBAL_STATUS_RESET, self.all_counters)
        pmu.write(IA32_X2APIC_LVT_PMI, _LVT_NMI)

    def sysfs_attributes(self) -> dict[str, str]:
        return super().sysfs_attributes() | {"caps/pmu_name": "perfemu"}

    def event_init(self, event: PerfEvent) -> None:
        super().event_init(event)
        if self.branch_units is not None and event.hw.branches is not None:
            self.branch_units.take(IntelUnit.LBR, event)

    def raw_code(self, config: int) -> int:
        return config & _RAW

    def configuration(self, event: PerfEvent, code: int) -> int:
        """The IA32_PERFEVTSEL value without EN. x86_pmu_hw_config."""
        self.check_precision(event)
        if code in self._metrics:
            self._check_metric(event)
        levels = self.selected_levels(event, code)
        config = code | _INTERRUPT
        if self.pebs is not None:
            if event.attr.precise_ip and not event.is_sampling and self.model.has_limits:
                raise LinuxError(EINVAL, f"{self.name}: nothing is precise about an event that does not sample")
            event.hw.pebs = self.pebs.configured(event, code, self.model.counted_by(code), levels, self.branches)
            if event.hw.pebs is not None and self.pebs.adaptive:
                config |= _SELECT.ADAPTIVE.mask
        if Level.USER in levels:
            config |= _USER
        if Level.KERNEL in levels:
            config |= _KERNEL
        return config

    def _check_metric(self, event: PerfEvent) -> None:
        """intel_pmu_hw_config: MSR_PERF_METRICS has shares of the slots that its group's leader counts."""
        leader = event.group_leader
        slots = self.model.config_of(self.model.events.find("TOPDOWN.SLOTS"))
        if event.is_leader or leader.driver is not self or leader.hw.code != slots:
            raise LinuxError(EINVAL, f"{self.name}: topdown events need a group that slots leads")
        if event.is_sampling or leader.is_sampling:
            raise LinuxError(EINVAL, f"{self.name}: neither topdown events nor the slots that lead them can be sampled")

    def selected_code(self, config: int) -> int:
        """With edge, inversion or a threshold no fixed counter can do it."""
        return config & _RAW

    def fixed_index(self, number: int) -> int:
        return FIXED_SHIFT + number

    # which counter: x86_schedule_events, by the constraints of the model

    def _counters_of(self, event: PerfEvent) -> list[int]:
        code = event.hw.code
        found = []
        for number, fixed in enumerate(self.model.fixed_counters):
            if fixed.config == code and self._may_be_fixed(event):
                found.append(self.fixed_index(number))
                if not fixed.programmable:
                    return found
        possible = self.model.counters_for(code) & self.all_counters & (1 << FIXED_SHIFT) - 1
        return found + [index for index in range(possible.bit_length()) if possible >> index & 1]

    def group_fits(self, event: PerfEvent) -> bool:
        if not self._constrained:
            return super().group_fits(event)
        holders: dict[int, PerfEvent] = {}
        for member in self.group_members(event):
            if member.driver is not self:
                continue
            moves = placement(holders, self._counters_of, member)
            if moves is None:
                return False
            holders.update({index: moved for moved, index in moves})
        return True

    def _may_be_fixed(self, event: PerfEvent) -> bool:
        """Without extended PEBS no fixed counter writes records."""
        return event.hw.pebs is None or self.pebs is None or self.pebs.adaptive

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        if not self._constrained and self._may_be_fixed(event):
            return super().free_index(pmu, used, event)
        if not self._constrained:
            return next((index for index in range(pmu.counters) if index not in used), None)
        return next((index for index in self._counters_of(event) if index not in used), None)

    def place(self, counters: CpuCounters, event: PerfEvent) -> int | None:
        if event.hw.pebs is not None and self.pebs is not None and not self.pebs.admits(counters.cpu, event):
            return None
        if self._constrained:
            moves = placement(counters.events, self._counters_of, event)
            if moves is None:
                return None
            for other, index in moves[:-1]:
                self.move(counters, other, index)
        return super().place(counters, event)

    def counter_register(self, index: int) -> tuple[type[Register], int]:
        return (IA32_FIXED_CTRx, index - FIXED_SHIFT) if index >= FIXED_SHIFT else (IA32_PMCx, index)

    def whole_register(self, index: int) -> tuple[type[Register], int]:
        return (IA32_A_PMCx, index) if index < FIXED_SHIFT else self.counter_register(index)

    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        pmu = counters.pmu
        for index, event in events.items():
            if index >= FIXED_SHIFT:
                self._control_fixed(pmu, index, event.hw.config)
            else:
                pmu.write(IA32_PERFEVTSELx, event.hw.config | _ENABLE, index)
            counters.running |= 1 << index
            if event.hw.pebs is not None and self.pebs is not None:
                self.pebs.enable(counters.cpu, index, event)
        pmu.write(IA32_PERF_GLOBAL_CTRL, self._globally_enabled(counters))

    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        pmu = counters.pmu
        if self.pebs is not None and self.pebs.in_use(counters.cpu):
            self.pebs.disable(counters.cpu, [*events])
        for index, event in events.items():
            if index >= FIXED_SHIFT:
                self._control_fixed(pmu, index, None)
            else:
                pmu.write(IA32_PERFEVTSELx, event.hw.config, index)
            counters.running &= ~(1 << index)

    # precise events: what has been recorded becomes samples before anything else is done

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        if event.hw.pebs is not None and self.pebs is not None and not event.hw.stopped:
            assert event.on_cpu is not None, f"{event} is not on a CPU"
            self.pebs.drain(self, self._cpus[event.on_cpu.number])
        super().stop(event, update)

    def read(self, event: PerfEvent) -> None:
        if event.hw.pebs is None or self.pebs is None:
            super().read(event)
        elif not event.hw.stopped:
            assert event.on_cpu is not None, f"{event} is not on a CPU"
            self.pebs.drain(self, self._cpus[event.on_cpu.number])
            if not event.hw.stopped:
                self.pebs.read(event)

    def save(
        self, cpu: Cpu, events: Callable[[], Sequence[PerfEvent] | None], last: Saved | None
    ) -> SavedCounters | None:
        if self.pebs is not None and self.pebs.in_use(cpu):
            return None
        return super().save(cpu, events, last)

    def _globally_enabled(self, counters: CpuCounters) -> int:
        """Mask of those that IA32_PERF_GLOBAL_CTRL lets count."""
        return counters.running

    def _control_fixed(self, pmu: Pmu, index: int, config: int | None) -> None:
        """Enable a fixed counter with the filters of `config`, or disable it (None). intel_pmu_enable_fixed."""
        shift = 4 * (index - FIXED_SHIFT)
        bits = 0
        if config is not None:
            bits = (_FIXED_USER if config & _USER else 0) | (_FIXED_KERNEL if config & _KERNEL else 0) | _FIXED_PMI
            bits |= _FIXED_ADAPTIVE if config & _SELECT.ADAPTIVE.mask else 0
        control = pmu.read(IA32_FIXED_CTR_CTRL) & ~((_FIXED_BITS | _FIXED_ADAPTIVE) << shift)
        pmu.write(IA32_FIXED_CTR_CTRL, control | bits << shift)

    def status_reader(self, counters: CpuCounters) -> Callable[[], int]:
        return counters.pmu.reader(IA32_PERF_GLOBAL_STATUS)

    def interrupt_handler(self, counters: CpuCounters) -> Callable[[], None]:
        """intel_pmu_handle_irq. None can overflow again meanwhile, so one round is enough."""
        pmu = counters.pmu
        unmask = pmu.writer(IA32_X2APIC_LVT_PMI)
        read_status, clear = counters.read_status, pmu.writer(IA32_PERF_GLOBAL_STATUS_RESET)
        interrupting, handle_overflows = self.all_counters | _BUFFER, self.handle_overflows

        def handle() -> None:
            unmask(_LVT_NMI)
            status = read_status() & interrupting
            clear(status)
            if status & _BUFFER and self.pebs is not None:
                self.pebs.drain(self, counters, in_interrupt=True)
                status ^= _BUFFER
            handle_overflows(counters, status)
            if self.branches is not None:
                self.branches.go_on(counters.cpu)

        return handle

    def user_index(self, event: PerfEvent) -> int:
        index = event.hw.idx
        return (index - FIXED_SHIFT | RDPMC_FIXED if index >= FIXED_SHIFT else index) + 1
