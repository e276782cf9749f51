"""The drivers of AMD's Instruction-Based Sampling, `ibs_fetch` and `ibs_op`. As arch/x86/events/amd/ibs.c, Linux 6.12.

Each CPU serves one event of each at a time. A sample is of the instruction that its registers name, which needs no
skid: PERF_RECORD_MISC_EXACT_IP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from emulator.cpu import Cpu
from emulator.linux.errors import EINVAL, ENOENT, EOPNOTSUPP, LinuxError
from perfcore.abi.constants import Misc, SampleType
from perfcore.abi.sample import Sample
from perfcore.events.drivers.ibs_data_source import data_source, weight_of
from perfcore.events.drivers.unit import UnitDriver
from perfcore.events.event import PerfEvent
from pmu.amd.ibs import CAPABILITIES, PMUS, Ibs
from pmu.amd.ibs_registers import (
    IBS_BRTARGET,
    IBS_DC_LINADDR,
    IBS_DC_PHYSADDR,
    IBS_FETCH_CTL,
    IBS_FETCH_LINADDR,
    IBS_FETCH_PHYSADDR,
    IBS_OP_CTL,
    IBS_OP_DATA,
    IBS_OP_DATA2,
    IBS_OP_DATA3,
    IBS_OP_RIP,
    IC_IBS_EXTD_CTL,
)
from pmu.register import Register
from pmu.unit_pmu import UnitPmu

SHORTEST_PERIOD = 0x10
_EXCLUDES = ("user", "kernel", "hv", "idle", "host", "guest")
_EXACT_IP = int(Misc.EXACT_IP)
_OF_DATA = SampleType.DATA_SRC | SampleType.WEIGHT | SampleType.WEIGHT_STRUCT | SampleType.ADDR | SampleType.PHYS_ADDR
_OF_MORE_THAN_RIP = int(SampleType.RAW | _OF_DATA)
_RAW, _ADDR, _WEIGHT_STRUCT = (int(each) for each in (SampleType.RAW, SampleType.ADDR, SampleType.WEIGHT_STRUCT))


@dataclass(frozen=True, slots=True)
class IbsKind:
    """One of the two: its control register, and what in it is what (struct perf_ibs)."""

    control: type[Register]
    registers: tuple[type[Register], ...]  # behind the control, as PERF_SAMPLE_RAW has them
    enable: int
    valid: int
    count_mask: int  # the bits that software may not set in a config while it has a period
    longest_period: int
    maximum: Callable[[int], int]  # period -> the bits of its maximum count
    counted: Callable[[int], int]  # the control's value -> what has been counted


_OP_VALID, _COUNTS_OPS = IBS_OP_CTL.IbsOpVal.mask, IBS_OP_CTL.IbsOpCntCtl.mask
_OP_LOW, _OP_EXTENDED = IBS_OP_CTL.IbsOpMaxCnt.mask, IBS_OP_CTL.IbsOpMaxCntExt.mask
_OP_COUNT, _OP_COUNT_LO = IBS_OP_CTL.IbsOpCurCnt.mask, IBS_OP_CTL.IbsOpCurCnt.lo
_HAS_ADDRESS, _HAS_FRAME = IBS_OP_DATA3.IbsDcLinAddrValid.mask, IBS_OP_DATA3.IbsDcPhyAddrValid.mask


def _op_maximum(period: int) -> int:
    """The extension has the bits that the period has there."""
    return period & _OP_EXTENDED | (period & ~_OP_EXTENDED) >> 4


def _op_counted(value: int) -> int:
    if value & _OP_VALID:
        return (value & _OP_LOW) << 4 | value & _OP_EXTENDED
    return (value & _OP_COUNT) >> _OP_COUNT_LO


_FETCH_MOST = IBS_FETCH_CTL.IbsFetchMaxCnt.mask
_OP_MOST = IBS_OP_CTL.IbsOpMaxCnt.mask | IBS_OP_CTL.IbsOpMaxCntExt.mask
_RANDOM_COUNT = 0x7F << IBS_OP_CTL.IbsOpCurCnt.lo  # IBS_OP_CUR_CNT_RAND

KINDS: Mapping[str, IbsKind] = {
    "ibs_fetch": IbsKind(
        IBS_FETCH_CTL,
        (IBS_FETCH_LINADDR, IBS_FETCH_PHYSADDR, IC_IBS_EXTD_CTL),
        IBS_FETCH_CTL.IbsFetchEn.mask,
        IBS_FETCH_CTL.IbsFetchVal.mask,
        _FETCH_MOST,
        _FETCH_MOST << 4,
        lambda period: period >> 4,
        lambda value: (value & IBS_FETCH_CTL.IbsFetchCnt.mask) >> IBS_FETCH_CTL.IbsFetchCnt.lo << 4,
    ),
    "ibs_op": IbsKind(
        IBS_OP_CTL,
        (IBS_OP_RIP, IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3, IBS_DC_LINADDR, IBS_DC_PHYSADDR, IBS_BRTARGET),
        IBS_OP_CTL.IbsOpEn.mask,
        IBS_OP_CTL.IbsOpVal.mask,
        _OP_MOST | IBS_OP_CTL.IbsOpCurCnt.mask,
        IBS_OP_CTL.IbsOpMaxCnt.mask << 4 | IBS_OP_CTL.IbsOpMaxCntExt.mask,
        _op_maximum,
        _op_counted,
    ),
}


@dataclass(slots=True)
class _OnCpu:
    """cpu_perf_ibs: one CPU's part of a driver."""

    cpu: Cpu
    device: Ibs
    read: Callable[[], int]  # the control
    write: Callable[[int], None]
    read_others: Sequence[Callable[[], int]]
    event: PerfEvent | None = None


