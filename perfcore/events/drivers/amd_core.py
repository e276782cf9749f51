"""The driver of AMD's core counters, PerfMonV2. As arch/x86/events/core.c and arch/x86/events/amd/core.c.

Families 17h and up have no constraints but of events that take a pair of counters (Large Increment per Cycle), none of
which is modelled. All counters are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from emulator.cpu import Cpu, Level
from emulator.linux.errors import ENOENT, EOPNOTSUPP, LinuxError
from perfcore.abi.attr import PerfEventAttr
from perfcore.abi.constants import PerfType, SampleType
from perfcore.events.drivers.amd_brs import BranchSamples
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.sources import source_types
from perfcore.events.drivers.x86 import RdpmcPmu, X86Driver
from perfcore.events.event import PerfEvent
from pmu.amd.ibs_registers import IBS_OP_CTL
from pmu.amd.registers import (
    LVT_PMC,
    RAW_EVENT_MASK,
    PERF_CTLx,
    PERF_CTRx,
    PerfCntrGlobalCtl,
    PerfCntrGlobalStatus,
    PerfCntrGlobalStatusClr,
)
from pmu.device import Pmu
from pmu.generic_events import HardwareId
from pmu.register import Register

_ENABLE = PERF_CTLx.En.mask
_MOST_PRECISE_IBS = 2
_COUNTS_OPS = IBS_OP_CTL.IbsOpCntCtl.mask
_IBS_CONFIGS: dict[tuple[int, int], int] = {  # core_pmu_ibs_config(): what a precise event becomes
    (PerfType.HARDWARE, HardwareId.CPU_CYCLES): 0,
    (PerfType.RAW, 0x76): 0,
    (PerfType.RAW, 0xC1): _COUNTS_OPS,
}
_OF_IBS = (  # what of a sample no counter knows
    SampleType.RAW
    | SampleType.DATA_SRC
    | SampleType.WEIGHT
    | SampleType.WEIGHT_STRUCT
    | SampleType.ADDR
    | SampleType.PHYS_ADDR
)
_BRS_COUNTER = 0
_LVT_NMI = LVT_PMC.make(MT=4)


class AmdCore(X86Driver):
    """`index` is the counter's number."""

    def __init__(self, cpus: Sequence[Cpu], pmus: Sequence[RdpmcPmu]) -> None:
        # One that measures needs no IBS to be precise: the counter's interrupt comes right behind the instruction that
        # overflowed it.
        model = pmus[0].model
        self.max_precise_ip = 0 if model.has_limits else 2
        self._ibs_op = source_types(model).get("ibs_op")
        self.all_counters = (1 << pmus[0].counters) - 1  # amd_pmu_global_cntr_mask
        super().__init__(cpus, pmus)

    def event_init(self, event: PerfEvent) -> None:
        if event.attr.precise_ip and self._ibs_op is not None and self._wants_ibs(event.attr):
            self._forward(event.attr, self._ibs_op)
        super().event_init(event)

    def _wants_ibs(self, attr: PerfEventAttr) -> bool:
        """A guest's precise events do, and those of the tool that ask for what no counter knows."""
        of_counters = attr.type in (PerfType.HARDWARE, PerfType.HW_CACHE, PerfType.RAW)
        return of_counters and (self.model.has_limits or bool(attr.sample_type & _OF_IBS and attr.sample_period))

    def _forward(self, attr: PerfEventAttr, ibs_op: int) -> None:
        """forward_event_to_ibs(): `attr` is changed, and another driver is to take it. LinuxError says so."""
        if attr.precise_ip > _MOST_PRECISE_IBS:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: precise_ip {attr.precise_ip} is above {_MOST_PRECISE_IBS}")
        config = _IBS_CONFIGS.get((attr.type, attr.config))
        if config is None:
            if attr.type == PerfType.HW_CACHE or self.model.has_limits:
                raise LinuxError(ENOENT, f"{self.name}: IBS samples cycles and ops alone")
            return
        attr.type, attr.config = ibs_op, config
        raise LinuxError(ENOENT, f"{self.name}: precise, and so ibs_op's")

    def reset(self, pmu: Pmu) -> None:
        pmu.write(PerfCntrGlobalCtl, 0)
        for index in range(pmu.counters):
            pmu.write(PERF_CTLx, 0, index)
        pmu.write(PerfCntrGlobalStatusClr, self.all_counters)
        pmu.write(LVT_PMC, _LVT_NMI)

    def raw_code(self, config: int) -> int:
        return config & RAW_EVENT_MASK

    def configuration(self, event: PerfEvent, code: int) -> int:
        """PERF_CTL without En. x86_pmu_hw_config, amd_pmu_hw_config; there are no hosts or guests without SVM."""
        self.check_precision(event)
        levels = self.selected_levels(event, code)
        user = PERF_CTLx.User.mask if Level.USER in levels else 0
        kernel = PERF_CTLx.Os.mask if Level.KERNEL in levels else 0
        return code | PERF_CTLx.Int.mask | user | kernel

    def fixed_index(self, number: int) -> int:
        raise ValueError(f"{self.name} has no fixed counter {number}")

    def free_index(self, pmu: Pmu, used: set[int] | dict[int, PerfEvent], event: PerfEvent) -> int | None:
        """Branch sampling has counter 0: amd_brs_event_constraint. Others leave it free as long as they can."""
        if not isinstance(self.branches, BranchSamples):
            return super().free_index(pmu, used, event)
        if event.hw.branches is not None:
            return None if _BRS_COUNTER in used else _BRS_COUNTER
        return next((index for index in (*range(1, pmu.counters), _BRS_COUNTER) if index not in used), None)

    def counter_register(self, index: int) -> tuple[type[Register], int]:
        return PERF_CTRx, index

    def enable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        for index, event in events.items():
            counters.pmu.write(PERF_CTLx, event.hw.config | _ENABLE, index)
            counters.running |= 1 << index
        counters.pmu.write(PerfCntrGlobalCtl, self._globally_enabled(counters))

    def disable_counters(self, counters: CpuCounters, events: Mapping[int, PerfEvent]) -> None:
        for index, event in events.items():
            counters.pmu.write(PERF_CTLx, event.hw.config, index)
            counters.running &= ~(1 << index)

    def _globally_enabled(self, counters: CpuCounters) -> int:
        """Mask of those that PerfCntrGlobalCtl lets count."""
        return counters.running

    def status_reader(self, counters: CpuCounters) -> Callable[[], int]:
        return counters.pmu.reader(PerfCntrGlobalStatus)

    def interrupt_handler(self, counters: CpuCounters) -> Callable[[], None]:
        """amd_pmu_v2_handle_irq."""
        read_status = counters.read_status
        clear = counters.pmu.writer(PerfCntrGlobalStatusClr)
        all_counters, handle_overflows = self.all_counters, self.handle_overflows
        frozen = PerfCntrGlobalStatus.LBRSF.mask

        def handle() -> None:
            status = read_status()
            clear(status & all_counters)
            handle_overflows(counters, status & all_counters)
            if self.branches is not None:
                self.branches.go_on(counters.cpu)
            if status & frozen:
                clear(frozen)

        return handle

    def user_index(self, event: PerfEvent) -> int:
        return event.hw.idx + 1
