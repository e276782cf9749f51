"""BranchSampling: AMD's Branch Sampling (BRS) as a live device.

When the counter that it belongs to overflows, the interrupt is held back until the next 16 taken branches have been
recorded, from the first entry to the last. So a sample has the branches that come behind the overflow, and none more.
If software disables it before, the interrupt comes with those that there are.
"""

from __future__ import annotations

import struct
from typing import Protocol

from pmu.amd.brs_registers import BRS_ENTRIES, DebugExtnCfg, SamplingBranchFromx, SamplingBranchTox
from pmu.branch_records import Access
from pmu.register import Register

Leaf = tuple[int, int, int, int]  # EAX, EBX, ECX, EDX
_FEATURES = 0x8000_0008  # CPUID leaf
_BRS = 1 << 31  # of its EBX

_RECORD = struct.Struct("<3Q")  # from, to, flags: the store's, of which the last is in no register
_FROM, _TO = 0, 1
_AREA = struct.Struct("<4Q")  # where the store's records begin, where the next one goes, where they end, and interrupt
_BYTES = BRS_ENTRIES * _RECORD.size


class BranchStore(Protocol):
    """What stores a core's taken branches, and interrupts when there are so many: emulator._native's
    BranchTraceStore."""

    def begin(self, area: memoryview, buffer: memoryview, interrupts: bool) -> None: ...
    def end(self) -> None: ...
    @property
    def interrupt_pending(self) -> bool: ...
    def clear_interrupt(self) -> None: ...


def cpuid_of_branches(leaf: int, subleaf: int, plain: Leaf) -> Leaf:
    """Of a processor with it, which without would say `plain`. AMD64 APM volume 3, appendix E."""
    eax, ebx, ecx, edx = plain
    return (eax, ebx | _BRS, ecx, edx) if leaf == _FEATURES else plain


class BranchSampling:
    """Of one core."""

    entries = BRS_ENTRIES

    def __init__(self, store: BranchStore) -> None:
        self._store = store
        self._area = memoryview(bytearray(_AREA.size))
        self._records = memoryview(bytearray(_BYTES))
        self._words = self._records.cast("Q")
        self._configuration = 0  # but VB and MSROFF, which follow from `_area`
        self._held = 0  # mask of the counter whose interrupt waits
        self._dropped = 0  # ... does so no longer, as software has disabled recording
        self._first, self._valid = 0, False  # the next one's number when it was set last; whether some are before it
        self._place(0, False)

    def accesses(self) -> dict[type[Register], Access]:
        """What reads and writes each of its registers."""
        return {
            DebugExtnCfg: Access(lambda index: self._read_configuration(), self._write_configuration),
            SamplingBranchFromx: self._access_to(_FROM),
            SamplingBranchTox: self._access_to(_TO),
        }

    def hold(self, interrupting: int) -> int:
        """These counters are about to interrupt. Of which it holds the interrupt back, as a mask."""
        if not self._configuration & DebugExtnCfg.BRSMEN.mask:
            return 0
        own = interrupting & 1 << DebugExtnCfg(self._configuration).PMC
        if own and not self._held:
            self._held = own
            self._store.begin(self._area, self._records, True)
        return own

    def take_held(self) -> int:
        """The counter whose interrupt has been held back and is due now, as a mask: all entries are full,
        or software has disabled recording. It comes once."""
        dropped, self._dropped = self._dropped, 0
        if not self._held or not self._store.interrupt_pending:
            return dropped
        self._store.clear_interrupt()
        return dropped | self._release()

    def _release(self) -> int:
        held, self._held = self._held, 0
        if held:
            self._store.end()
            self._valid = self._valid or self._next != self._first
        return held

    @property
    def _next(self) -> int:
        """The number of the next entry; that behind the last when all are full."""
        _, index, _, _ = _AREA.unpack(self._area)
        return int(index) // _RECORD.size

    def _place(self, number: int, valid: bool) -> None:
        """The next branch goes there."""
        _AREA.pack_into(self._area, 0, 0, number * _RECORD.size, _BYTES, _BYTES)
        self._first, self._valid = number, valid

    def _read_configuration(self) -> int:
        valid = self._valid or self._next != self._first
        return self._configuration | DebugExtnCfg.make(VB=int(valid), MSROFF=self._next % BRS_ENTRIES)

    def _write_configuration(self, value: int, index: int) -> None:
        written = DebugExtnCfg(DebugExtnCfg.write(0, value))
        released = self._release()
        self._configuration = written.value & ~(DebugExtnCfg.VB.mask | DebugExtnCfg.MSROFF.mask)
        if written.MSROFF != self._next % BRS_ENTRIES or not written.VB:
            self._place(written.MSROFF, bool(written.VB))
        if not written.BRSMEN:
            self._dropped |= released

    def _access_to(self, part: int) -> Access:
        words, each = self._words, _RECORD.size // 8

        def write(value: int, index: int) -> None:
            words[index * each + part] = value

        return Access(lambda index: words[index * each + part], write)