class IbsDriver(UnitDriver):
    """`hw.config` is what its control register holds besides counts."""

    is_hardware = True

    def __init__(
        self, cpus: Sequence[Cpu], devices: Sequence[Ibs], source: UnitPmu, type: int, *, filters: bool
    ) -> None:
        """`filters`: an event may leave out the kernel, as the tool's do; not in Linux 6.12 (its CAP_NO_EXCLUDE)."""
        super().__init__(source, type)
        self._kind = kind = KINDS[source.name]
        self._is_op = kind.control is IBS_OP_CTL
        self._filters = filters
        self._config_mask = kind.count_mask & _FETCH_MOST | source_bits(source)
        if self._is_op:
            self._config_mask |= _OP_MOST
        self._cpus = {
            cpu.number: _OnCpu(
                cpu,
                device,
                device.reader(kind.control),
                device.writer(kind.control),
                [device.reader(register) for register in kind.registers],
            )
            for cpu, device in zip(cpus, devices, strict=True)
        }

    # opening

    def event_init(self, event: PerfEvent) -> None:
        """perf_ibs_init(), and what perf_try_init_event() looks at."""
        attr = event.attr
        if attr.type != self.type:
            raise LinuxError(ENOENT, f"{self.name}: attr.type {attr.type} is not its own")
        if attr.config & ~self._config_mask:
            raise LinuxError(EINVAL, f"{self.name}: config {attr.config:#x} has bits beyond {self._config_mask:#x}")
        if attr.sample_type & SampleType.BRANCH_STACK:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: it records no branches")
        if attr.exclude_user and self._filters:
            raise LinuxError(EOPNOTSUPP, f"{self.name}: what it samples is executed in user mode")
        if any(member.driver is self for member in event.group_leader.group() if member is not event):
            raise LinuxError(EINVAL, f"{self.name}: it has one event at a time, and so none in groups")
        self._set_first_period(event)
        asked = [f"exclude_{what}" for what in _EXCLUDES if getattr(attr, f"exclude_{what}")]
        if asked and not self._filters:
            raise LinuxError(EINVAL, f"{self.name}: {', '.join(asked)}: it samples whatever happens")

    def _set_first_period(self, event: PerfEvent) -> None:
        hw, attr, kind = event.hw, event.attr, self._kind
        config = attr.config
        if hw.sample_period:
            if config & kind.count_mask:
                raise LinuxError(EINVAL, f"{self.name}: config {config:#x} has a count, and there is a period")
            hw.sample_period = max(hw.sample_period & ~(SHORTEST_PERIOD - 1), SHORTEST_PERIOD)
        else:
            hw.sample_period = attr.sample_period = (config & kind.count_mask) << 4
            config &= ~kind.count_mask
            event.is_sampling = bool(hw.sample_period)
        if not hw.sample_period:
            raise LinuxError(EINVAL, f"{self.name}: it only samples: there must be a period")
        hw.last_period = hw.period_left = hw.sample_period
        hw.config = config

    # on a CPU

    def add(self, event: PerfEvent, cpu: Cpu) -> bool:
        on_cpu = self._cpus[cpu.number]
        if on_cpu.event is not None:
            return False
        on_cpu.event = event
        event.hw.stopped = True
        self.start(event, reload=True)
        return True

    def del_(self, event: PerfEvent) -> None:
        self.stop(event)
        self._on_cpu(event).event = None
        event.update_page()

    def start(self, event: PerfEvent, reload: bool = False) -> None:
        """perf_ibs_start(): its period is set in any case."""
        hw = event.hw
        hw.stopped = False
        _, period = self._set_period(event)
        self._enable(self._on_cpu(event), event, self._kind.maximum(period))
        event.update_page()

    def stop(self, event: PerfEvent, update: bool = True) -> None:
        """perf_ibs_stop(): a sample that has not been handled is dropped."""
        hw = event.hw
        if hw.stopped:
            return
        on_cpu, kind = self._on_cpu(event), self._kind
        value = on_cpu.read()
        on_cpu.write(value & ~(kind.count_mask | kind.enable))
        hw.stopped = True
        self._update(event, value & ~kind.valid)

    def read(self, event: PerfEvent) -> None:
        """perf_ibs_read() does nothing: what has been counted since the last sample is not known to readers."""

    def _on_cpu(self, event: PerfEvent) -> _OnCpu:
        assert event.on_cpu is not None, f"{event} is not on a CPU"
        return self._cpus[event.on_cpu.number]

    def _enable(self, on_cpu: _OnCpu, event: PerfEvent, config: int) -> None:
        on_cpu.write(event.hw.config | config | self._kind.enable)

    def _update(self, event: PerfEvent, value: int) -> None:
        """perf_ibs_event_update()"""
        hw = event.hw
        counted = self._kind.counted(value)
        delta = counted - hw.prev_count
        hw.prev_count = counted
        event.counted += delta
        hw.period_left -= delta

    def _set_period(self, event: PerfEvent) -> tuple[bool, int]:
        """perf_ibs_set_period(): whether one is over, and what the hardware is to count next."""
        hw = event.hw
        period, most = hw.sample_period, self._kind.longest_period
        left, over = hw.period_left, False
        if left <= -period:
            left, over = period, True
        if left < SHORTEST_PERIOD:
            left += period
            over = True
        if over:
            hw.period_left = left
            hw.last_period = period
        if left > most:  # the last part is not to be a short one
            left = max(min(left - most, most), SHORTEST_PERIOD)
        hw.prev_count = 0
        return over, left

    # the interrupt

    def handle_interrupt(self, cpu: Cpu) -> None:
        """perf_ibs_handle_irq()"""
        on_cpu = self._cpus[cpu.number]
        event, kind = on_cpu.event, self._kind
        if event is None or event.hw.stopped:
            return
        value = on_cpu.read()
        if not value & kind.valid:
            return
        self._update(event, value)
        ended = event.hw.last_period
        over, period = self._set_period(event)
        if over and self._sample(event, on_cpu, value, ended):
            self.stop(event)
            event.run_pending()
            return
        config = kind.maximum(period)
        if self._is_op and value & _COUNTS_OPS:
            config |= value & _RANDOM_COUNT
        self._enable(on_cpu, event, config)
        event.update_page()

    def _sample(self, event: PerfEvent, on_cpu: _OnCpu, value: int, period: int) -> bool:
        """Whether the event shall stop."""
        wanted = event.attr.sample_type
        if self._is_op and not wanted & _OF_MORE_THAN_RIP:
            return event.overflow(on_cpu.cpu, period, fill=partial(_fill_ip, on_cpu.read_others[0]()))
        values = [value, *(read() for read in on_cpu.read_others)]
        raw = b""
        if wanted & _RAW:
            raw = CAPABILITIES.to_bytes(4, "little") + b"".join(each.to_bytes(8, "little") for each in values)
        if not self._is_op:
            return event.overflow(on_cpu.cpu, period, raw=raw, fill=partial(_fill_ip, values[1]))
        _, rip, data, data2, data3, linear, _, _ = values
        addr = linear if data3 & _HAS_ADDRESS and wanted & _ADDR else 0
        physical = values[6] if data3 & _HAS_FRAME else 0
        fill = partial(_fill, rip, wanted, data, data2, data3, physical)
        return event.overflow(on_cpu.cpu, period, addr=addr, raw=raw, fill=fill)


