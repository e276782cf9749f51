"""IntelPebs: the part of the driver of Intel's perfmon that makes events precise. As arch/x86/events/intel/ds.c, 6.12.

Counters of precise events write records into the buffer of their CPU's debug store. Where every sample wants no more
than records have, the interrupt comes when the buffer is nearly full ("large PEBS"), and what is in it is taken before
its task leaves the CPU; else each record interrupts. A fixed period is reloaded by the hardware.

Linux samples `cycles` by another event on Skylake (pebs_aliases); here any event can be precise. One that counts the
kernel is not: the modelled one executes nothing of which there could be a record, so its counter interrupts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from emulator.clock import MONOTONIC_AT_BOOT_NS
from emulator.cpu import Cpu, Level
from emulator.linux.errors import EINVAL, EOPNOTSUPP, LinuxError
from emulator.probes import Probe
from perfcore.abi.constants import Misc, SampleRegsAbi, SampleType
from perfcore.abi.sample import Sample
from perfcore.events.drivers.arch_lbr import stack_of
from perfcore.events.drivers.branch_stacks import BranchStacks, EventBranches
from perfcore.events.drivers.cpu_counters import CpuCounters
from perfcore.events.drivers.hardware import HardwareDriver
from perfcore.events.drivers.pebs_data_source import DataKind, data_source, kind_of
from perfcore.events.drivers.pebs_records import (
    FIXED_BYTES,
    GENERAL,
    PebsRecord,
    adaptive_records,
    bytes_of,
    fixed_records,
)
from perfcore.events.event import PerfEvent
from pmu.device import Pmu
from pmu.event import Event
from pmu.intel.debug_store import PEBS, PEBS_AT, RESET_BYTES, RESETS_AT, AllocatedStore, area_bytes, general_resets
from pmu.intel.pebs_registers import (
    IA32_PEBS_ENABLE,
    LOAD_LATENCY_SHIFT,
    MSR_PEBS_DATA_CFG,
    MSR_PEBS_LD_LAT_THRESHOLD,
)
from pmu.intel.registers import FIXED_SHIFT

_BUFFER_BYTES = 4096 << 4  # PEBS_BUFFER_SIZE
_CFG = MSR_PEBS_DATA_CFG
_WEIGHTS = SampleType.WEIGHT | SampleType.WEIGHT_STRUCT
_OF_MEMORY = (
    SampleType.ADDR | SampleType.DATA_SRC | SampleType.PHYS_ADDR | SampleType.DATA_PAGE_SIZE | _WEIGHTS
)  # PERF_PEBS_MEMINFO_TYPE
_LARGE = (  # LARGE_PEBS_FLAGS
    SampleType.IP | SampleType.TID | SampleType.ADDR | SampleType.ID | SampleType.CPU | SampleType.STREAM_ID
    | SampleType.DATA_SRC | SampleType.IDENTIFIER | SampleType.TRANSACTION | SampleType.PHYS_ADDR | SampleType.TIME
    | SampleType.REGS_INTR | SampleType.REGS_USER | SampleType.PERIOD | SampleType.CODE_PAGE_SIZE | _WEIGHTS
    | SampleType.DATA_PAGE_SIZE
)  # fmt: skip
_IP = 8  # bits of sample_regs_intr
_EXACT_IP = int(Misc.EXACT_IP)
_VECTORS = 0xFFFF_FFFF << 32


class EventPebs:
    """What one precise event wants, and how far it is."""

    __slots__ = ("config", "kind", "large", "late", "latency", "period", "reloads")

    def __init__(self, event: PerfEvent, kind: DataKind, *, reloads: bool, large: bool, config: int) -> None:
        self.kind = kind
        self.reloads = reloads  # PERF_X86_EVENT_AUTO_RELOAD
        self.large = large
        self.config = config  # MSR_PEBS_DATA_CFG
        self.latency = event.attr.config1 if kind is DataKind.LOAD_LATENCY else None
        self.period = 0  # by which its counter is reloaded now
        self.late = 0  # periods that its counter is ahead: records of instructions that made several


class _OnCpu:
    """One CPU's part: its debug store and who writes into it."""

    def __init__(self, cpu: Cpu, pmu: Pmu, store: AllocatedStore) -> None:
        self.cpu = cpu
        self.pmu = pmu
        self.area = area = store.area(area_bytes(pmu.counters))
        self.base, self.buffer = store.memory.allocate(_BUFFER_BYTES)
        self.events: dict[int, PerfEvent] = {}  # by counter
        self.fixed_resets = general_resets(pmu.counters)
        PEBS.pack_into(area, PEBS_AT, self.base, self.base, self.base + _BUFFER_BYTES, self.base + _BUFFER_BYTES)

    @property
    def index(self) -> int:
        _, index, _, _ = PEBS.unpack_from(self.area, PEBS_AT)
        return int(index)

    def set_reset(self, counter: int, value: int) -> None:
        word = counter if counter < FIXED_SHIFT else self.fixed_resets + counter - FIXED_SHIFT
        at = RESETS_AT + RESET_BYTES * word
        self.area[at : at + RESET_BYTES] = value.to_bytes(RESET_BYTES, "little")


