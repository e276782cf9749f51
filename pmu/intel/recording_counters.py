"""RecordingCounters: what PEBS adds to Perfmon, where the core has it."""

from __future__ import annotations

from pmu.intel.pebs import Pebs, Selects
from pmu.intel.pebs_registers import ADAPTIVE_FIXED, ADAPTIVE_SELECT
from pmu.intel.registers import IA32_PERF_GLOBAL_STATUS, IA32_PERFEVTSELx, reserved_in
from pmu.register import Register
from pmu.x86_counters import X86Counters

_CODE = IA32_PERFEVTSELx.EVENT.mask | IA32_PERFEVTSELx.UMASK.mask
_BUFFER = IA32_PERF_GLOBAL_STATUS.OVF_BUFFER.mask


class RecordingCounters(X86Counters):
    """Intel's, some of whose overflows may be records."""

    pebs: Pebs | None = None
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

    def _selected(self) -> Selects:
        control = self.storage["IA32_FIXED_CTR_CTRL"]
        adaptive = sum(1 << n for n, select in enumerate(self._selects) if select & ADAPTIVE_SELECT)
        adaptive |= sum(1 << self.counters + n for n, mask in enumerate(ADAPTIVE_FIXED) if control & mask)
        return Selects([select & _CODE for select in self._selects], adaptive)

    def _selected_anew(self) -> None:
        """Some counter."""
        if self.pebs is not None:
            self.pebs.selected_anew()

    def _buffer_status(self) -> int:
        """Its bit of IA32_PERF_GLOBAL_STATUS."""
        return _BUFFER if self.pebs is not None and self.pebs.buffer_overflowed else 0

    def _set_buffer_status(self, bits: int, overflowed: bool) -> None:
        """IA32_PERF_GLOBAL_STATUS_RESET and _SET have written ones there."""
        if bits & _BUFFER and self.pebs is not None:
            self.pebs.set_buffer_overflowed(overflowed)