def _fill_ip(ip: int, sample: Sample) -> None:
    sample.ip = ip
    sample.misc |= _EXACT_IP


def _fill(ip: int, wanted: int, data: int, data2: int, data3: int, physical: int, sample: Sample) -> None:
    """perf_ibs_parse_ld_st_data()"""
    _fill_ip(ip, sample)
    sample.data_src = data_source(data2, data3)
    sample.weight = weight_of(data, data3, structured=bool(wanted & _WEIGHT_STRUCT))
    sample.phys_addr = physical


def source_bits(source: UnitPmu) -> int:
    """The bits of config that its format has."""
    return sum(field.mask for field in source.format)


def handlers(fetch: IbsDriver, op: IbsDriver, cpu: Cpu) -> Callable[[], None]:
    """perf_ibs_nmi_handler(): of both."""

    def handle() -> None:
        fetch.handle_interrupt(cpu)
        op.handle_interrupt(cpu)

    return handle


def ibs_drivers(
    cpus: Sequence[Cpu], devices: Sequence[Ibs], types: Mapping[str, int], *, filters: bool
) -> list[IbsDriver]:
    """Both, which share the interrupts of `devices`."""
    fetch, op = (IbsDriver(cpus, devices, source, types[source.name], filters=filters) for source in PMUS)
    for cpu, device in zip(cpus, devices, strict=True):
        cpu.connect_interrupt(device, handlers(fetch, op, cpu))
    return [fetch, op]
