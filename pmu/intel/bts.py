"""Intel's branch trace store (BTS): its part of IA32_DEBUGCTL, and the debug store (DS) that it writes by.

Intel SDM volume 3, "Branch Trace Store (BTS)" and "BTS and DS Save Area"; native/units/branch_trace_store writes.
Where the kernel is modelled, only user mode has branches: what enters it from there is none.
"""

from __future__ import annotations

import struct

from emulator._native import BranchTraceStore as NativeStore
from emulator.core_file.units import UNITS
from emulator.cpu import Cpu
from emulator.sysregs import Msr
from pmu.intel.debug_store import BTS, BTS_AT, IA32_DS_AREA, DebugStore
from pmu.register import RW, Register
from pmu.register_device import RegisterDevice
from pmu.unit_pmu import UnitPmu

RECORD = struct.Struct("<3Q")  # from, to, flags
PREDICTED = 1 << 4  # flag

assert "bts" in UNITS, "core files know it"
# perf up to 6.12 leaves the last record of each stretch out, and passes over those that are zero.
PMUS = (
    UnitPmu(
        "intel_bts",
        (),
        (),
        unit="bts",
        record_bytes=RECORD.size,
        trailer=bytes(RECORD.size),
        note="every taken branch, as a record of 24 bytes",
    ),
)


class IA32_DEBUGCTL_TRACE(Register):
    """IA32_DEBUGCTL: what of it concerns branch trace messages, and where they go."""

    encoding = Msr(0x1D9)
    again = True
    reserved_bits_fault = True

    TR = RW(6)  # branch trace messages are made
    BTS = RW(7)  # ... and stored by the DS area, rather than told on a bus
    BTINT = RW(8)  # an interrupt comes at the threshold; else the buffer is circular
    BTS_OFF_OS = RW(9)  # none at CPL 0
    BTS_OFF_USR = RW(10)  # none above


class BranchTraceStore(RegisterDevice):
    """That of one CPU."""

    def __init__(self, cpu: Cpu, store: DebugStore) -> None:
        super().__init__()
        self._debug_store = store
        self._store_of_core = NativeStore(cpu.core)
        self._stores = False
        self._compute(IA32_DS_AREA, lambda index: store.address, self._set_area)
        self._store(IA32_DEBUGCTL_TRACE, self._control)

    def interrupt_asserted(self) -> bool:
        return self._store_of_core.interrupt_pending

    def take_interrupt(self) -> None:
        """It comes once; which interrupt it was, the index says."""
        self._store_of_core.clear_interrupt()

    def _control(self) -> None:
        control = IA32_DEBUGCTL_TRACE(self.storage[IA32_DEBUGCTL_TRACE.__name__])
        if self._stores:
            self._store_of_core.end()
        self._stores = bool(control.TR and control.BTS and not control.BTS_OFF_USR)
        if not self._stores:
            return
        area = self._debug_store.area(BTS.size)
        base, _, maximum, _ = BTS.unpack_from(area, BTS_AT)
        self._store_of_core.begin(area, self._debug_store.reached(base, maximum - base), bool(control.BTINT))

    def _set_area(self, value: int, index: int) -> None:
        self._debug_store.address = value
