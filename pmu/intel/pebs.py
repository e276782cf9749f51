"""Pebs: Intel's processor event-based sampling as a live device, a part of a CPU's Perfmon.

An overflow of a counter that IA32_PEBS_ENABLE has writes a record of the very instruction that made it (on hardware:
of one behind it, but on counters with PDIR), and reloads the counter by the DS area, without an interrupt; that comes
when the index has reached the threshold. Records are of format 3, or adaptive ones of format 4
(native/units/pebs writes both).

What is chosen here: of a load latency event every load is counted, but an overflow by one that was not slower than the
threshold writes no record, and its period is not counted: so many a period are looked at, as hardware looks at some
loads only. A full buffer ends records, and what is counted then is not reloaded. Where one instruction makes more
events than a period has, there is one record of it; the counter stays ahead by the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulator._native import Pebs as NativePebs
from emulator.clock import MONOTONIC_AT_BOOT_NS, Clock
from emulator.core_file.units import UNITS
from emulator.cpu import Cpu
from pmu.branch_records import BranchUnit
from pmu.counter_bank import CounterBank
from pmu.intel.debug_store import IA32_DS_AREA, PEBS, PEBS_AT, DebugStore, area_bytes, general_resets
from pmu.intel.pebs_registers import (
    IA32_PEBS_ENABLE,
    LOAD_LATENCY_SHIFT,
    MSR_PEBS_DATA_CFG,
    MSR_PEBS_LD_LAT_THRESHOLD,
    reserved_in,
)
from pmu.intel.registers import FIXED_SHIFT, IA32_PERF_CAPABILITIES
from pmu.register import Register

assert "pebs" in UNITS, "core files know it"
_FORMATS = {False: 3, True: 4}  # by whether records are adaptive
_ADAPTIVE_VERSION = 5  # of perfmon: what came with it
LOAD_LATENCY = 0x01CD  # MEM_TRANS_RETIRED.LOAD_LATENCY: event, umask
STORE_SAMPLE = 0x02CD
_LOW = (1 << FIXED_SHIFT) - 1
Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
_DS = 1 << 21  # CPUID leaf 1, EDX
_DTES64, _PDCM = 1 << 2, 1 << 15  # ... ECX: areas of 64-bit words; IA32_PERF_CAPABILITIES


def is_adaptive(version: int) -> bool:
    """Whether a core with this version of perfmon has adaptive records, of any counter."""
    return version >= _ADAPTIVE_VERSION


def answer(leaf: int, plain: Leaf) -> Leaf:
    """CPUID of a CPU with PEBS, which without would say `plain`."""
    eax, ebx, ecx, edx = plain
    return (eax, ebx, ecx | _DTES64 | _PDCM, edx | _DS) if leaf == 1 else plain


class Pebs:
    """Of one bank of counters, whose first `general` are no fixed ones."""

    kept = "_enable", "_config", "_latency", "buffer_overflowed"

    def __init__(self, cpu: Cpu, clock: Clock, store: DebugStore, version: int) -> None:
        self.adaptive = is_adaptive(version)
        self._cpu, self._clock, self._store = cpu, clock, store
        tsc_at_start = MONOTONIC_AT_BOOT_NS // 1_000_000_000 * clock.frequency_hz
        self.tsc_at_start: Callable[[], int] = lambda: tsc_at_start  # what it showed at cycle 0
        self._enable = self._config = self._latency = 0
        self._native: NativePebs | None = None
        # A guest may give it addresses of nothing, which its user is told of; for others that is a ValueError.
        self.when_wrong: Callable[[str], None] | None = None

    def attach(
        self, bank: CounterBank, general: int, fixed: int, branches: BranchUnit | None, selects: Callable[[], Selects]
    ) -> None:
        """To the counters of a PMU. `selects`: what those that are not fixed have selected, and who is adaptive."""
        self._native = NativePebs(self._cpu.core, bank, self._clock.shown)  # type: ignore[arg-type]
        self._general, self._fixed, self._branches, self._selects = general, fixed, branches, selects
        self._area_bytes = area_bytes(general)

    @property
    def capabilities(self) -> int:
        """Of IA32_PERF_CAPABILITIES."""
        return IA32_PERF_CAPABILITIES.make(
            PEBS_TRAP=1, PEBS_ARCH_REG=1, PEBS_REC_FMT=_FORMATS[self.adaptive], PEBS_BASELINE=int(self.adaptive)
        )

    def reserved(self) -> dict[type[Register], int]:
        """By register, declared bits that are reserved."""
        return reserved_in((1 << self._general) - 1, (1 << self._fixed) - 1, extended=self.adaptive)

    def accesses(self) -> dict[type[Register], tuple[Callable[[int], int], Callable[[int, int], None]]]:
        """What reads and writes each of its registers."""
        found: dict[type[Register], Any] = {
            IA32_DS_AREA: (lambda index: self._store.address, self._write_area),
            IA32_PEBS_ENABLE: (lambda index: self._enable, self._write_enable),
            MSR_PEBS_LD_LAT_THRESHOLD: (lambda index: self._latency, self._write_latency),
        }
        if self.adaptive:
            found[MSR_PEBS_DATA_CFG] = (lambda index: self._config, self._write_config)
        return found

    # the interrupt

    @property
    def buffer_overflowed(self) -> bool:
        """IA32_PERF_GLOBAL_STATUS.OVF_BUFFER"""
        return self._native is not None and self._native.buffer_overflowed

    @buffer_overflowed.setter
    def buffer_overflowed(self, overflowed: bool) -> None:
        assert self._native is not None, "it is attached"
        self._native.buffer_overflowed = overflowed

    # a board that is saved

    def pause(self) -> None:
        """It records nothing until `resume`."""
        assert self._native is not None, "it is attached"
        self._native.end()

    def resume(self) -> None:
        self._begin()

    # registers

    def _write_area(self, value: int, index: int) -> None:
        self._store.address = value
        self._begin()

    def _write_enable(self, value: int, index: int) -> None:
        self._enable = IA32_PEBS_ENABLE.write(0, value)
        self._begin()

    def _write_latency(self, value: int, index: int) -> None:
        self._latency = MSR_PEBS_LD_LAT_THRESHOLD.write(0, value)
        self._begin()

    def _write_config(self, value: int, index: int) -> None:
        self._config = MSR_PEBS_DATA_CFG.write(0, value)
        self._begin()

    def selected_anew(self) -> None:
        """What some counter selects has changed."""
        if self._enable:
            self._begin()

    def _begin(self) -> None:
        native = self._native
        assert native is not None, "it is attached"
        enabled = self._enable & _LOW
        if self.adaptive:
            enabled |= (self._enable >> FIXED_SHIFT) << self._general
        if not enabled:
            native.end()
            return
        try:
            self._record(native, enabled)
        except ValueError as problem:
            native.end()
            if self.when_wrong is None:
                raise
            self.when_wrong(f"Intel PEBS records nothing: {problem}")

    def _record(self, native: NativePebs, enabled: int) -> None:
        selects = self._selects()
        slow = sum(1 << number for number, code in enumerate(selects.codes) if code == LOAD_LATENCY) & enabled
        if not self.adaptive:
            slow &= self._enable >> LOAD_LATENCY_SHIFT
        area = self._store.area(self._area_bytes)
        base, _, maximum, _ = PEBS.unpack_from(area, PEBS_AT)
        if maximum < base:
            raise ValueError(f"the debug store's PEBS buffer ends at {maximum:#x}, before it begins at {base:#x}")
        native.begin(
            area=area,
            buffer=self._store.reached(base, maximum - base),
            branches=None if self._branches is None else self._branches.records,
            counters=enabled,
            slow_loads=slow,
            latency=self._latency,
            general=self._general,
            resets=general_resets(self._general),
            adaptive=self.adaptive,
            with_groups=selects.adaptive,
            config=self._config,
            tsc_at_start=self.tsc_at_start(),
        )


class Selects:
    """What a PMU's counters have selected: event and umask of each that is not fixed; mask of the bank of those whose
    records are adaptive."""

    __slots__ = ("adaptive", "codes")

    def __init__(self, codes: list[int], adaptive: int) -> None:
        self.codes = codes
        self.adaptive = adaptive
