"""Intel's branch trace store (BTS): its part of IA32_DEBUGCTL, and the debug store (DS) that it writes by.

Intel SDM volume 3, "Branch Trace Store (BTS)" and "BTS and DS Save Area"; native/units/branch_trace_store writes.
Where the kernel is modelled, only user mode has branches, and far transfers are none. Else they are stored, interrupts
and exceptions among them, if the level that they leave is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from emulator._native import BranchTraceStore as NativeStore
from emulator.core_file.units import UNITS
from emulator.cpu import Cpu, Level
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

    kept = "storage", "_pending"

    def __init__(self, cpu: Cpu, store: DebugStore) -> None:
        super().__init__()
        self._debug_store = store
        self._store_of_core = NativeStore(cpu.core)
        self._stores = False
        self._pending = False  # an interrupt, of before it was paused
        # A guest may give it addresses of nothing, which its user is told of; for others that is a ValueError.
        self.when_wrong: Callable[[str], None] | None = None
        self._compute(IA32_DS_AREA, lambda index: store.address, self._set_area)
        self._store(IA32_DEBUGCTL_TRACE, self._control)

    def interrupt_asserted(self) -> bool:
        return self._store_of_core.interrupt_pending or self._pending

    def take_interrupt(self) -> None:
        """It comes once; which interrupt it was, the index says."""
        self._store_of_core.clear_interrupt()
        self._pending = False

    def control(self, value: int) -> None:
        """IA32_DEBUGCTL has been written, of which these bits are its own."""
        if value != self.storage[IA32_DEBUGCTL_TRACE.__name__]:
            self.write(IA32_DEBUGCTL_TRACE, value)

    def pause(self) -> None:
        """It stores nothing until `resume`."""
        self._pending = self.interrupt_asserted()
        self._end()

    def resume(self) -> None:
        self._control()

    def _end(self) -> None:
        if self._stores:
            self._store_of_core.end()
        self._stores = False

    def _control(self) -> None:
        self._end()
        control = IA32_DEBUGCTL_TRACE(self.storage[IA32_DEBUGCTL_TRACE.__name__])
        levels = (not control.BTS_OFF_USR) << Level.USER | (not control.BTS_OFF_OS) << Level.KERNEL
        if not (control.TR and control.BTS and levels):
            return
        try:
            self._begin(levels, interrupts=bool(control.BTINT))
        except ValueError as problem:
            if self.when_wrong is None:
                raise
            self.when_wrong(f"Intel BTS stores nothing: {problem}")

    def _begin(self, levels: int, *, interrupts: bool) -> None:
        area = self._debug_store.area(BTS.size)
        base, _, maximum, _ = BTS.unpack_from(area, BTS_AT)
        if maximum < base:
            raise ValueError(f"the debug store's BTS buffer ends at {maximum:#x}, before it begins at {base:#x}")
        self._store_of_core.begin(area, self._debug_store.reached(base, maximum - base), interrupts, levels)
        self._stores = True

    def _set_area(self, value: int, index: int) -> None:
        self._debug_store.address = value