class IntelPebs:
    """Of all CPUs that have it, for their counters' driver."""

    def __init__(
        self, cpus: Sequence[Cpu], pmus: Sequence[Pmu], stores: Sequence[AllocatedStore], *, adaptive: bool, hz: int
    ) -> None:
        """`hz`: of the time stamp counter, which has counted since CLOCK_MONOTONIC was 0, in whole seconds."""
        self.adaptive = adaptive
        self._hz = hz
        self._tsc_at_start = MONOTONIC_AT_BOOT_NS // 1_000_000_000 * hz
        self._cpus = {cpu.number: _OnCpu(cpu, pmu, store) for cpu, pmu, store in zip(cpus, pmus, stores, strict=True)}

    # opening

    def configured(
        self, event: PerfEvent, code: int, counted: Event | None, levels: set[Level], branches: BranchStacks | None
    ) -> EventPebs | None:
        """What records are to do for `event`, of this code; None: they cannot, and its counter interrupts. `branches`:
        of the core."""
        kind = kind_of(code, store_latency=self.adaptive)
        if kind is DataKind.LOAD_LATENCY and event.attr.config1 & ~MSR_PEBS_LD_LAT_THRESHOLD.declared:
            raise LinuxError(EINVAL, f"ldlat={event.attr.config1:#x}: a threshold has 16 bits")
        can = event.attr.precise_ip and event.is_sampling and levels == {Level.USER} and _can_write(counted)
        if not can:
            if kind in (DataKind.LOAD_LATENCY, DataKind.STORE_LATENCY):
                raise LinuxError(EOPNOTSUPP, "only records know latencies: it has to be sampled, with precise_ip")
            return None
        config = self._groups(event, branches) if self.adaptive else 0
        attr = event.attr
        event.hw.samples_vectors = bool(config & _CFG.XMM.mask)
        reloads = not (attr.freq or (attr.wakeup_events and not attr.watermark))
        return EventPebs(
            event,
            kind,
            reloads=reloads or kind is DataKind.LOAD_LATENCY,
            large=reloads and self._is_large(event),
            config=config,
        )

    def _groups(self, event: PerfEvent, branches: BranchStacks | None) -> int:
        """pebs_update_adaptive_cfg()"""
        attr = event.attr
        wanted, config = attr.sample_type, 0
        if wanted & _OF_MEMORY:
            config |= _CFG.MEMORY.mask
        registers = attr.sample_regs_intr if wanted & SampleType.REGS_INTR else 0
        of_user = attr.sample_regs_user if wanted & SampleType.REGS_USER else 0
        if (registers | of_user) & GENERAL or attr.precise_ip < 2:
            config |= _CFG.GPR.mask
        if registers & _VECTORS:
            config |= _CFG.XMM.mask
        if wanted & SampleType.BRANCH_STACK and branches is not None:
            config |= _CFG.LBR.mask | branches.entries - 1 << _CFG.LBR_ENTRIES.lo
        return config

    def _is_large(self, event: PerfEvent) -> bool:
        """intel_pmu_large_pebs_flags(). Of a whole CPU, whose tasks change meanwhile, each record interrupts."""
        attr = event.attr
        may = _LARGE | (SampleType.BRANCH_STACK if self.adaptive else 0)
        if attr.use_clockid:
            may &= ~SampleType.TIME
        if not attr.exclude_kernel:
            may &= ~SampleType.REGS_USER
        if (attr.sample_regs_intr | attr.sample_regs_user) & ~(GENERAL | _VECTORS):
            may &= ~(SampleType.REGS_USER | SampleType.REGS_INTR)
        return event.of_task and not (attr.sample_type & ~may or attr.sigtrap or attr.aux_action)

    # on a CPU

    def in_use(self, cpu: Cpu) -> bool:
        return bool(self._cpus[cpu.number].events)

    def admits(self, cpu: Cpu, event: PerfEvent) -> bool:
        """Whether those that are there leave it the threshold of load latency that it wants."""
        pebs = event.hw.pebs
        assert isinstance(pebs, EventPebs), "it is precise"
        others = (of_event(other).latency for other in self._cpus[cpu.number].events.values() if other is not event)
        return pebs.latency is None or all(latency in (None, pebs.latency) for latency in others)

    def enable(self, cpu: Cpu, counter: int, event: PerfEvent) -> None:
        """intel_pmu_pebs_enable()"""
        on_cpu = self._cpus[cpu.number]
        pebs = of_event(event)
        pebs.late = 0
        on_cpu.events[counter] = event
        self._set_reset(on_cpu, counter, event)
        self._update(on_cpu)

    def disable(self, cpu: Cpu, counters: Sequence[int]) -> None:
        """intel_pmu_pebs_disable(), of those that have it."""
        on_cpu = self._cpus[cpu.number]
        mine = on_cpu.events.keys() & counters
        for counter in mine:
            del on_cpu.events[counter]
        if mine:
            self._update(on_cpu)

    def _set_reset(self, on_cpu: _OnCpu, counter: int, event: PerfEvent) -> None:
        pebs, hw = of_event(event), event.hw
        pebs.period = hw.sample_period if pebs.reloads else 0
        on_cpu.set_reset(counter, -pebs.period & hw.counter_mask)

    def _update(self, on_cpu: _OnCpu) -> None:
        enabled = config = latency = 0
        for counter, event in on_cpu.events.items():
            pebs = of_event(event)
            enabled |= 1 << counter
            config |= pebs.config  # of branch records all want the same number
            if pebs.latency is not None:
                latency = pebs.latency
                enabled |= 0 if self.adaptive else 1 << counter + LOAD_LATENCY_SHIFT
        size = bytes_of(config) if self.adaptive else FIXED_BYTES
        most = _BUFFER_BYTES // size
        large = all(of_event(event).large for event in on_cpu.events.values())
        threshold = most - len(on_cpu.events) if large else 1
        base = on_cpu.base
        PEBS.pack_into(on_cpu.area, PEBS_AT, base, on_cpu.index, base + most * size, base + threshold * size)
        if self.adaptive:
            on_cpu.pmu.write(MSR_PEBS_DATA_CFG, config)
        on_cpu.pmu.write(MSR_PEBS_LD_LAT_THRESHOLD, latency)
        on_cpu.pmu.write(IA32_PEBS_ENABLE, enabled)

    # records

    def drain(self, driver: HardwareDriver, counters: CpuCounters, *, in_interrupt: bool = False) -> None:
        """What has been written becomes samples: intel_pmu_drain_pebs_icl(), _nhm()."""
        on_cpu = self._cpus[counters.cpu.number]
        written = on_cpu.index - on_cpu.base
        if not written:
            return
        data = bytes(on_cpu.buffer[:written])
        _, _, maximum, threshold = PEBS.unpack_from(on_cpu.area, PEBS_AT)
        PEBS.pack_into(on_cpu.area, PEBS_AT, on_cpu.base, on_cpu.base, maximum, threshold)
        records = list(adaptive_records(data) if self.adaptive else fixed_records(data))
        stopping = []
        for counter, event in dict(on_cpu.events).items():
            bit = 1 << counter
            own = [record for record in records if record.applicable & bit]
            if of_event(event).reloads:
                self._count(event, counters, len(own))
            if own and self._sample(driver, counters, event, own, in_interrupt=in_interrupt):
                stopping.append(event)
        for event in stopping:
            driver.stop(event, update=False)
            if event.pending_disable and not in_interrupt:
                event.disable_soon()
            elif event.pending_disable:
                counters.pending.append(event)
        if in_interrupt:
            self._follow_frequencies(driver, on_cpu)
            if counters.pending:
                counters.run_pending()

    def read(self, event: PerfEvent) -> None:
        """Of one whose records have been taken: what its counter holds. Of loads that are looked at only those count
        that were slow, which records tell."""
        hw, pebs = event.hw, of_event(event)
        value = hw.read_counter() & hw.counter_mask
        delta = value - hw.prev_count & hw.counter_mask
        hw.prev_count = value
        if pebs.kind is DataKind.LOAD_LATENCY:  # also reloaded where there was no record
            hw.period_left = pebs.period - _signed(value, hw.counter_mask) % pebs.period
            return
        hw.period_left -= delta
        event.counted += delta

    def _count(self, event: PerfEvent, counters: CpuCounters, records: int) -> None:
        """intel_pmu_save_and_restart_reload(): its counter has been reloaded with each record of its."""
        hw, pebs = event.hw, of_event(event)
        value = hw.read_counter() & hw.counter_mask
        period = pebs.period
        if pebs.kind is DataKind.LOAD_LATENCY:
            event.counted += records * period
        else:
            event.counted += _signed(value, hw.counter_mask) - hw.signed_prev_count() + records * period
        hw.prev_count = value
        hw.last_period = period
        ahead = _signed(value, hw.counter_mask)
        hw.period_left = period - ahead % period
        late = max((ahead + period) // period, 0)
        if late > pebs.late:
            event.write_record(event.output.lost_samples_record(late - pebs.late, counters.cpu))
            pebs.late = late

    def _sample(
        self, driver: HardwareDriver, counters: CpuCounters, event: PerfEvent, records: list[PebsRecord], *,
        in_interrupt: bool,
    ) -> bool:  # fmt: skip
        """Whether the event shall stop. __intel_pmu_pebs_event(): the last record is the interrupt's overflow."""
        cpu, pebs = counters.cpu, of_event(event)
        fill = self._filler(event, cpu)
        if not pebs.reloads:
            for record in records:
                if not event.pending_disable:
                    driver.overflowed(event, counters, _address(event, record), partial(fill, record))
            return False
        overflow = records.pop() if in_interrupt else None
        event.write_records(event.output.samples(cpu, pebs.period, records, fill), event.wakeup_events)
        if overflow is None:
            return False
        return event.overflow(cpu, pebs.period, addr=_address(event, overflow), fill=partial(fill, overflow))

    def _follow_frequencies(self, driver: HardwareDriver, on_cpu: _OnCpu) -> None:
        """Those that are reloaded although their period is not fixed."""
        for counter, event in on_cpu.events.items():
            pebs, hw = of_event(event), event.hw
            if pebs.reloads and event.attr.freq and hw.sample_period != pebs.period and not hw.stopped:
                self._set_reset(on_cpu, counter, event)
                hw.period_left = hw.sample_period
                driver.set_period(event)

    def _filler(self, event: PerfEvent, cpu: Cpu) -> Callable[[PebsRecord, Sample], None]:
        """What puts a record into a sample: setup_pebs_adaptive_sample_data(), setup_pebs_fixed_sample_data()."""
        attr, kind = event.attr, of_event(event).kind
        wanted = int(attr.sample_type)
        names_itself = attr.precise_ip > 1 or self.adaptive
        timed = not attr.use_clockid
        hz, tsc_at_start = self._hz, self._tsc_at_start
        rest = wanted & int(_OF_MEMORY | SampleType.REGS_INTR | SampleType.REGS_USER | SampleType.BRANCH_STACK)

        def fill(record: PebsRecord, sample: Sample) -> None:
            if names_itself or record.next_ip is None:
                sample.ip = record.ip
                sample.misc |= _EXACT_IP
            else:
                sample.ip = record.next_ip
            if timed:
                sample.time = MONOTONIC_AT_BOOT_NS + (record.tsc - tsc_at_start) * 1_000_000_000 // hz
            if rest:
                fill_rest(record, sample)

        def fill_rest(record: PebsRecord, sample: Sample) -> None:
            sample.addr = _address(event, record)
            if wanted & _WEIGHTS:
                sample.weight = _weight(wanted, record)
            if wanted & SampleType.DATA_SRC:
                sample.data_src = data_source(kind, record.source)
            if record.words:
                registers = {**record.registers, _IP: sample.ip}
                if wanted & SampleType.REGS_INTR:
                    sample.intr_regs_abi = SampleRegsAbi.ABI_64
                    sample.intr_regs = _chosen(registers, sample.intr_regs, attr.sample_regs_intr)
                if wanted & SampleType.REGS_USER:
                    sample.user_regs = _chosen(registers, sample.user_regs, attr.sample_regs_user)
            if record.branches is not None and isinstance(event.hw.branches, EventBranches):
                sample.branch_hw_index, sample.branches = stack_of(event.hw.branches, cpu, record.branches)

        return fill


def _address(event: PerfEvent, record: PebsRecord) -> int:
    return record.address if event.attr.sample_type & _OF_MEMORY else 0


def _weight(wanted: int, record: PebsRecord) -> int:
    """PERF_SAMPLE_WEIGHT; or _STRUCT, with the cycles since dispatch as var2_w."""
    return record.latency | (record.instruction_latency << 32 if wanted & SampleType.WEIGHT_STRUCT else 0)


def _can_write(counted: Event | None) -> bool:
    """Whether each of these events is at one instruction: what a selection of the core's can find."""
    if counted is None or not counted.probes or counted.less:
        return False
    return Probe.CYCLES not in counted.probes or counted.probes == (Probe.CYCLES,)


def of_event(event: PerfEvent) -> EventPebs:
    pebs = event.hw.pebs
    assert isinstance(pebs, EventPebs), f"{event} is not precise"
    return pebs


def _signed(value: int, mask: int) -> int:
    return value - (mask + 1) if value > mask >> 1 else value


def _chosen(registers: dict[int, int], present: list[int], mask: int) -> list[int]:
    """Those of `mask`, lowest bit first; of what no record has, what is there at `present`."""
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    return [registers.get(bit, present[number] if number < len(present) else 0) for number, bit in enumerate(bits)]
