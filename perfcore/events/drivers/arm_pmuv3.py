"""The driver of Arm's PMUv3. As drivers/perf/arm_pmuv3.c."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from emulator.cpu import Cpu, Level
from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import FIRST_DYNAMIC_TYPE
from perfcore.events.drivers.branch_stacks import BranchStacks
from perfcore.events.drivers.cpu_counters import CounterAccess, CpuCounters
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.event import PerfEvent
from perfcore.events.event_state import EventState
from perfcore.events.hardware_state import HardwareState
from pmu.arm.registers import (
    CYCLES,
    INSTRUCTIONS,
    PMCCFILTR_EL0,
    PMCCNTR_EL0,
    PMCNTENCLR_EL0,
    PMCNTENSET_EL0,
    PMCR_EL0,
    PMICFILTR_EL0,
    PMICNTR_EL0,
    PMINTENCLR_EL1,
    PMINTENSET_EL1,
    PMMIR_EL1,
    PMOVSCLR_EL0,
    PMUACR_EL1,
    PMUSERENR_EL0,
    PMEVCNTRn_EL0,
    PMEVTYPERn_EL0,
)
from pmu.arm.version import Version
from pmu.device import Pmu
from pmu.register import Register

_EVENT = PMEVTYPERn_EL0.evtCount.mask
_NOT_KERNEL = PMEVTYPERn_EL0.P.mask
_NOT_USER = PMEVTYPERn_EL0.U.mask
_HYPERVISOR_TOO = PMEVTYPERn_EL0.NSH.mask
_CONDITION = PMEVTYPERn_EL0.TC.mask | PMEVTYPERn_EL0.TH.mask
_FILTERS = _NOT_KERNEL | _NOT_USER | _HYPERVISOR_TOO
_COUNTER_BITS, _LONG_BITS = 32, 64
_LOW_HALF = (1 << _COUNTER_BITS) - 1
_BIAS = _LOW_HALF << _COUNTER_BITS  # lets a counter of 64 bits overflow after 32

_CPU_CYCLES = 0x0011
_CONFIG1_LONG = 1 << 0  # a 64-bit counter is wanted; 64-bit counts all of ours are, by software
_CONFIG1_RDPMC = 1 << 1  # user space wants to read the counter


class ArmPmuV3(HardwareDriver):
    """Counters 0..N-1 are the event counters, 31 the cycle counter, 32 the instruction counter: the numbers of their
    bits in the registers."""

    all_counters = (1 << INSTRUCTIONS + 1) - 1
    branches: BranchStacks | None = None

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[Pmu]) -> None:
        version = pmus[0].model.version
        self._has_long_counters = version >= Version.V3P5
        self._has_user_access_by_counter = version >= Version.V3P9
        identity = pmus[0].read(PMMIR_EL1) if version >= Version.V3P4 else 0
        self._identity = PMMIR_EL1(identity)
        super().__init__(cpus, pmus, FIRST_DYNAMIC_TYPE)

    def reset(self, pmu: Pmu) -> None:
        pmu.write(PMCNTENCLR_EL0, self.all_counters)
        pmu.write(PMINTENCLR_EL1, self.all_counters)
        pmu.write(PMOVSCLR_EL0, self.all_counters)
        control = PMCR_EL0.make(LP=int(self._has_long_counters))
        pmu.write(PMCR_EL0, control | PMCR_EL0.make(P=1, C=1))
        pmu.write(PMUSERENR_EL0, 0)
        pmu.write(PMCR_EL0, control | PMCR_EL0.make(E=1))

    def sysfs_attributes(self) -> dict[str, str]:
        """`cpus` in the list format of cpumasks: those that have this PMU; and what PMMIR_EL1 says of it."""
        caps = {
            "slots": self._identity.SLOTS,
            "bus_slots": self._identity.BUS_SLOTS,
            "bus_width": 1 << self._identity.BUS_WIDTH >> 1,
            "threshold_max": (1 << self._identity.THWIDTH) - 1,
        }
        return {
            "cpus": ",".join(str(number) for number in self.cpu_numbers()),
            **{f"caps/{name}": f"0x{value:08x}" for name, value in caps.items()},
            **({} if self.branches is None else {"caps/branches": str(self.branches.entries)}),
        }

    def raw_code(self, config: int) -> int:
        return config & _EVENT

    def further_code(self, attr: PerfEventAttr) -> int:
        """A threshold, where there are some: threshold_max, armv8pmu_event_threshold_control."""
        for absent in self.model.absent_fields(0, attr.config1):
            raise LinuxError(EINVAL, f"{self.name}: config1 {attr.config1:#x}: {absent}: this PMU has no thresholds")
        return self.model.code_of(0, attr.config1)

    def configuration(self, event: PerfEvent, code: int) -> int:
        """The PMEVTYPER value. armv8pmu_set_event_filter."""
        attr = event.attr
        self._check_user_access(event, code)
        if attr.exclude_idle:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: exclude_idle is not possible")
        filters = 0
        levels = self.selected_levels(event, code)
        if Level.KERNEL not in levels:
            filters |= _NOT_KERNEL
        if Level.USER not in levels:
            filters |= _NOT_USER
        if not attr.exclude_hv and not attr.exclude_host:
            filters |= _HYPERVISOR_TOO
        return code | filters

    def _check_user_access(self, event: PerfEvent, code: int) -> None:
        """__armv8_pmuv3_map_event: what user space reads is one counter, of a task."""
        config1 = event.attr.config1
        if not config1 & _CONFIG1_RDPMC:
            return
        if not event.of_task:
            raise LinuxError(EINVAL, f"{self.name}: config1 {config1:#x}: user access is for events of a task")
        if config1 & _CONFIG1_LONG and code != _CPU_CYCLES and not self._has_long_counters:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: config1 {config1:#x}: 64-bit user access is for cycles only")

    def selected_code(self, config: int) -> int:
        return config & (_EVENT | _CONDITION)

    def fixed_index(self, number: int) -> int:
        return CYCLES + number

    def group_members(self, event: PerfEvent) -> Iterator[PerfEvent]:
        """validate_event of arm_pmu.c: nor need leaders, or the event itself, unless execve enables them."""
        for member in super().group_members(event):
            if member.state > EventState.OFF or member.attr.enable_on_exec:
                yield member

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        """armv8pmu_get_event_idx: user space is not told of the instruction counter."""
        if event.attr.config1 & _CONFIG1_RDPMC:
            used = {*used, INSTRUCTIONS}
        return super().free_index(pmu, used, event)

    def width_bits(self, event: PerfEvent) -> int:
        long = self._has_long_counters and event.attr.config1 & _CONFIG1_LONG
        return _LONG_BITS if long else _COUNTER_BITS

    def longest_period(self, event: PerfEvent) -> int:
        """Half of what the counter can count, so that it cannot overtake the value that is about to be written."""
        return (1 << self.width_bits(event)) - 1 >> 1

    def counter_register(self, index: int) -> tuple[type[Register], int]:
        return {CYCLES: (PMCCNTR_EL0, 0), INSTRUCTIONS: (PMICNTR_EL0, 0)}.get(index, (PMEVCNTRn_EL0, index))

    def counter_access(self, pmu: Pmu, index: int, hw: HardwareState) -> CounterAccess:
        """armv8pmu_bias_long_counter: what is to overflow after 32 bits, in a counter that has more."""
        register, number = self.counter_register(index)
        write = pmu.writer(register, number)
        biased = hw.counter_mask == _LOW_HALF and (self._has_long_counters or index == CYCLES)
        return pmu.reader(register, number), (lambda value: write(value | _BIAS)) if biased else write

    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        """armv8pmu_enable_event, but that a type which the counter has already is not written again."""
        pmu, selected = counters.pmu, counters.selected
        bits = 0
        for index, event in events.items():
            bits |= 1 << index
            config = event.hw.config
            if selected.get(index) == config:
                continue
            selected[index] = config
            if index == CYCLES:
                pmu.write(PMCCFILTR_EL0, config & _FILTERS)
            elif index == INSTRUCTIONS:
                pmu.write(PMICFILTR_EL0, config & _FILTERS)
            else:
                pmu.write(PMEVTYPERn_EL0, config, index)
        pmu.write(PMINTENSET_EL1, bits)
        pmu.write(PMCNTENSET_EL0, bits)

    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        """armv8pmu_disable_event."""
        pmu = counters.pmu
        bits = 0
        for index in events:
            bits |= 1 << index
        pmu.write(PMCNTENCLR_EL0, bits)
        pmu.write(PMINTENCLR_EL1, bits)
        pmu.write(PMOVSCLR_EL0, bits)

    def pmu_enable(self, cpu: Cpu) -> None:
        """armv8pmu_start(), which drops what branches have been recorded."""
        super().pmu_enable(cpu)
        if self.branches is not None:
            self.branches.go_on(cpu)

    def status_reader(self, counters: CpuCounters) -> Callable[[], int]:
        return counters.pmu.reader(PMOVSCLR_EL0)

    def interrupt_handler(self, counters: CpuCounters) -> Callable[[], None]:
        """armv8pmu_handle_irq."""
        read_status, clear = counters.read_status, counters.pmu.writer(PMOVSCLR_EL0)
        handle_overflows = self.handle_overflows

        def handle() -> None:
            status = read_status()
            if status:
                clear(status)
                handle_overflows(counters, status)
                if self.branches is not None:
                    self.branches.go_on(counters.cpu)

        return handle

    # user space: attr.config1 bit 1 asks for it, mapping the event's page gets it

    def event_mapped(self, event: PerfEvent) -> None:
        """Where the sysctl allows nobody, the page says all the same how the counter could be read; it has no index."""
        if not event.attr.config1 & _CONFIG1_RDPMC:
            return
        if event.settings.user_access:
            super().event_mapped(event)
        elif event.user_page is not None:
            event.user_page.set_counter_access(self.width_bits(event))

    def update_user_access(self) -> None:
        """PMUSERENR_EL0 is the running task's, by `sched_task`."""

    def sched_task(self, cpu: Cpu, mapped: Collection[PerfEvent]) -> None:
        """armv8pmu_enable_user_access, which shows no counts of others, and armv8pmu_disable_user_access."""
        counters = self._cpus[cpu.number]
        pmu = counters.pmu
        wanted = 0
        if not self.user_events.isdisjoint(mapped):
            wanted = PMUSERENR_EL0.make(ER=1, CR=1, UEN=int(self._has_user_access_by_counter))
            if self._has_user_access_by_counter:
                self._show_counters(counters)
        if pmu.read(PMUSERENR_EL0) == wanted:
            return
        if wanted:
            for index in range(pmu.counters):
                if index not in counters.events:
                    pmu.write(PMEVCNTRn_EL0, 0, index)
            if CYCLES not in counters.events:
                pmu.write(PMCCNTR_EL0, 0)
        pmu.write(PMUSERENR_EL0, wanted)

    def show(self, counters: CpuCounters, event: PerfEvent) -> None:
        super().show(counters, event)
        if self._has_user_access_by_counter:
            self._show_counters(counters)

    def _show_counters(self, counters: CpuCounters) -> None:
        """Those of the events that user space may read, and of no others."""
        shown = sum(1 << index for index, event in counters.events.items() if event in self.user_events)
        counters.pmu.write(PMUACR_EL1, shown)

    def user_index(self, event: PerfEvent) -> int:
        return event.hw.idx + 1
