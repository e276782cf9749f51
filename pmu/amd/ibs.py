"""Ibs: AMD's Instruction-Based Sampling, as a live device: registers that turn into OpSamplers of the core, and back.

Behind so many fetches, cycles or dispatched ops one is tagged, and what became of it stands in registers when it has
retired. Then an interrupt is due, and nothing more is counted until software clears the sample.

An op is an instruction here: the last one that is counted is tagged, of cycles the next that retires. A fetch is the
access to L1I (again after every branch), named by the instruction that made it. The modelled Linux executes no
instructions: while it works nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from emulator._native import OpSampler
from emulator.cpu import Cpu
from emulator.probes import Probe
from pmu.amd.ibs_registers import (
    IBS_BRTARGET,
    IBS_CTL,
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
from pmu.event import Event
from pmu.format_field import FormatField
from pmu.register import Register
from pmu.register_device import RegisterDevice
from pmu.unit_pmu import UnitPmu

CAPABILITIES = 0xBFF  # CPUID 8000_001BH EAX: all of Zen 4; without Zen 5's filter of load latencies (OpLdLat)
CAN_RANDOMISE_BITS = 4, 7  # of a fetch count, of an op count

PMUS = (
    UnitPmu(
        "ibs_fetch",
        (FormatField("l3missonly", 59, 59), FormatField("rand_en", 57, 57)),
        (),
        unit="ibs",
        has_aux=False,
        note="fetches, one of so many in detail",
        caps={"zen4_ibs_extensions": "1"},
    ),
    UnitPmu(
        "ibs_op",
        (FormatField("cnt_ctl", 19, 19), FormatField("l3missonly", 16, 16)),
        (),
        unit="ibs",
        has_aux=False,
        note="instructions, one of so many in detail",
        caps={"zen4_ibs_extensions": "1"},
    ),
)

_STORED: tuple[type[Register], ...] = (
    IBS_FETCH_LINADDR, IBS_FETCH_PHYSADDR, IC_IBS_EXTD_CTL, IBS_OP_RIP, IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3,
    IBS_DC_LINADDR, IBS_DC_PHYSADDR, IBS_BRTARGET,
)  # fmt: skip
Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
_LARGEST_EXTENDED, _FEATURES, _IBS = 0x8000_0000, 0x8000_0001, 0x8000_001B
_HAS_IBS = 1 << 10  # of _FEATURES, ECX

_VECTOR = IBS_CTL.make(LvtOffset=0, LvtOffsetVal=1)
_FETCH_EN, _FETCH_VAL = IBS_FETCH_CTL.IbsFetchEn.mask, IBS_FETCH_CTL.IbsFetchVal.mask
_FETCH_COUNT = IBS_FETCH_CTL.IbsFetchCnt
_OP_EN, _OP_VAL, _OP_COUNT = IBS_OP_CTL.IbsOpEn.mask, IBS_OP_CTL.IbsOpVal.mask, IBS_OP_CTL.IbsOpCurCnt
_MOST_16, _PAGE = 0xFFFF, 1 << 12

_WIDTHS = {1 << n: (n + 1) << IBS_OP_DATA3.IbsOpMemWidth.lo for n in range(7)}
LAST, OTHER_CORE, MEMORY = 3, 4, 5  # levels that answer (native/core/retirement.hpp)
SOURCE_CACHE, SOURCE_DRAM = 1, 3  # DataSrc
_SOURCES = {
    LAST: SOURCE_CACHE << IBS_OP_DATA2.DataSrcLo.lo | IBS_OP_DATA2.CacheHitSt.mask,
    OTHER_CORE: SOURCE_CACHE << IBS_OP_DATA2.DataSrcLo.lo | IBS_OP_DATA2.CacheHitSt.mask,
    MEMORY: SOURCE_DRAM << IBS_OP_DATA2.DataSrcLo.lo,
}


def _mask(*probes: Probe) -> int:
    return sum(1 << probe for probe in probes)


_CYCLES, _INSTRUCTIONS = _mask(Probe.CYCLES), _mask(Probe.INST_RETIRED)
_FETCHES = _mask(Probe.L1I_ACCESS)
_L3_DATA = _mask(Probe.LL_REFILL_LOAD, Probe.LL_REFILL_STORE)
_L3_FETCH = _mask(Probe.LL_REFILL_FETCH)
_LOAD, _STORE, _MODIFIED = _mask(Probe.LOAD), _mask(Probe.STORE), _mask(Probe.FETCHED_HITM)
_BRANCH = _mask(Probe.BR_RETIRED)
_DATA3 = tuple(  # bits, by what makes them
    (_mask(*probes), mask.mask)
    for probes, mask in (
        ((Probe.LOAD,), IBS_OP_DATA3.IbsLdOp),
        ((Probe.STORE,), IBS_OP_DATA3.IbsStOp),
        ((Probe.DTLB_REFILL_LOAD, Probe.DTLB_REFILL_STORE), IBS_OP_DATA3.IbsDcL1TlbMiss),
        ((Probe.DTLB_WALK_LOAD, Probe.DTLB_WALK_STORE), IBS_OP_DATA3.IbsDcL2TlbMiss),
        ((Probe.L1D_REFILL_LOAD, Probe.L1D_REFILL_STORE), IBS_OP_DATA3.IbsDcMiss),
        ((Probe.UNALIGNED_LOAD, Probe.UNALIGNED_STORE), IBS_OP_DATA3.IbsDcMisAcc),
        ((Probe.LOCKED,), IBS_OP_DATA3.IbsDcLockedOp),
        ((Probe.L2_REFILL_LOAD, Probe.L2_REFILL_STORE), IBS_OP_DATA3.L2Miss),
        ((Probe.SOFTWARE_PREFETCH,), IBS_OP_DATA3.IbsSwPf),
    )
)
_DATA = tuple(
    (_mask(probe), mask.mask)
    for probe, mask in (
        (Probe.BR_RETURN, IBS_OP_DATA.IbsOpReturn),
        (Probe.BR_TAKEN, IBS_OP_DATA.IbsOpBrnTaken),
        (Probe.BR_MISPREDICTED, IBS_OP_DATA.IbsOpBrnMisp),
        (Probe.BR_RETIRED, IBS_OP_DATA.IbsOpBrnRet),
        (Probe.FUSED, IBS_OP_DATA.IbsOpBrnFuse),
    )
)
_FETCH = tuple(
    (_mask(probe), mask.mask)
    for probe, mask in (
        (Probe.L1I_REFILL, IBS_FETCH_CTL.IbsIcMiss),
        (Probe.ITLB_REFILL, IBS_FETCH_CTL.IbsL1TlbMiss),
        (Probe.ITLB_WALK, IBS_FETCH_CTL.IbsL2TlbMiss),
        (Probe.L2_REFILL_FETCH, IBS_FETCH_CTL.IbsFetchL2Miss),
        (Probe.LL_REFILL_FETCH, IBS_FETCH_CTL.IbsFetchL3Miss),
    )
)
_FETCH_SAMPLE = sum(mask for _, mask in _FETCH) | sum(
    getattr(IBS_FETCH_CTL, name).mask
    for name in ("IbsFetchLat", "IbsFetchComp", "IbsPhyAddrValid", "IbsL1TlbPgSz", "IbsFetchOcMiss")
)
_DATA_MISS = IBS_OP_DATA3.IbsDcMiss.mask
_L1_TLB_MISS = IBS_OP_DATA3.IbsDcL1TlbMiss.mask


_OP_EXTENDED = IBS_OP_CTL.IbsOpMaxCntExt.mask
_OP_CNT_CTL = IBS_OP_CTL.IbsOpCntCtl.mask
_OP_L3_ONLY = IBS_OP_CTL.IbsOpL3MissOnly.mask
_HIT_STATE = IBS_OP_DATA2.CacheHitSt.mask
_TAG_LO = IBS_OP_DATA.IbsTagToRetCtr.lo
_MISS_LO = IBS_OP_DATA3.IbsDcMissLat.lo
_REFILL_LO = IBS_OP_DATA3.IbsTlbRefillLat.lo
_HAS_ADDRESS = IBS_OP_DATA3.IbsDcLinAddrValid.mask
_HAS_FRAME = IBS_OP_DATA3.IbsDcPhyAddrValid.mask
_OP_COUNT_MASK = _OP_COUNT.mask
_OP_COUNT_LO = _OP_COUNT.lo


def answer(leaf: int, plain: Leaf) -> Leaf:
    """CPUID of a CPU with it, which without would say `plain`. AMD64 APM volume 3, appendix E."""
    eax, ebx, ecx, edx = plain
    if leaf == _LARGEST_EXTENDED:
        return max(eax, _IBS), ebx, ecx, edx
    if leaf == _FEATURES:
        return eax, ebx, ecx | _HAS_IBS, edx
    return (CAPABILITIES, 0, 0, 0) if leaf == _IBS else plain


class Ibs(RegisterDevice):
    """Of `cpu`, on a core that fires the probes of `events`."""

    kept = "storage", "_pending", "_fetch_from", "_op_from", "_sequences"  # while it is paused
    kept_ranges: ClassVar = {"_fetch_from": range(1 << 20), "_op_from": range(1 << 27)}
    local_vector = None  # of the local APIC's extended registers: IBS_CTL says which

    def __init__(self, cpu: Cpu, events: Iterable[Event], translate: Callable[[int], int | None] | None = None) -> None:
        """`translate`: the physical address of one of the guest's, where it is mapped; None: in `cpu`'s space."""
        super().__init__()
        self._translate = self._in_space if translate is None else translate
        fires = {probe for event in events for probe in event.probes}
        self._cpu = cpu
        self._fetches = _FETCHES if Probe.L1I_ACCESS in fires else _INSTRUCTIONS
        self._fetch, self._op = OpSampler(cpu.core), OpSampler(cpu.core)
        self._pending = False
        for register in _STORED:
            self._store(register)
        self._store(IBS_CTL, initial=_VECTOR)
        self.storage |= {"IBS_FETCH_CTL": 0, "IBS_OP_CTL": 0}
        self._compute(IBS_FETCH_CTL, lambda index: self._fetch_control(), lambda value, index: self._set_fetch(value))
        self._compute(IBS_OP_CTL, lambda index: self._op_control(), lambda value, index: self._set_op(value))

    # the interrupt

    def interrupt_asserted(self) -> bool:
        if self._op.valid:
            self._op.valid = False
            self._take_op()
        if self._fetch.valid:
            self._fetch.valid = False
            self._take_fetch()
        return self._pending

    def take_interrupt(self) -> None:
        self._pending = False

    # a guest's own kernel

    def registers_of(self, register: type[Register]) -> int:
        return 1

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        """No value faults: bits that are not there ignore writes."""

    # a board that is saved

    def pause(self) -> None:
        """It counts nothing until `resume`, and goes on where it was."""
        self.interrupt_asserted()
        if most := self._most_fetches():
            self._fetch_from = most - self._fetch.left
        if most := self._most_ops():
            self._op_from = most - self._op.left
        self._fetch.stop()
        self._op.stop()

    def resume(self) -> None:
        if most := self._most_fetches():
            self._start_fetch(most)
        if most := self._most_ops():
            self._start_op(most)

    @property
    def _sequences(self) -> tuple[int, int]:
        """Where those of pseudo-random numbers are."""
        return self._fetch.sequence, self._op.sequence

    @_sequences.setter
    def _sequences(self, sequences: tuple[int, int]) -> None:
        for sampler, sequence in zip((self._fetch, self._op), sequences, strict=True):
            if not 0 < sequence < 1 << 31:
                raise ValueError(f"a sequence of pseudo-random numbers is {sequence}")
            sampler.sequence = sequence

    # fetches

    def _fetch_control(self) -> int:
        value = self.storage["IBS_FETCH_CTL"]
        if value & _FETCH_EN and not value & _FETCH_VAL:
            counted = self._fetch_from + self._fetch.counted >> 4
            value = value & ~_FETCH_COUNT.mask | (counted << _FETCH_COUNT.lo & _FETCH_COUNT.mask)
        return value

    def _set_fetch(self, value: int) -> None:
        self._fetch.stop()
        value = self.storage["IBS_FETCH_CTL"] = IBS_FETCH_CTL.write(self.storage["IBS_FETCH_CTL"], value)
        if not (most := self._most_fetches()):
            return
        self._fetch_from = (value >> _FETCH_COUNT.lo & 0xFFFF) << 4
        if value & IBS_FETCH_CTL.IbsRandEn.mask:
            self._fetch_from |= self._fetch.random(CAN_RANDOMISE_BITS[0])
        self._start_fetch(most)

    def _most_fetches(self) -> int:
        """The maximum count, if it counts; else 0."""
        value = self.storage["IBS_FETCH_CTL"]
        return 0 if not value & _FETCH_EN or value & _FETCH_VAL else (value & 0xFFFF) << 4

    def _start_fetch(self, most: int) -> None:
        value = self.storage["IBS_FETCH_CTL"]
        bits = CAN_RANDOMISE_BITS[0] if value & IBS_FETCH_CTL.IbsRandEn.mask else 0
        wanted = _L3_FETCH if value & IBS_FETCH_CTL.IbsFetchL3MissOnly.mask else 0
        self._fetch.start(self._fetches, max(most - self._fetch_from, 1), wanted, most, bits)

    _fetch_from = 0  # of the count, when it began

    def _take_fetch(self) -> None:
        pc, _, fired, _, _, _, _, _, _, walked, waited, _ = self._fetch.op
        value = self.storage["IBS_FETCH_CTL"] & ~(_FETCH_SAMPLE | _FETCH_COUNT.mask)
        value |= _FETCH_VAL | IBS_FETCH_CTL.IbsFetchComp.mask
        value |= (value & IBS_FETCH_CTL.IbsFetchMaxCnt.mask) << _FETCH_COUNT.lo  # all has been counted
        value |= sum(mask for probes, mask in _FETCH if fired & probes)
        if fired & (_mask(Probe.L1I_REFILL, Probe.ITLB_REFILL)) and not fired & _DATA_WAITS:
            value |= min(walked + waited, _MOST_16) << IBS_FETCH_CTL.IbsFetchLat.lo
        else:
            walked = 0
        physical = self._translate(pc)
        if physical is not None:
            value |= IBS_FETCH_CTL.IbsPhyAddrValid.mask
        self.storage |= {
            "IBS_FETCH_CTL": value,
            "IBS_FETCH_LINADDR": pc,
            "IBS_FETCH_PHYSADDR": physical or 0,
            "IC_IBS_EXTD_CTL": min(walked, _MOST_16) if fired & _mask(Probe.ITLB_REFILL) else 0,
        }
        self._pending = True

    # ops

    def _op_control(self) -> int:
        value = self.storage["IBS_OP_CTL"]
        if value & _OP_EN and not value & _OP_VAL:
            counted = self._op_from + self._op.counted
            value = value & ~_OP_COUNT_MASK | (counted << _OP_COUNT_LO & _OP_COUNT_MASK)
        return value

    def _set_op(self, value: int) -> None:
        self._op.stop()
        value = self.storage["IBS_OP_CTL"] = IBS_OP_CTL.write(self.storage["IBS_OP_CTL"], value)
        if most := self._most_ops():
            self._op_from = (value & _OP_COUNT_MASK) >> _OP_COUNT_LO
            self._start_op(most)

    def _most_ops(self) -> int:
        """The maximum count, if it counts; else 0."""
        value = self.storage["IBS_OP_CTL"]
        return 0 if not value & _OP_EN or value & _OP_VAL else (value & 0xFFFF) << 4 | (value & _OP_EXTENDED)

    def _start_op(self, most: int) -> None:
        value = self.storage["IBS_OP_CTL"]
        counts_ops = value & _OP_CNT_CTL
        wanted = _L3_DATA if value & _OP_L3_ONLY else 0
        bits = CAN_RANDOMISE_BITS[1] if counts_ops else 0
        self._op.start(_INSTRUCTIONS if counts_ops else _CYCLES, max(most - self._op_from, 1), wanted, most, bits)

    _op_from = 0  # of the count, when it began

    def _take_op(self) -> None:
        pc, target, fired, address, size, level, cycle, dispatched, completed, walked, waited, _ = self._op.op
        storage = self.storage
        value = storage["IBS_OP_CTL"] & ~_OP_COUNT_MASK | _OP_VAL
        if value & _OP_CNT_CTL:
            value |= self._op.random(CAN_RANDOMISE_BITS[1]) << _OP_COUNT_LO
        storage["IBS_OP_CTL"] = value
        storage["IBS_OP_RIP"] = pc
        data = min(cycle - completed, _MOST_16) if cycle > completed else 0
        data |= min(cycle - dispatched, _MOST_16) << _TAG_LO
        if fired & _BRANCH:
            for probes, mask in _DATA:
                if fired & probes:
                    data |= mask
            storage["IBS_BRTARGET"] = target if fired & 1 << Probe.BR_TAKEN else 0
        else:
            storage["IBS_BRTARGET"] = 0
        storage["IBS_OP_DATA"] = data
        data2 = data3 = linear = physical = 0
        if fired & _MEMORY:
            for probes, mask in _DATA3:
                if fired & probes:
                    data3 |= mask
            if fired & _LOAD:
                data2 = _SOURCES.get(level, 0)
                if fired & _MODIFIED:
                    data2 &= ~_HIT_STATE
            if data3 & _DATA_MISS:
                data3 |= min(waited, _MOST_16) << _MISS_LO
            if data3 & _L1_TLB_MISS:
                data3 |= min(walked, _MOST_16) << _REFILL_LO
            if address is not None:
                linear = address
                data3 |= _HAS_ADDRESS | _WIDTHS.get(size, 0)
                found = self._translate(address)
                if found is not None:
                    physical = found
                    data3 |= _HAS_FRAME
        storage["IBS_OP_DATA2"] = data2
        storage["IBS_OP_DATA3"] = data3
        storage["IBS_DC_LINADDR"] = linear
        storage["IBS_DC_PHYSADDR"] = physical
        self._pending = True

    def _in_space(self, address: int) -> int | None:
        space = self._cpu.space
        found = None if space is None else space.lookup(address)
        return None if found is None else found[0] * _PAGE + address % _PAGE


_MEMORY = _LOAD | _STORE | _mask(Probe.SOFTWARE_PREFETCH)
_DATA_WAITS = _mask(
    Probe.L1D_REFILL_LOAD, Probe.DTLB_REFILL_LOAD, Probe.L1D_REFILL_STORE, Probe.DTLB_REFILL_STORE
)  # of which `walked` and `waited` are rather than of the fetch
