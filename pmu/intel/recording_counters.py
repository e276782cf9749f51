"""RecordingCounters: what PEBS adds to Perfmon where the core has it; for guests' own kernels also BTS and Intel PT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pmu.branch_records import Leaf
from pmu.intel import pebs as pebs_module
from pmu.intel.debug_store import IA32_DS_AREA, DebugStore
from pmu.intel.pebs import Pebs, Selects
from pmu.intel.pebs_registers import ADAPTIVE_FIXED, ADAPTIVE_SELECT
from pmu.intel.registers import (
    BRANCH_TRACE,
    IA32_DEBUGCTL,
    IA32_PERF_GLOBAL_STATUS,
    IA32_PERF_GLOBAL_STATUS_RESET,
    IA32_PERF_GLOBAL_STATUS_SET,
    IA32_PERFEVTSELx,
    reserved_in,
)
from pmu.register import Register
from pmu.x86_counters import BTS_UNAVAILABLE, PEBS_UNAVAILABLE, X86Counters

_CODE = IA32_PERFEVTSELx.EVENT.mask | IA32_PERFEVTSELx.UMASK.mask
_LBR = IA32_DEBUGCTL.LBR.mask
_BUFFER = IA32_PERF_GLOBAL_STATUS.OVF_BUFFER.mask
_TRACE = IA32_PERF_GLOBAL_STATUS.TRACE_TOPA_PMI.mask
OUTPUT_STATUS = _BUFFER | _TRACE  # bits of IA32_PERF_GLOBAL_STATUS that are not counters'


class Interrupts(Protocol):
    """What writes to memory, and asks for it to be taken away."""

    def interrupt_asserted(self) -> bool: ...
    def take_interrupt(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class StoresBranches(Interrupts, Protocol):
    """BranchTraceStore, which only those load that have one."""

    when_wrong: Callable[[str], None] | None

    def control(self, value: int) -> None: ...
    def read(self, register: type[Register], index: int = 0) -> int: ...
    def write(self, register: type[Register], value: int, index: int = 0) -> None: ...


class TracesExecution(Interrupts, Protocol):
    """IntelPt, likewise."""

    interrupt_pending: bool

    def cpuid(self, leaf: int, subleaf: int, plain: Leaf) -> Leaf: ...
    def accesses(self) -> Mapping[type[Register], tuple[Callable[[int], int], Callable[[int, int], None]]]: ...
    def registers_of(self, register: type[Register]) -> int: ...
    def check(self, register: type[Register], value: int, index: int = 0) -> None: ...


class RecordingCounters(X86Counters):
    """Intel's, some of whose overflows may be records."""

    pebs: Pebs | None = None
    bts: StoresBranches | None = None  # of a guest with a kernel of its own: that drives both by the same registers
    trace: TracesExecution | None = None  # likewise
    _stores: list[DebugStore]  # of a guest with a kernel of its own: one, if the core has any
    _recorders: list[Pebs | StoresBranches | TracesExecution]  # ... what writes there, and to memory
    _enables_branches: bool  # whether IA32_DEBUGCTL.LBR does
    _selects: list[int]  # IA32_PERFEVTSELx
    _capabilities: int  # IA32_PERF_CAPABILITIES
    _reserved: dict[type[Register], int]  # declared bits that are reserved here
    _general: int  # masks of the counters
    _fixed_mask: int

    def add_pebs(self, pebs: Pebs) -> None:
        """The core has it. Before the first register is written."""
        self.pebs = pebs
        pebs.attach(self._bank, self.counters, self._fixed_mask.bit_count(), self.branches, self._selected)
        self._capabilities |= pebs.capabilities
        reserved = reserved_in(self.model.version, self._general, self._fixed_mask, self._capabilities)
        self._reserved = reserved | pebs.reserved()
        for register, (read, write) in pebs.accesses().items():
            self._compute(register, read, write)

    def store_for_guest(
        self, store: DebugStore, pebs: Pebs | None, bts: StoresBranches | None, tell: Callable[[str], None]
    ) -> None:
        """A kernel of the guest's own programs these, which write by `store`."""
        self._stores.append(store)
        if pebs is not None:
            self.add_pebs(pebs)
            self._recorders.append(pebs)
            pebs.when_wrong = tell
        if bts is not None:
            self.bts = bts
            self._recorders.append(bts)
            bts.when_wrong = tell
            self._reserved = {**self._reserved, IA32_DEBUGCTL: self._reserved[IA32_DEBUGCTL] & ~BRANCH_TRACE}
            if pebs is None:
                self._compute(
                    IA32_DS_AREA,
                    lambda index: bts.read(IA32_DS_AREA),
                    lambda value, index: bts.write(IA32_DS_AREA, value),
                )

    def trace_for_guest(self, trace: TracesExecution) -> None:
        """... and this, whose interrupt and its status are the counters'. Behind the other."""
        self.trace = trace
        self._recorders.append(trace)
        for register, (read, write) in trace.accesses().items():
            self._compute(register, read, write)
        freed = (IA32_PERF_GLOBAL_STATUS_RESET, IA32_PERF_GLOBAL_STATUS_SET)
        self._reserved = {**self._reserved, **{each: self._reserved[each] & ~_TRACE for each in freed}}

    def registers_of_trace(self, register: type[Register]) -> int | None:
        """How many of these there are; None: it is none of the trace's."""
        trace = self.trace
        return trace.registers_of(register) if trace is not None and register in trace.accesses() else None

    def check(self, register: type[Register], value: int, index: int = 0) -> None:
        super().check(register, value, index)
        if self.trace is not None and register in self.trace.accesses():
            self.trace.check(register, value, index)

    @property
    def unavailable(self) -> int:
        """Bits of IA32_MISC_ENABLE."""
        return (BTS_UNAVAILABLE if self.bts is None else 0) | (PEBS_UNAVAILABLE if self.pebs is None else 0)

    def _said_besides(self, leaf: int, subleaf: int, said: Leaf) -> Leaf:
        """CPUID, which without branch records and debug store would be that."""
        said = self.with_branches(leaf, subleaf, said)
        if self.trace is not None:
            said = self.trace.cpuid(leaf, subleaf, said)
        return pebs_module.answer(leaf, said) if self._stores else said

    def pause(self) -> None:
        super().pause()
        for recorder in self._recorders:
            recorder.pause()

    def resume(self) -> None:
        super().resume()
        for recorder in self._recorders:
            recorder.resume()

    def _control_debug(self) -> None:
        """IA32_DEBUGCTL has been written."""
        control = self.storage["IA32_DEBUGCTL"]
        if self._enables_branches and self.branches is not None:
            self.branches.enable(bool(control & _LBR))
        if self.bts is not None:
            self.bts.control(control & BRANCH_TRACE)

    def _selected(self) -> Selects:
        control = self.storage["IA32_FIXED_CTR_CTRL"]
        adaptive = sum(1 << n for n, select in enumerate(self._selects) if select & ADAPTIVE_SELECT)
        adaptive |= sum(1 << self.counters + n for n, mask in enumerate(ADAPTIVE_FIXED) if control & mask)
        return Selects([select & _CODE for select in self._selects], adaptive)

    def _selected_anew(self) -> None:
        """Some counter."""
        if self.pebs is not None:
            self.pebs.selected_anew()

    def _output_status(self) -> int:
        """What IA32_PERF_GLOBAL_STATUS says of what they write."""
        status = _BUFFER if self.pebs is not None and self.pebs.buffer_overflowed else 0
        return status | _TRACE if self.trace is not None and self.trace.interrupt_pending else status

    def _set_output_status(self, bits: int, on: bool) -> None:
        """IA32_PERF_GLOBAL_STATUS_RESET and _SET have written ones there."""
        if bits & _BUFFER and self.pebs is not None:
            self.pebs.buffer_overflowed = on
        if bits & _TRACE and self.trace is not None:
            self.trace.interrupt_pending = on

    def _output_interrupts(self) -> bool:
        """What they write is to be taken away."""
        pebs, bts, trace = self.pebs, self.bts, self.trace
        if (pebs is not None and pebs.buffer_overflowed) or (bts is not None and bts.interrupt_asserted()):
            return True
        return trace is not None and trace.interrupt_asserted()

    def _take_output_interrupt(self) -> None:
        if self.bts is not None:
            self.bts.take_interrupt()
        if self.trace is not None:
            self.trace.take_interrupt()
